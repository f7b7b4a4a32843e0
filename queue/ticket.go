package queue

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Ticket is an accepted action. [Queuer.Submit] returns it. It is safe for
// concurrent use and must not be copied. The action runs also if the ticket is
// dropped.
type Ticket[K comparable] struct {
	q     *Queuer[K]
	act   *Action
	class *class[K]

	places []place[K]
	only   [1]place[K] // the places of a ticket with one key, in the same allocation

	seq      uint64
	turn     uint64 // 0: not in the ready list of its class
	err      error  // of the outcome, or of the last attempt
	state    ActionState
	outcome  Outcome
	hasShare bool          // it has a share of the limits: it counts as running in its class
	halts    bool          // its failure halts its lanes
	attempt  int32         // the number of attempts begun
	accepted time.Duration // of Queuer.now; 0: it has not come
	started  time.Duration
	ended    time.Duration
	due      time.Duration // end of Delay; 0: the action has none

	admitted chan struct{}           // closed when Admit has answered; nil without ID
	done     chan struct{}           // closed at the end; nil until a caller needs it
	cancel   context.CancelCauseFunc // of the context; nil if no worker runs the ticket
	signal   *EndError               // why it has to end; the first reason counts
	timer    *time.Timer             // of Delay, then of QueueTimeout, then of the back-off
}

// place is the place of a ticket in the lane of one key.
type place[K comparable] struct {
	key  K
	lane *lane[K] // nil: the key had none, see Queuer.findLanes
}

// needs reports whether the ticket has or needs a place in the lane of the key.
func (t *Ticket[K]) needs(key K) bool {
	return slices.ContainsFunc(t.places, func(p place[K]) bool { return p.key == key })
}

// Seq returns the place in the order of acceptance. It grows over all keys and is
// never repeated. It may serve as a fencing token. An action with a Delay gets a new
// one when it enters its lanes.
func (t *Ticket[K]) Seq() uint64 {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.seq
}

// Done returns a channel that is closed when the action has ended, was settled, and
// does not hold up later actions any more.
func (t *Ticket[K]) Done() <-chan struct{} {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.doneChannel()
}

// doneChannel returns the channel that is closed at the end. Most actions end before a
// caller needs it. REQUIRES: q.mu.
func (t *Ticket[K]) doneChannel() <-chan struct{} {
	if t.done == nil {
		t.done = make(chan struct{})
		if t.state == Ended {
			close(t.done)
		}
	}
	return t.done
}

// Outcome returns [Pending] until the action has ended.
func (t *Ticket[K]) Outcome() Outcome {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.state != Ended {
		return Pending
	}
	return t.outcome
}

// Err returns nil until the action has ended, and nil if it ended as [OK]. It
// returns the action's own error unchanged; all other errors are an [*EndError] or
// a [*PanicError].
func (t *Ticket[K]) Err() error {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.state != Ended {
		return nil
	}
	return t.err
}

// Wait waits until the action has ended and returns [Ticket.Err]. If ctx ends first,
// the error matches [ErrPending] and the cause of ctx; the action continues, and Wait
// may be called again.
//
// Inside an action, with its context or one derived from it, Wait returns
// [ErrWouldDeadlock] at once if this action may have to end first: because the other
// one is behind it in a lane, waits for a limit of which it holds a share, or waits
// for another action for which this holds; and for a delayed action, whose place is not
// known yet.
func (t *Ticket[K]) Wait(ctx context.Context) error {
	self, ctxDone := actionOf(ctx, t.q), ctx.Done() // the caller's code: before the lock
	t.q.mu.Lock()
	if t.state == Ended {
		defer t.q.mu.Unlock()
		return t.err
	}
	if self.runs() {
		if t.q.wouldDeadlock(self, t) {
			t.q.mu.Unlock()
			return fmt.Errorf("%w: %q waits for %q", ErrWouldDeadlock, self.act.Name, t.act.Name)
		}
		w := wait[K]{self, t, ctxDone}
		t.q.waits = append(t.q.waits, w)
		defer t.q.forget(w)
	}
	done := t.doneChannel()
	t.q.mu.Unlock()
	select {
	case <-done:
		return t.err
	case <-ctxDone:
		return fmt.Errorf("%w: %w", ErrPending, context.Cause(ctx))
	}
}

// forget removes a wait that is over.
func (q *Queuer[K]) forget(w wait[K]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waits, w)
	q.waits = slices.Delete(q.waits, i, i+1)
}

// Cancel ends a waiting action and ends the context of a running one. The first call
// counts. cause may be nil; the action's error contains it. A running action that
// nevertheless returns nil ends as [OK]. If it returns its own error, it ends as [Failed].
func (t *Ticket[K]) Cancel(cause error) Cancellation {
	q := t.q
	end := &EndError{Outcome: Canceled, Cause: cause}
	q.mu.Lock()
	if t.state == Running {
		t.interrupt(end)
		q.mu.Unlock()
		return Signalled
	}
	claimed := q.claim([]*Ticket[K]{t}, end)
	q.mu.Unlock()
	if len(claimed) == 0 {
		return Late
	}
	q.retireAll(claimed)
	return Withdrawn
}

// Info returns the present state of the action.
func (t *Ticket[K]) Info() Info[K] {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	return t.info()
}

// runs reports whether the action runs. The ticket may be nil. REQUIRES: q.mu.
func (t *Ticket[K]) runs() bool { return t != nil && t.state == Running }

type ticketKey struct{}

// Current returns the ticket of the action that the context belongs to. It returns
// nil if the context belongs to none, or to one with another type of keys.
func Current[K comparable](ctx context.Context) *Ticket[K] {
	t, _ := ctx.Value(ticketKey{}).(*Ticket[K])
	return t
}

// actionOf is Current for an action of this queue.
func actionOf[K comparable](ctx context.Context, q *Queuer[K]) *Ticket[K] {
	if t := Current[K](ctx); t != nil && t.q == q {
		return t
	}
	return nil
}
