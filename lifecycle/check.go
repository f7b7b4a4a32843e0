package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lock"
)

// Limits bounds what one call can make the store keep, in bytes. A request above a limit is
// [ErrInvalid]. 0 is the default of a field, and a negative number no limit. An object
// whose payload is already longer can still be moved and removed, but an edit of the
// payload must bring it below the limit. The texts that the library writes itself are short
// and not limited.
type Limits struct {
	Reason         int // of a change; default 4 KiB
	Payload        int // of an object, in its encoded form; default 1 MiB
	Args           int // of work; default 64 KiB
	Carrier        int // keys and values of Config.Inject together; default 4 KiB
	MessageName    int // each of topic and key of a message; default 1 KiB
	MessagePayload int // default 1 MiB
}

// withDefaults returns the limits with their defaults.
func (l Limits) withDefaults() Limits {
	return Limits{
		Reason: cmp.Or(l.Reason, storable.MaxReason), Payload: cmp.Or(l.Payload, 1<<20),
		Args: cmp.Or(l.Args, 64<<10), Carrier: cmp.Or(l.Carrier, 4<<10),
		MessageName: cmp.Or(l.MessageName, 1<<10), MessagePayload: cmp.Or(l.MessagePayload, 1<<20),
	}
}

// CheckPayload returns [ErrInvalid] for a payload that cannot be encoded or is above the
// limit. Use it in a program that writes the payload only when work has ended.
func (l Limits) CheckPayload(payload any) error {
	_, err := pack(payload, l.withDefaults().Payload)
	return err
}

// check refuses a request that is bad in every state of the object.
func (r *request) check() error {
	if r.invalid != nil {
		return r.invalid
	}
	if err := checkID(r.key.ID); err != nil {
		return err
	}
	if r.byCaller {
		if err := r.checkCaller(); err != nil {
			return err
		}
	}
	table := r.core.table
	switch r.ask.Verb {
	case decide.Create, decide.Fire, decide.Report:
		if r.ask.Event < 0 {
			return &fsm.TransitionError{Machine: table.Name, Event: r.event, Actor: r.ask.Actor, Row: -1, Err: fsm.ErrUnknownEvent}
		}
	case decide.Override:
		// The table need not declare the actor. That of Migrate is checked once for a page.
		return checkText("actor", string(r.ask.Actor), MaxID)
	case decide.Add:
		if _, ok := table.ActorIndex(r.ask.Actor); !ok {
			return &fsm.TransitionError{
				Machine: table.Name, To: table.States[r.ask.To].Name, Actor: r.ask.Actor, Row: -1, Err: fsm.ErrWrongActor,
			}
		}
	}
	return nil
}

// checkCaller refuses what the library may write and a caller may not: the actor of
// sweeps, what is above the limits, and what not every store can keep.
func (r *request) checkCaller() error {
	limits := &r.core.limits
	if r.ask.Actor == fsm.Sweeper {
		return fmt.Errorf("%w: only sweeps act as %s", fsm.ErrWrongActor, fsm.Sweeper)
	}
	err := checkText("reason", r.Reason, limits.Reason)
	if r.work != nil {
		err = errors.Join(err, checkSize("arguments", len(r.work.Args), limits.Args), limits.checkCarrier(r.work.carrier))
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		err = errors.Join(err, checkText("topic", m.Topic, limits.MessageName), checkText("key", m.Key, limits.MessageName),
			checkSize("message", len(m.Payload), limits.MessagePayload))
	}
	if err != nil {
		return err
	}
	for i := range r.Require {
		if err := r.Require[i].check(); err != nil {
			return err
		}
	}
	switch {
	case r.IfMatch != "" && strings.TrimSpace(r.IfMatch) != "*" && !eTagList.MatchString(r.IfMatch):
		return fmt.Errorf("%w: If-Match %q is neither * nor a list of ETags in double quotes", ErrInvalid, shown(r.IfMatch))
	case r.Request == RequestID{}:
		return nil
	case r.Request.ID == "":
		return fmt.Errorf("%w: the hash of a request without an id", ErrInvalid)
	case r.ask.Verb == decide.Report:
		return fmt.Errorf("%w: a report has the number of its operation, and no request id", ErrInvalid)
	}
	return errors.Join(checkText("request id", r.Request.ID, MaxID), checkSize("hash of a request", len(r.Request.Hash), MaxID))
}

// checkCarrier refuses a carrier above the limit, and text that JSON would change.
func (l *Limits) checkCarrier(carrier map[string]string) error {
	size, err := 0, error(nil)
	for key, value := range carrier {
		size += len(key) + len(value)
		err = errors.Join(err, checkText("key of Config.Inject", key, -1), checkText("value of Config.Inject", value, -1))
	}
	return errors.Join(err, checkSize("values of Config.Inject", size, l.Carrier))
}

// MaxID is the greatest length of an object's id in bytes.
const MaxID = 255

// checkID refuses an id that not every store can keep as a key.
func checkID(id string) error {
	if id == "" {
		return fmt.Errorf("%w: empty id", ErrInvalid)
	}
	return checkText("id", id, MaxID)
}

