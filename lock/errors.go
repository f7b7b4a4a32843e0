package lock

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// There is one error for each reaction of a caller. Match them with [errors.Is].
// The details are in [ConflictError], [InvalidError], [LostError] and
// [StaleTokenError].
var (
	// ErrConflict reports that another request conflicts. Wait, or show the holders
	// to the user.
	ErrConflict = errors.New("lock: conflict")
	// ErrQueueFull reports that as many acquisitions wait as [Config.MaxWaiters]
	// allows. Retry later.
	ErrQueueFull = errors.New("lock: the queue is full")
	// ErrIDInUse reports that the id belongs to an acquisition of other requests.
	// Use another id.
	ErrIDInUse = errors.New("lock: the id is in use for other requests")
	// ErrInvalid reports a malformed path, mode, list or text. Correct the program.
	ErrInvalid = errors.New("lock: invalid")
	// ErrNotHeld reports that the grant was released. It protects nothing any more.
	ErrNotHeld = errors.New("lock: not held")
	// ErrLost reports that the grant was taken away; another caller may hold the
	// lock. Stop at once and write nothing more.
	ErrLost = errors.New("lock: lost")
	// ErrRevoked signals the holder to stop. The holder keeps the lock until it
	// unlocks. Finish or abort, and unlock.
	ErrRevoked = errors.New("lock: revoked")
	// ErrStaleToken reports that a later grant has passed the fence. React as to
	// ErrLost.
	ErrStaleToken = errors.New("lock: the token is stale")
)

// ConflictError explains why a request was not granted. It unwraps to Err.
type ConflictError struct {
	// Requests are the refused requests, in the form of [Normalize].
	Requests []Request
	// Holders are the held or waiting requests that must end before these can be
	// granted, in the order of their arrival: at least one and at most
	// [Config.MaxHolders]. There are none if a wait ended at the moment of its
	// grant, or if the context had ended before the call. For ErrIDInUse they are
	// the requests of the acquisition with that id.
	Holders []Holder
	// More reports that there are more holders than Holders lists.
	More bool
	// Err is ErrConflict, ErrQueueFull or ErrIDInUse. If a wait was cancelled, Err
	// matches the error and the cause of the context.
	Err error
}

// shownInText is how many requests and holders the text of a ConflictError lists.
const shownInText = 3

// Error returns the refused requests, the reason, and up to three holders.
func (e *ConflictError) Error() string {
	var requests []string
	for _, r := range e.Requests[:min(len(e.Requests), shownInText)] {
		requests = append(requests, r.String())
	}
	text := "lock: " + strings.Join(requests, ", ")
	if rest := len(e.Requests) - shownInText; rest > 0 {
		text += " and " + strconv.Itoa(rest) + " more"
	}
	text += ": " + strings.TrimPrefix(fmt.Sprint(e.Err), "lock: ")
	for _, h := range e.Holders[:min(len(e.Holders), shownInText)] {
		text += "; " + h.String()
	}
	if e.More || len(e.Holders) > shownInText {
		text += "; and more"
	}
	return text
}

// Unwrap returns Err.
func (e *ConflictError) Unwrap() error { return e.Err }

// InvalidError describes malformed input. It matches [ErrInvalid].
type InvalidError struct {
	What   string // what is invalid: "path", "mode", "list", "id", ...
	Value  string // the whole value; Error cuts it to 80 bytes
	Reason string
}

// Error returns What, Value and Reason.
func (e *InvalidError) Error() string {
	value := e.Value
	if len(value) > 80 {
		value = value[:77] + "..."
	}
	return "lock: " + e.What + " " + strconv.Quote(value) + " " + e.Reason
}

// Is reports whether target is [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// LostError reports that a grant was taken away or revoked. It unwraps to Err.
type LostError struct {
	Token  Token  // 0: the request had no grant yet
	Reason string // of Break, Revoke or the driver
	Err    error  // ErrLost or ErrRevoked
}

// Error returns the text of Err, the token if there is one, and the reason.
func (e *LostError) Error() string {
	text := fmt.Sprint(e.Err)
	if e.Token != 0 {
		text += fmt.Sprintf(": token %d", e.Token)
	}
	if e.Reason != "" {
		text += ": " + printable(e.Reason)
	}
	return text
}

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// StaleTokenError reports a write that came too late. It matches [ErrStaleToken].
type StaleTokenError struct {
	Token   Token // of the write
	Highest Token // that the fence has admitted
}

// Error returns both tokens.
func (e *StaleTokenError) Error() string {
	return fmt.Sprintf("lock: token %d is stale: the fence has admitted token %d", e.Token, e.Highest)
}

// Is reports whether target is [ErrStaleToken].
func (e *StaleTokenError) Is(target error) bool { return target == ErrStaleToken }
