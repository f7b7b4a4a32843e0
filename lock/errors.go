package lock

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// One error for each reaction. Match them with [errors.Is]; the details are in
// [ConflictError], [InvalidError], [LostError] and [StaleTokenError].
var (
	// ErrConflict: somebody is in the way. Wait, or tell the user who it is.
	ErrConflict = errors.New("lock: conflict")
	// ErrQueueFull: as many wait as [Config.MaxWaiters] allows. Come back later.
	ErrQueueFull = errors.New("lock: too many are waiting")
	// ErrIDInUse: the id belongs to a grant of other requests. Use another.
	ErrIDInUse = errors.New("lock: the id is in use for other requests")
	// ErrInvalid: a path, mode, list or text is malformed. Correct the program.
	ErrInvalid = errors.New("lock: invalid")
	// ErrNotHeld: the grant was released. There is nothing to protect any more.
	ErrNotHeld = errors.New("lock: not held")
	// ErrLost: the grant was taken away, and somebody else may have it by now.
	// Stop at once, and write nothing more.
	ErrLost = errors.New("lock: lost")
	// ErrRevoked: the holder is asked to stop. It still holds the lock until it
	// unlocks it. Finish or give up, and unlock.
	ErrRevoked = errors.New("lock: revoked")
	// ErrStaleToken: a grant of a later token was here before. As ErrLost.
	ErrStaleToken = errors.New("lock: the token is stale")
)

// ConflictError is why a request was not granted and who is in the way. It
// unwraps to Err.
type ConflictError struct {
	Requests []Request
	// Holders are held or waiting requests that have to go before these can be
	// granted, in the order of their arrival, at least one and at most
	// [Config.MaxHolders]; none if a wait was given up in the moment of its
	// grant, or the context had ended before. For ErrIDInUse, the requests that have the id.
	Holders []Holder
	More    bool // there are more of them
	// Err is ErrConflict, ErrQueueFull, ErrIDInUse, or, if a wait was given up,
	// the error and the cause of the context.
	Err error

	// Room for the usual case, so that a refusal is one or two allocations.
	request [1]Request
	holder  [1]Holder
}

func (e *ConflictError) Error() string {
	var b strings.Builder
	b.WriteString("lock: ")
	for i, r := range e.Requests {
		if i == 3 {
			b.WriteString(" and " + strconv.Itoa(len(e.Requests)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.String())
	}
	b.WriteString(": ")
	b.WriteString(strings.TrimPrefix(textOf(e.Err), "lock: "))
	for i, h := range e.Holders {
		if i == 3 {
			b.WriteString("; and more")
			return b.String()
		}
		b.WriteString("; ")
		b.WriteString(h.String())
	}
	if e.More {
		b.WriteString("; and more")
	}
	return b.String()
}

func textOf(err error) string {
	if err == nil {
		return "error"
	}
	return err.Error()
}

func (e *ConflictError) Unwrap() error { return e.Err }

// InvalidError is malformed input. It matches [ErrInvalid].
type InvalidError struct {
	What   string // what it is: "path", "mode", "list", "id", ...
	Value  string // as it came; long ones are cut in the text, not here
	Reason string
}

func (e *InvalidError) Error() string {
	value := e.Value
	if len(value) > 80 {
		value = value[:77] + "..."
	}
	return "lock: " + e.What + " " + strconv.Quote(value) + " " + e.Reason
}

// Is makes errors.Is(e, ErrInvalid) true.
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// LostError is that a grant was taken away or asked back. It unwraps to Err.
type LostError struct {
	Token  Token
	Reason string // from Break or Revoke, or the engine's
	Err    error  // ErrLost or ErrRevoked
}

func (e *LostError) Error() string {
	text := textOf(e.Err) + ": token " + e.Token.String()
	if e.Reason != "" {
		text += ": " + shown(e.Reason)
	}
	return text
}

func (e *LostError) Unwrap() error { return e.Err }

// StaleTokenError is a write that came too late. It matches [ErrStaleToken].
type StaleTokenError struct {
	Token   Token // of the write
	Highest Token // that was here before
}

func (e *StaleTokenError) Error() string {
	return "lock: token " + e.Token.String() + " is stale: token " +
		e.Highest.String() + " was here before"
}

// Is makes errors.Is(e, ErrStaleToken) true.
func (e *StaleTokenError) Is(target error) bool { return target == ErrStaleToken }

// String says who it is in one line: "X at /a/b held by deploy-7 (version 12)
// since 2026-01-02T15:04:05Z, token 12". Texts that would break the line are
// quoted.
func (h Holder) String() string {
	var b strings.Builder
	b.WriteString(Request{h.Path, h.Mode}.String())
	if h.Waiting {
		b.WriteString(" awaited")
	} else {
		b.WriteString(" held")
	}
	if h.Owner != "" {
		b.WriteString(" by " + shown(h.Owner))
	}
	if h.ID != "" && h.ID != h.Owner {
		b.WriteString(" as " + shown(h.ID))
	}
	if h.Reason != "" {
		b.WriteString(" (" + shown(h.Reason) + ")")
	}
	b.WriteString(" since " + h.Since.UTC().Format(time.RFC3339))
	if !h.Waiting {
		b.WriteString(", token " + h.Token.String())
	}
	return b.String()
}