// checkText refuses a text that is longer than a limit, or that not every store can keep.
func checkText(what, text string, limit int) error {
	if err := checkSize(what, len(text), limit); err != nil {
		return err
	}
	switch {
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: %s %q is not UTF-8", ErrInvalid, what, shown(text))
	case strings.IndexByte(text, 0) >= 0:
		return fmt.Errorf("%w: NUL in %s %q", ErrInvalid, what, shown(text))
	}
	return nil
}

// checkSize refuses what is longer than a limit. A negative limit is none.
func checkSize(what string, size, limit int) error {
	if limit < 0 || size <= limit {
		return nil
	}
	return fmt.Errorf("%w: %s of %d bytes, more than %d", ErrInvalid, what, size, limit)
}

// Check refuses a commit that is malformed or needs more than a store has, for use
// by stores before anything else. A commit that passes has at least one change, a
// state in each of them, and no two of one key or of one request of a machine.
//
// Errors: [ErrInvalid] for what no store can do, [errors.ErrUnsupported] for more
// changes and preconditions, or messages, than the capabilities declare.
func (c *Commit) Check(has Capabilities) error {
	switch n := len(c.Changes) + len(c.Require); {
	case len(c.Changes) == 0:
		return fmt.Errorf("%w: commit without changes", ErrInvalid)
	case n > has.Changes:
		return fmt.Errorf("%w: %d changes and preconditions in one commit, at most %d", errors.ErrUnsupported, n, has.Changes)
	case len(c.Messages) > 0 && !has.Messages:
		return fmt.Errorf("%w: messages in a commit", errors.ErrUnsupported)
	case c.Token == (Token{}):
		return fmt.Errorf("%w: commit without a token", ErrInvalid)
	case !has.History && slices.ContainsFunc(c.Changes, func(ch StoredChange) bool { return ch.Request != "" }):
		return fmt.Errorf("%w: a request id: the store keeps no history", errors.ErrUnsupported)
	case c.Owner.Name == "" && c.Owner.Epoch != 0:
		return fmt.Errorf("%w: commit of an owner without a name", ErrInvalid)
	}
	seen, requests := map[Key]bool{}, map[Key]bool{}
	for i := range c.Changes {
		ch := &c.Changes[i]
		to, request := &ch.To, Key{ch.To.Machine, ch.Request}
		switch {
		case to.State == "":
			return fmt.Errorf("%w: change of %s without a state", ErrInvalid, to.Key.text())
		case to.Owner == "" && to.Epoch != 0: // stores find unowned records by epoch 0
			return fmt.Errorf("%w: change of %s with epoch %d and without an owner", ErrInvalid, to.Key.text(), to.Epoch)
		case ch.MetadataOnly && (ch.Remove || ch.From != to.State):
			return fmt.Errorf("%w: change of metadata only of %s from %s to %s", ErrInvalid, to.Key.text(), stateOr(ch.From), stateOr(to.State))
		case seen[to.Key]:
			return fmt.Errorf("%w: two changes of %s in one commit", ErrInvalid, to.Key.text())
		case requests[request]:
			return fmt.Errorf("%w: two changes of request %q in one commit", ErrInvalid, shown(ch.Request))
		}
		seen[to.Key], requests[request] = true, ch.Request != ""
	}
	return nil
}

// Check refuses a malformed query, for use by stores before anything else. The error
// matches [ErrInvalid]: for a limit below 1, and for an After that is not empty and cannot
// be an id, because it is not UTF-8, has a NUL, or is longer than [MaxID].
func (q *Query) Check() error {
	switch {
	case q.Limit <= 0:
		return fmt.Errorf("%w: query with limit %d", ErrInvalid, q.Limit)
	case q.After == "":
		return nil
	}
	return checkID(q.After)
}

// check refuses a precondition that holds for no object, and a grant that does not hold.
func (p *Precondition) check() error {
	if p.Grant != nil {
		if p.Key != (Key{}) || len(p.States) > 0 {
			return fmt.Errorf("%w: precondition with a grant and with a key or states", ErrInvalid)
		}
		return p.held()
	}
	if p.ID == "" {
		return fmt.Errorf("%w: precondition with neither a grant nor an id", ErrInvalid)
	}
	if err := checkText("id of a precondition", p.ID, MaxID); err != nil {
		return err
	}
	if len(p.States) == 0 {
		return fmt.Errorf("%w: precondition on %s without states", ErrInvalid, p.Key.text())
	}
	return nil
}

// held refuses a grant that was released, or that this process has lost.
func (p *Precondition) held() error {
	if err := p.Grant.Check(); err != nil && !errors.Is(err, lock.ErrRevoked) {
		return fmt.Errorf("%w: %w", ErrPrecondition, err)
	}
	return nil
}

// equal compares all fields: the error of a precondition is about the requests that have it.
func (p *Precondition) equal(q Precondition) bool {
	return p.Key == q.Key && p.Grant == q.Grant && slices.Equal(p.States, q.States)
}
