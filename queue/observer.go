package queue

import "time"

// Observer is a set of functions that receive events. A nil function is not called.
// The functions run without a lock, possibly in several goroutines at once. The
// events of one action, and of the actions of one key, come in the order in which
// things happen: the queue waits for the function before it continues with the key.
// When [Queuer.Terminate] returns nil, all events were delivered. Started and Retried
// run inside the attempt: their panic becomes its outcome. A panic of the others is not
// recovered. It reaches the caller if the event comes from a call, such as Submit or
// [Ticket.Cancel], and otherwise it ends the process.
type Observer[K comparable] struct {
	// Accepted: Admit has agreed and the action is accepted.
	Accepted func(Accepted[K])
	// Started: an attempt begins.
	Started func(Started[K])
	// Retried: an attempt failed and another one follows.
	Retried func(Retried[K])
	// Finished: the action has its outcome and was settled.
	Finished func(Finished[K])
	// Halted: a failed action halted a lane.
	Halted func(Halted[K])
}

// Accepted is the acceptance of an action.
type Accepted[K comparable] struct{ Info[K] }

// Started is the begin of an attempt.
type Started[K comparable] struct{ Info[K] }

// Retried is a failed attempt that is repeated after Backoff.
type Retried[K comparable] struct {
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
