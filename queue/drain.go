package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Stop drains one key. The key accepts no more actions ([ErrStopping]), and blocked
// submitters of the key are refused. Its accepted actions run, and then the key may
// be used again. Stop returns nil when that is done, at once for a key without
// actions. If ctx ends first, it returns a [*DrainError]; the drain continues, and
// Stop may be called again. The actions of a halted lane run after [Queuer.Resume].
// Inside an action of this queue Stop returns [ErrWouldDeadlock] and changes nothing.
func (q *Queuer[K]) Stop(ctx context.Context, key K) error {
	self := actionOf(ctx, q)
	q.mu.Lock()
	defer q.mu.Unlock()
	if self.runs() {
		return fmt.Errorf("%w: stop inside %q", ErrWouldDeadlock, self.act.Name)
	}
	l := cmp.Or(q.lanes[key], &lane[K]{key: key})
	if l.drained == nil {
		l.drained = make(chan struct{})
	}
	drained := l.drained
	q.refuseBlocked(ErrStopping, l) // also if the key has no actions: they may wait for room in the queue
	q.grant()
	q.tidy(l)
	if q.awaitDrain(ctx, drained) {
		return nil
	}
	e := &DrainError{Key: key, Waiting: l.size(), Err: context.Cause(ctx)}
	if l.running() != nil {
		e.Waiting, e.Running = e.Waiting-1, 1
	}
	return e
}

// Terminate drains the queue. The queue accepts no more actions, for good
// ([ErrTerminated]), and its accepted actions run. Terminate returns nil when the
// last action has ended. If ctx ends first, it returns a [*DrainError]; the drain
// continues, and Terminate may be called again. Inside an action of this queue it
// returns [ErrWouldDeadlock] and changes nothing.
func (q *Queuer[K]) Terminate(ctx context.Context) error {
	self := actionOf(ctx, q)
	q.mu.Lock()
	defer q.mu.Unlock()
	if self.runs() {
		return fmt.Errorf("%w: terminate inside %q", ErrWouldDeadlock, self.act.Name)
	}
	q.close()
	if q.awaitDrain(ctx, q.drained) {
		return nil
	}
	return &DrainError{Waiting: q.waiting(), Running: q.running(), Err: context.Cause(ctx)}
}

// awaitDrain waits for the end of a drain and reports whether it came before the end of
// the context. REQUIRES: q.mu, which it releases while it waits.
func (q *Queuer[K]) awaitDrain(ctx context.Context, drained <-chan struct{}) bool {
	func() {
		q.mu.Unlock()
		defer q.mu.Lock() // also if a method of the context panics
		select {
		case <-drained:
		case <-ctx.Done():
		}
	}()
	select {
	case <-drained:
		return true
	default:
		return false
	}
}

// close makes the queue refuse all submits. REQUIRES: q.mu.
func (q *Queuer[K]) close() {
	if !q.closed {
		q.closed = true
		q.drained = make(chan struct{})
		q.refuseBlocked(ErrTerminated, nil)
		if q.total == 0 {
			q.finishDrain()
		}
	}
}

// finishDrain is the end of a closed queue that has no actions. REQUIRES: q.mu.
func (q *Queuer[K]) finishDrain() {
	q.lanes = nil // those that are left are halted and empty
	close(q.drained)
}

// Abort ends everything. The queue accepts no more actions, for good. Waiting actions
// end as [Aborted] and do not run. The contexts of running actions end with the
// cause, which may be nil. Abort does not wait for running actions;
// [Queuer.Terminate] does.
func (q *Queuer[K]) Abort(cause error) {
	end := &EndError{Outcome: Aborted, Cause: cause}
	q.mu.Lock()
	if q.aborted == nil {
		q.aborted = end
	}
	q.close()
	var all []*Ticket[K]
	for _, l := range q.lanes {
		for _, t := range l.tickets() {
			if t.places[0].lane == l {
				all = append(all, t)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Ticket[K]) int { return cmp.Compare(a.seq, b.seq) })
	claimed := q.claim(all, end)
	q.mu.Unlock()
	defer q.interruptAll(all, end, Aborted) // running actions end last, also if an observer panics
	q.retireAll(claimed)
}
