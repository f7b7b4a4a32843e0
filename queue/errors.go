package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// One sentinel per reaction. A refused submit is a [*RefusedError]: nothing has
// changed.
var (
	// ErrInvalid: the call is wrong regardless of the state of the queue. The error
	// is an [*InvalidError].
	ErrInvalid = errors.New("queue: invalid")
	// ErrTerminated: the queue accepts no more actions.
	ErrTerminated = errors.New("queue: terminated")
	// ErrStopping: the key is being drained. Submit again after that.
	ErrStopping = errors.New("queue: stopping")
	// ErrFull: there is no room under MaxPerKey or MaxWaiting. Submit again later.
	ErrFull = errors.New("queue: full")
	// ErrConflict: Admit refused the action, or the submitter's context ended before the
	// Admit of an action with the same ID answered. The error also matches the error of
	// Admit, or the cause of the context.
	ErrConflict = errors.New("queue: conflict")
	// ErrIDInUse: the ID belongs to an action with another name, class or Coalesce or
	// with other keys, which has not ended. Use another ID.
	ErrIDInUse = errors.New("queue: the id is in use for another action")
	// ErrWouldDeadlock: an action called a function that might wait for the end of
	// this action.
	ErrWouldDeadlock = errors.New("queue: would wait for itself")
	// ErrNotDrained: the context of Stop or Terminate ended first. The error is a
	// [*DrainError].
	ErrNotDrained = errors.New("queue: not drained")
	// ErrPending: the context of Wait ended first. The action continues.
	ErrPending = errors.New("queue: action has not ended")
)

// The error of a ticket matches one of these, by outcome. [*EndError] has the cause,
// [*PanicError] the stack. An error that the action returned is kept unchanged.
var (
	ErrPanic      = errors.New("queue: panic in action")
	ErrTimeout    = errors.New("queue: timeout")
	ErrCanceled   = errors.New("queue: canceled")
	ErrSuperseded = errors.New("queue: superseded")
	ErrPreempted  = errors.New("queue: preempted")
	ErrAborted    = errors.New("queue: aborted")
	ErrExpired    = errors.New("queue: expired")
	ErrSkipped    = errors.New("queue: skipped")
	ErrAbandoned  = errors.New("queue: abandoned")
)

var sentinels = map[Outcome]error{
	TimedOut: ErrTimeout, Canceled: ErrCanceled, Superseded: ErrSuperseded, Preempted: ErrPreempted,
	Aborted: ErrAborted, Expired: ErrExpired, Skipped: ErrSkipped, Abandoned: ErrAbandoned,
}

// RefusedError is the error of a submit that was not accepted. It matches Reason and
// Err.
type RefusedError struct {
	Reason error // ErrTerminated, ErrStopping, ErrFull, ErrConflict or ErrIDInUse
	Name   string
	// Key is the submitted key that is in the way, with the key type of the queue.
	// nil: none is. The queue as a whole refuses, the ID is in use, or Admit refuses an
	// action whose keys are idle.
	Key any
	// Running is the name of the action that runs for Key since Since. Without Key, it runs
	// for one of the submitted keys. Both are zero if none runs. Waiting counts the actions
	// that wait for Key, or in the queue if that refuses as a whole.
	Running string
	Since   time.Time
	Waiting int
	// Admitting counts those of them that Admit may still refuse, if the lane of Key
	// is full: there may be room soon.
	Admitting int
	Err       error // of Admit, the cause of the submitter's context, or the action with the ID
}

// Error returns what was refused, the reason, and what is in the way.
func (e *RefusedError) Error() string {
	var b strings.Builder
	b.WriteString(e.Reason.Error())
	if e.Key != nil {
		fmt.Fprintf(&b, ": key %v", e.Key)
	}
	if e.Name != "" {
		fmt.Fprintf(&b, ": %s refused", e.Name)
	}
	if !e.Since.IsZero() {
		running := e.Running
		if running == "" {
			running = "an action"
		}
		fmt.Fprintf(&b, ": %s runs since %s", running, e.Since.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, ", %d waiting", e.Waiting)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns Reason and Err.
func (e *RefusedError) Unwrap() error { return errors.Join(e.Reason, e.Err) }

// InvalidError is the error of a wrong call. It matches [ErrInvalid]. Nothing has
// changed.
type InvalidError struct {
	Field   string // of Action or Config, or "keys"
	Problem string
}

// Error returns the field and the problem.
func (e *InvalidError) Error() string { return ErrInvalid.Error() + " " + e.Field + ": " + e.Problem }

// Is matches [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// EndError is the error of an action that was ended from outside. While the action
// runs, it is the cause of its context. It matches the sentinel of Outcome, Cause and
// Err.
type EndError struct {
	Outcome Outcome
	Cause   error // as given to Cancel or Abort, or of Config.Base; may be nil
	Err     error // the last error of the action or its guard; may be nil
}

// Error returns the outcome, the cause and the last error.
func (e *EndError) Error() string {
	text, cause := "queue: "+e.Outcome.String(), ""
	if e.Cause != nil {
		cause = e.Cause.Error()
		text += ": " + cause
	}
	if e.Err != nil && e.Err.Error() != cause { // to compare the errors panics for some types
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the sentinel of Outcome, Cause and Err.
func (e *EndError) Unwrap() error { return errors.Join(sentinels[e.Outcome], e.Cause, e.Err) }

// PanicError is the error of an action that panicked or called runtime.Goexit. It
// matches [ErrPanic], and Value if that is an error.
type PanicError struct {
	Value  any // of the panic; nil for Goexit
	Goexit bool
	Stack  []byte // of the panic; nil for Goexit
}

// Error returns the value.
func (e *PanicError) Error() string {
	if e.Goexit {
		return ErrPanic.Error() + ": runtime.Goexit"
	}
	return fmt.Sprintf("%v: %v", ErrPanic, e.Value)
}

// Unwrap returns [ErrPanic], and Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return errors.Join(ErrPanic, err)
}

// DrainError reports what was left when the context of a drain ended. It matches
// [ErrNotDrained] and Err. The drain continues.
type DrainError struct {
	Key     any // of [Queuer.Stop]; nil for [Queuer.Terminate]
	Waiting int
	Running int
	Err     error // the cause of the context
}

// Error returns the counts.
func (e *DrainError) Error() string {
	text := ErrNotDrained.Error()
	if e.Key != nil {
		text += fmt.Sprintf(": key %v", e.Key)
	}
	return fmt.Sprintf("%s: %d waiting, %d running: %v", text, e.Waiting, e.Running, e.Err)
}

// Unwrap returns [ErrNotDrained] and Err.
func (e *DrainError) Unwrap() error { return errors.Join(ErrNotDrained, e.Err) }
