package lifecycle

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/queue"
)

// Ticket is an operation that [Manager.Do] has admitted. It is safe for concurrent
// use and may be dropped.
type Ticket[S comparable, T any] struct {
	o      *operation
	record func(*StoredRecord) Record[S, T]
}

// Admitted returns the record as it was admitted.
func (t *Ticket[S, T]) Admitted() Record[S, T] { return t.record(&t.o.admitted) }

// Operation returns the number of the operation.
func (t *Ticket[S, T]) Operation() OpID { return t.o.admitted.Operation }

// Done returns a channel that is closed when the outcome is written, or is known not
// to be.
func (t *Ticket[S, T]) Done() <-chan struct{} { return t.o.done }

// Wait waits for the outcome and returns the record with it. The error is nil if the work
// succeeded and the record has this outcome, otherwise an [OutcomeError]. If the operation
// was lost, Wait returns the record after the loss, if this process has read it and the
// object exists. Otherwise it returns the last record of the operation.
//
// If ctx ends first, the error is [queue.ErrPending], and Wait may be called again. Inside
// work that the operation waits for, the error is [queue.ErrWouldDeadlock].
func (t *Ticket[S, T]) Wait(ctx context.Context) (Record[S, T], error) {
	err := t.o.ticket.Wait(ctx)
	select {
	case <-t.o.ticket.Done():
	default:
		return t.Admitted(), err
	}
	if t.o.retrying.Load() {
		select {
		case <-t.o.done:
		case <-ctx.Done():
			return t.Admitted(), fmt.Errorf("%w: %w", queue.ErrPending, context.Cause(ctx))
		}
	}
	t.o.mu.Lock()
	defer t.o.mu.Unlock()
	select {
	case <-t.o.done:
	default: // the operation was abandoned while the store or an observer hangs
		return t.Admitted(), t.o.failure(outcomeOf(t.o.ticket.Outcome()), t.o.ticket.Err(), fmt.Errorf("lifecycle: %w", queue.ErrAbandoned))
	}
	return t.record(&t.o.last), t.o.err
}

// Cancel ends the work: at once if it waits, and through its context if it runs.
// The outcome is Canceled, unless the work succeeds or panics nevertheless.
func (t *Ticket[S, T]) Cancel(cause error) { t.o.ticket.Cancel(cause) }
