package queue

import "time"

// Observer is told what a queue does. A nil function is not called. Functions
// are called without a lock, and may be called from many goroutines at once; of
// one action, and of the actions of one key, in the order in which things
// happen: the queue waits for them before it goes on with that key. When
// [Queuer.Terminate] has returned nil, everything was told.
type Observer[K comparable] struct {
	// Accepted: a place became real.
	Accepted func(Accepted[K])
	// Refused: a submit was not accepted.
	Refused func(Refused[K])
	// Started: an attempt begins.
	Started func(Started[K])
	// Retried: an attempt failed and there will be another one.
	Retried func(Retried[K])
	// Finished: the outcome is decided, and settled.
	Finished func(Finished[K])
	// Halted: a failed action brought a lane to a stand.
	Halted func(Halted[K])
}

// Accepted is an action that has got a place.
type Accepted[K comparable] struct{ Info[K] }

// Refused is a submit that was not accepted.
type Refused[K comparable] struct {
	Keys []K
	Name string
	Err  error // an [*InvalidError], a [*RefusedError] or [ErrWouldDeadlock]
}

// Started is an attempt that begins.
type Started[K comparable] struct {
	Info[K]
	Waited time.Duration // since acceptance or, later than the first attempt, since the last one
}

// Retried is an attempt that failed.
type Retried[K comparable] struct {
	Info[K]
	Failed  Outcome // Failed or TimedOut
	Reason  error
	Backoff time.Duration
}

// Finished is the end of an action; Info has outcome and error.
type Finished[K comparable] struct {
	Info[K]
	Ran time.Duration // the last attempt; 0 if none was begun
}

// Halted is a lane that stands still.
type Halted[K comparable] struct {
	Key    K
	Failed Info[K] // the action that did it
}
