package queue

import (
	"context"
	"time"
)

// Observer is a set of functions that receive events. A nil function is not called. The
// functions run without a lock, possibly in several goroutines at once. The events of one
// action, and of the actions of one key, arrive in the order in which they occur: the
// queue waits for the function before it continues with the key. Accepted receives the
// context of Submit. Started and Retried receive the context of the attempt. Finished and
// Halted receive the context of the queue, like [Action].Settle. When [Queuer.Terminate]
// returns nil, all events were delivered.
//
// A panic or runtime.Goexit of a function undoes nothing: the event has happened. All other
// functions that are due are still called, and all waits that are due still end.
// Then the panic continues in the call that caused the event, such as Submit or
// [Ticket.Cancel]. An action whose Accepted panics is accepted, and runs. In a goroutine of
// the queue the panic becomes the outcome of the action, [Panicked], also if it was another
// one before; an attempt whose Started panics does not call Run. Package lock has the same
// rule.
type Observer[K comparable] struct {
	// Accepted: Admit has agreed and the action is accepted.
	Accepted func(context.Context, Accepted[K])
	// Started: an attempt begins.
	Started func(context.Context, Started[K])
	// Retried: an attempt failed and another one follows.
	Retried func(context.Context, FailedAttempt[K])
	// Finished: the action has its outcome and was settled.
	Finished func(context.Context, Finished[K])
	// Halted: a failed action halted a lane.
	Halted func(context.Context, Halted[K])
}

// Accepted is the acceptance of an action.
type Accepted[K comparable] struct{ Info[K] }

// Started is the start of an attempt.
type Started[K comparable] struct{ Info[K] }

// FailedAttempt is an attempt that failed and is repeated after Backoff.
type FailedAttempt[K comparable] struct {
	Info[K]
	Failed  Outcome // Failed or TimedOut
	Reason  error
	Backoff time.Duration
}

// Finished is the end of an action. Info has its outcome and error.
type Finished[K comparable] struct{ Info[K] }

// Halted is a lane that was halted by the failed action.
type Halted[K comparable] struct {
	Key    K
	Failed Info[K]
}
