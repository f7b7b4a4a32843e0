package queue

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// One sentinel per reaction. Refusals of a submit are [*RefusedError]: nothing
// was changed.
var (
	// ErrInvalid: the call itself is wrong, whatever the state of the queue:
	// [*InvalidError].
	ErrInvalid = errors.New("queue: invalid")
	// ErrTerminated: the queue takes no more actions.
	ErrTerminated = errors.New("queue: terminated")
	// ErrStopping: the key is being drained. Ask again when that is done.
	ErrStopping = errors.New("queue: stopping")
	// ErrFull: no room under MaxPerKey or MaxWaiting. Ask again later.
	ErrFull = errors.New("queue: full")
	// ErrConflict: Admit refused, or failed: the error matches what it returned
	// too.
	ErrConflict = errors.New("queue: conflict")
	// ErrWouldDeadlock: an action asked to wait for something that waits for it.
	ErrWouldDeadlock = errors.New("queue: would wait for itself")
	// ErrNotDrained: Stop or Terminate gave up waiting: [*DrainError].
	ErrNotDrained = errors.New("queue: not drained")
	// ErrPending: a wait was given up; the action goes on. Ask again.
	ErrPending = errors.New("queue: action has not ended")
)

// What a ticket's error matches, by outcome: [*EndError] has the cause,
// [*PanicError] the stack. An error that the action returned is kept as it is.
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

var sentinels = [...]error{
	TimedOut: ErrTimeout, Canceled: ErrCanceled, Superseded: ErrSuperseded, Preempted: ErrPreempted,
	Aborted: ErrAborted, Expired: ErrExpired, Skipped: ErrSkipped, Abandoned: ErrAbandoned,
}

// RefusedError is a submit that was not accepted. It matches Reason and Err.
type RefusedError struct {
	Reason error // ErrTerminated, ErrStopping, ErrFull or ErrConflict
	Name   string
	// Key is the one of the submitted keys that is in the way, of the key type
	// of the queue. nil: none is, the queue as a whole refuses.
	Key any
	// Running is the name of the action that runs for Key, since Since; zero if
	// none does. Waiting counts those that wait for Key, or in the whole queue.
	Running string
	Since   time.Time
	Waiting int
	Err     error // what Admit returned, or how the submitter's context ended
}

// Error says what was refused, why, and what is in the way.
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
		fmt.Fprintf(&b, ": %s runs since %s", or(e.Running, "an action"), e.Since.UTC().Format(time.RFC3339))
	}
	fmt.Fprintf(&b, ", %d waiting", e.Waiting)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns Reason and Err.
func (e *RefusedError) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Reason}
	}
	return []error{e.Reason, e.Err}
}

// InvalidError is a wrong call. It matches [ErrInvalid]. Nothing was changed.
type InvalidError struct {
	Field   string // of Action or Config, or "keys"
	Problem string
}

// Error names field and problem.
func (e *InvalidError) Error() string { return ErrInvalid.Error() + " " + e.Field + ": " + e.Problem }

// Is matches [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// EndError is how an action ended that did not end by itself; while it still
// runs, it is the cause of its context. It matches the sentinel of Outcome,
// Cause and Err.
type EndError struct {
	Outcome Outcome
	Cause   error // why it was ended, as given by whoever did it; may be nil
	Err     error // what the action or its guard returned last; may be nil
}

// Error says how and why.
func (e *EndError) Error() string {
	text := e.sentinel().Error()
	if e.Cause != nil {
		text += ": " + e.Cause.Error()
	}
	if e.Err != nil && e.Err != e.Cause {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *EndError) sentinel() error {
	if int(e.Outcome) < len(sentinels) && sentinels[e.Outcome] != nil {
		return sentinels[e.Outcome]
	}
	return ErrInvalid
}

// Is matches the sentinel of Outcome.
func (e *EndError) Is(target error) bool { return target == e.sentinel() }

// Unwrap returns what there is of Cause and Err.
func (e *EndError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Cause, e.Err} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// PanicError is the outcome of an action that panicked or called
// runtime.Goexit. It matches [ErrPanic], and Value if that is an error.
type PanicError struct {
	Value  any // given to panic; nil for Goexit
	Goexit bool
	Stack  []byte // of the panic; nil for Goexit
}

// Error gives the value.
func (e *PanicError) Error() string {
	if e.Goexit {
		return ErrPanic.Error() + ": runtime.Goexit"
	}
	return fmt.Sprintf("%v: %v", ErrPanic, e.Value)
}

// Is matches [ErrPanic].
func (e *PanicError) Is(target error) bool { return target == ErrPanic }

// Unwrap returns Value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// DrainError says what was left when a drain was given up. It matches
// [ErrNotDrained] and Err. What is draining goes on draining, and stays closed.
type DrainError struct {
	Key     any // of [Queuer.Stop]; nil for [Queuer.Terminate]
	Waiting int
	Running int
	Err     error // how the context ended
}

// Error gives the counts.
func (e *DrainError) Error() string {
	text := ErrNotDrained.Error()
	if e.Key != nil {
		text += fmt.Sprintf(": key %v", e.Key)
	}
	return fmt.Sprintf("%s: %d waiting, %d running: %v", text, e.Waiting, e.Running, e.Err)
}

// Unwrap returns [ErrNotDrained] and Err.
func (e *DrainError) Unwrap() []error { return []error{ErrNotDrained, e.Err} }

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
