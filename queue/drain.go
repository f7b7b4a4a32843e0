package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Stop drains one key: it takes no more actions ([ErrStopping]), those it has are
// run, and then the key is forgotten and may be used anew. Stop returns when that
// is done; a key that has nothing is done at once. If ctx ends first, the error is
// a [*DrainError]; the key goes on draining, and calling Stop again waits again.
// Submitters that wait for room are refused. A lane that stands still goes on
// standing still: resume it. Inside an action that the drain would wait for it
// returns [ErrWouldDeadlock] and changes nothing.
func (q *Queuer[K]) Stop(ctx context.Context, key K) error {
	q.prepare()
	self := acting(ctx, q)
	hashable(key)
	q.mu.Lock()
	l := q.lanes[key]
	if l == nil {
		q.mu.Unlock()
		return nil
	}
	if l.tail != nil && self != nil && self.state == Running {
		last := l.tail.ticket
		if q.deadlock(self, last) {
			q.mu.Unlock()
			return fmt.Errorf("%w: stop of key %v", ErrWouldDeadlock, key)
		}
		self.wait(last)
		defer self.waited(last)
	}
	l.stopping = true
	if l.drained == nil {
		l.drained = make(chan struct{})
	}
	done := l.drained
	for l.crowd != nil {
		q.dismiss(l.crowd.first.ticket.rare.submitter, ErrStopping)
	}
	q.grant()
	if q.lanes[key] == l {
		q.tidy(l)
	}
	q.mu.Unlock()
	select {
	case <-done:
		return nil
	default:
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lanes[key] != l || l.drained != done {
		return nil
	}
	e := &DrainError{Key: key, Err: context.Cause(ctx)}
	for o := l.head; o != nil; o = o.next {
		if o.ticket.holds {
			e.Running++
		} else {
			e.Waiting++
		}
	}
	return e
}

// Terminate drains everything: the queue takes no more actions, for good
// ([ErrTerminated]), and those it has are run. Terminate returns when the last
// one has ended. If ctx ends first, the error is a [*DrainError]; the queue goes
// on draining, and calling Terminate again waits again. Inside an action of this
// queue it returns [ErrWouldDeadlock] and changes nothing.
func (q *Queuer[K]) Terminate(ctx context.Context) error {
	q.prepare()
	self := acting(ctx, q)
	q.mu.Lock()
	if self != nil && self.state == Running {
		q.mu.Unlock()
		return fmt.Errorf("%w: terminate", ErrWouldDeadlock)
	}
	q.close()
	if q.total == 0 {
		q.mu.Unlock()
		return nil
	}
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	done := q.drained
	q.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.total == 0 {
		return nil
	}
	return &DrainError{Waiting: q.total - q.running, Running: q.running, Err: context.Cause(ctx)}
}

// close takes no more actions and sends blocked submitters away. REQUIRES: q.mu.
func (q *Queuer[K]) close() {
	q.closed = true
	for _, l := range q.lanes {
		for l.crowd != nil {
			q.dismiss(l.crowd.first.ticket.rare.submitter, ErrTerminated)
		}
	}
	if q.total == 0 {
		q.sweep()
	}
}

// sweep is the end of a closed queue that has run dry. REQUIRES: q.mu.
func (q *Queuer[K]) sweep() {
	// What stands still and is empty was kept for a Resume.
	for _, l := range q.lanes {
		l.stopping = true
		q.tidy(l)
	}
	if q.drained != nil {
		close(q.drained)
		q.drained = nil
	}
}

// Abort ends everything: the queue takes no more actions, for good; those that
// wait end as [Aborted] and do not run; the contexts of running ones end with the
// cause, which may be nil. It does not wait for these: [Queuer.Terminate] does.
func (q *Queuer[K]) Abort(cause error) {
	q.prepare()
	now := q.now()
	end := &EndError{Outcome: Aborted, Cause: cause}
	q.mu.Lock()
	if q.aborted == nil {
		q.aborted = end
	}
	q.close()
	var all []*Ticket[K]
	for _, l := range q.lanes {
		for e := l.head; e != nil; e = e.next {
			if e == &e.ticket.entry {
				all = append(all, e.ticket)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Ticket[K]) int { return cmp.Compare(a.seq, b.seq) })
	loud := q.claim(slices.Clone(all), end, now)
	q.mu.Unlock()
	// The running ones after those that waited, so that they end last; also if
	// somebody's Settle does not return.
	defer q.stop(all, end, Aborted)
	q.retireAll(loud)
}
