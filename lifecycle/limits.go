package lifecycle

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/storable"
)

// Limits bounds what one call can make the store keep, in bytes. A request above a
// limit is [ErrInvalid]. 0 is the default of a field, and a negative number no limit.
// An object whose payload is longer already moves and is removed as before; an edit of
// the payload must bring it below the limit.
// The texts that the library writes itself are short and not limited.
type Limits struct {
	Reason         int // of a change; default 4 KiB
	Payload        int // of an object, in its encoded form; default 1 MiB
	Args           int // of work; default 64 KiB
	Carrier        int // keys and values of Config.Inject together; default 4 KiB
	MessageName    int // each of topic and key of a message; default 1 KiB
	MessagePayload int // default 1 MiB
}

// resolved returns the limits with their defaults.
func (l Limits) resolved() Limits {
	for _, field := range []struct {
		limit    *int
		standard int
	}{
		{&l.Reason, storable.MaxReason},
		{&l.Payload, 1 << 20},
		{&l.Args, 64 << 10},
		{&l.Carrier, 4 << 10},
		{&l.MessageName, 1 << 10},
		{&l.MessagePayload, 1 << 20},
	} {
		if *field.limit == 0 {
			*field.limit = field.standard
		}
	}
	return l
}

// CheckPayload returns [ErrInvalid] for a payload that cannot be encoded or is above the
// limit. It is for a program that writes the payload only when work has ended.
func (l Limits) CheckPayload(payload any) error {
	_, err := pack(payload, l.resolved().Payload)
	return err
}

// checkSize refuses what is longer than a limit.
func checkSize(what string, size, limit int) error {
	if limit < 0 || size <= limit {
		return nil
	}
	return fmt.Errorf("%w: %s of %d bytes, more than %d", ErrInvalid, what, size, limit)
}

// checkCaller refuses what the library may write and a caller may not: texts above
// the limits, and the actor of sweeps.
func (r *request) checkCaller() error {
	limits := &r.core.limits
	if r.ask.Actor == fsm.Sweeper {
		return fmt.Errorf("%w: only sweeps act as %s", fsm.ErrWrongActor, fsm.Sweeper)
	}
	err := checkSize("reason", len(r.reason), limits.Reason)
	if r.work != nil {
		err = errors.Join(err, checkSize("arguments", len(r.work.Args), limits.Args), limits.checkCarrier(r.work.carrier))
	}
	for i := range r.messages {
		m := &r.messages[i]
		err = errors.Join(err, checkSize("topic", len(m.Topic), limits.MessageName), checkSize("key", len(m.Key), limits.MessageName),
			checkSize("message", len(m.Payload), limits.MessagePayload))
	}
	return err
}
