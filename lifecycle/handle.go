package lifecycle

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/queue"
)

// Handle is an operation that [Manager.Do] has admitted. It is safe for
// concurrent use, must not be copied, and may be forgotten.
type Handle[S comparable, T any] struct {
	admitted Record[S, T]
	ticket   *queue.Ticket[Key]

	// Written before it is settled, read afterwards. The ticket may be done before,
	// when the queue is told to abandon an operation whose store hangs.
	last    Record[S, T]
	err     error
	settled atomic.Bool
}

// Admitted returns the record as it was admitted.
func (h *Handle[S, T]) Admitted() Record[S, T] { return h.admitted }

// Operation returns the number of the operation, of a chain that of the first.
func (h *Handle[S, T]) Operation() OpID { return h.admitted.Operation }

// Done is closed when the outcome is decided.
func (h *Handle[S, T]) Done() <-chan struct{} { return h.ticket.Done() }

// Wait waits for the outcome and returns the record that it was written in, and
// nil if the work succeeded. Otherwise the error is an [OutcomeError]; the record
// is then the last that is known: of a lost operation as others have left the
// object, where this process has seen that and it exists, else as the operation
// has. If ctx ends first, the error is
// [queue.ErrPending], and Wait may be called again; inside work that the
// operation waits for, [queue.ErrWouldDeadlock].
func (h *Handle[S, T]) Wait(ctx context.Context) (Record[S, T], error) {
	err := h.ticket.Wait(ctx)
	if err == nil && h.settled.Load() {
		return h.last, h.err // it has ended well, no need to ask
	}
	select {
	case <-h.ticket.Done():
		if !h.settled.Load() {
			return h.admitted, h.unsettled()
		}
		return h.last, h.err
	default:
		return h.admitted, err
	}
}

// unsettled is the error of an operation whose outcome is still being written, by
// a store or for an observer that was given up.
func (h *Handle[S, T]) unsettled() error {
	return &OutcomeError{
		Key: h.ticket.Info().Keys[0], Operation: h.admitted.Operation, Outcome: outcomeOf(h.ticket.Outcome()),
		Err: h.ticket.Err(), Unwritten: fmt.Errorf("lifecycle: %w", queue.ErrAbandoned),
	}
}

// Cancel tells the work to end: it ends at once if it waits, and its context
// ends if it runs. The outcome is Canceled, unless it succeeds all the same.
func (h *Handle[S, T]) Cancel(cause error) { h.ticket.Cancel(cause) }
