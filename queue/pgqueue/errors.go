package pgqueue

import "errors"

// A call or a configuration that is wrong is refused with a [*queue.InvalidError], which
// matches [queue.ErrInvalid].
var (
	// ErrNoHandler: the worker has no handler of the action's name. The action waits for
	// the time of a lease, and is then tried again by any worker.
	ErrNoHandler = errors.New("pgqueue: no handler")
	// ErrLost: the lease of an action has ended, and another worker may run the action. It
	// is the cause of the handler's context.
	ErrLost = errors.New("pgqueue: the lease was lost")
	// ErrInterrupted: the last attempt of an action has ended with its worker.
	ErrInterrupted = errors.New("pgqueue: the attempt was not completed")
)
