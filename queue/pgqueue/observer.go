package pgqueue

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/queue"
)

// Observer is a set of functions that receive the events of one worker. A nil function is
// not called. The functions run without a lock, in several goroutines at once. The events
// of one start of an action come in their order. A panic of a function continues and ends
// the process.
type Observer struct {
	// Started: an attempt begins.
	Started func(context.Context, Started)
	// Retried: an attempt has failed and another one follows, or the worker has put the
	// action back because it stops or has no handler.
	Retried func(context.Context, FailedAttempt)
	// Finished: the end of the action is committed.
	Finished func(context.Context, Finished)
	// Lost: the end of the attempt was refused, because another worker has the action, or
	// the action is gone. If an Error came before, this worker itself may have ended it.
	Lost func(context.Context, Lost)
	// Error: a statement or Settle has failed. The worker tries again.
	Error func(context.Context, error)
}

// report calls a function of the observer.
func report[E any](ctx context.Context, to func(context.Context, E), event E) {
	if to != nil {
		to(ctx, event)
	}
}

// Started is the begin of an attempt.
type Started struct{ *Task }

// FailedAttempt is the end of an attempt that is repeated after Pause.
type FailedAttempt struct {
	*Task
	Reason error
	Pause  time.Duration
}

// Finished is the end of an action.
type Finished struct {
	*Task
	Outcome queue.Outcome
	Err     error
}

// Lost is an attempt whose end was refused.
type Lost struct {
	*Task
	Outcome queue.Outcome
	Err     error
}
