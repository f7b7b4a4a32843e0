package lifecycle

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/queue"
)

// Handle is an operation that [Manager.Do] has admitted. It is safe for concurrent
// use and may be dropped.
type Handle[S comparable, T any] struct {
	o      *operation
	record func(*StoredRecord) Record[S, T]
}

// Admitted returns the record as it was admitted.
func (h *Handle[S, T]) Admitted() Record[S, T] { return h.record(&h.o.admitted) }

// Operation returns the number of the operation.
func (h *Handle[S, T]) Operation() OpID { return h.o.admitted.Operation }

// Done returns a channel that is closed when the outcome is written, or is known not
// to be.
func (h *Handle[S, T]) Done() <-chan struct{} { return h.o.done }

// Wait waits for the outcome and returns the record with it. The error is nil if
// the work has succeeded and the record has that, else an [OutcomeError]. If the operation
// was lost, Wait returns the record after the loss, provided that this process has read it
// and the object exists. Otherwise it returns the last record of the operation.
//
// If ctx ends first, the error is [queue.ErrPending], and Wait may be called again.
// Inside work that the operation waits for, it is [queue.ErrWouldDeadlock].
func (h *Handle[S, T]) Wait(ctx context.Context) (Record[S, T], error) {
	err := h.o.ticket.Wait(ctx)
	select {
	case <-h.o.ticket.Done():
	default:
		return h.Admitted(), err
	}
	if h.o.retrying.Load() {
		select {
		case <-h.o.done:
		case <-ctx.Done():
			return h.Admitted(), fmt.Errorf("%w: %w", queue.ErrPending, context.Cause(ctx))
		}
	}
	h.o.mu.Lock()
	defer h.o.mu.Unlock()
	select {
	case <-h.o.done:
	default: // the operation was abandoned while the store or an observer hangs
		return h.Admitted(), h.o.failure(outcomeOf(h.o.ticket.Outcome()), h.o.ticket.Err(), fmt.Errorf("lifecycle: %w", queue.ErrAbandoned))
	}
	return h.record(&h.o.last), h.o.err
}

// Cancel ends the work: at once if it waits, and through its context if it runs.
// The outcome is Canceled, unless the work succeeds nevertheless.
func (h *Handle[S, T]) Cancel(cause error) { h.o.ticket.Cancel(cause) }
