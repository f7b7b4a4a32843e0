package queue

import (
	"context"
	"fmt"
	"math"
)

// submitter is a goroutine that waits in Submit for room.
type submitter[K comparable] struct {
	ticket *Ticket[K]
	ready  chan struct{} // closed when placed or reason is set
	placed bool
	reason error

	arrival uint64
	// short is why it cannot have its places, apart from MaxWaiting:
	// lanes where it is not the first of the crowd or that have no room; gone,
	// when it does not wait any more.
	short int
	roomy bool // it is in the heap
}

const gone = math.MaxInt

// block waits until the ticket has a reserved place, and goes on as if it had
// found one. REQUIRES: q.mu, and unlocks it.
func (q *Queuer[K]) block(ctx context.Context, t *Ticket[K]) (*Ticket[K], error) {
	// An action that waited for room could be what the room waits for: by its
	// keys, by its share of the limits, or because somebody waits for it. So none
	// of this queue's own does.
	if self := acting(ctx, q); self != nil && self.state == Running {
		q.mu.Unlock()
		return nil, q.tellDeadlock(t, self)
	}
	t.blocked = true
	s := &submitter[K]{ticket: t, ready: make(chan struct{})}
	q.enter(t)
	q.join(s)
	q.mu.Unlock()
	select {
	case <-s.ready:
	case <-ctx.Done():
	}
	q.mu.Lock()
	t.blocked = false
	// A place that was given while the context ended is taken: whoever gave it
	// has counted it.
	if s.placed {
		q.mu.Unlock()
		return q.admit(ctx, t)
	}
	reason, err := s.reason, error(nil)
	in := q.lanes[t.entry.key]
	if reason == ErrTerminated {
		in = nil
	}
	if reason == nil {
		reason, err = ErrFull, context.Cause(ctx)
	}
	refused := q.refusedError(t, reason, in, err)
	if s.reason == nil {
		q.dismiss(s, nil)
		// It may have been in the way of those behind it.
		q.grant()
	}
	q.mu.Unlock()
	q.tellRefused(t.keys(), t.act, refused)
	return nil, refused
}

// tellDeadlock refuses a submit inside an action that might wait for itself.
func (q *Queuer[K]) tellDeadlock(t, self *Ticket[K]) error {
	err := fmt.Errorf("%w: %s would wait for room inside %s", ErrWouldDeadlock,
		or(t.act.Name, "an action"), or(self.act.Name, "an action"))
	q.tellRefused(t.keys(), t.act, err)
	return err
}

// grant gives room to blocked submitters, in the order in which they came. One
// that does not fit keeps those behind it from its lanes, but not from others.
// REQUIRES: q.mu.
func (q *Queuer[K]) grant() {
	for len(q.roomy) > 0 {
		if q.maxWaiting > 0 && q.total-q.running >= q.maxWaiting {
			return
		}
		s := q.roomy.pop()
		if s.short > 0 {
			continue
		}
		q.part(s)
		q.place(s.ticket)
		s.ticket.missing++ // its own goroutine confirms it
		s.placed = true
		close(s.ready)
	}
}

// dismiss sends a blocked submitter away. REQUIRES: q.mu.
func (q *Queuer[K]) dismiss(s *submitter[K], reason error) {
	q.part(s)
	s.short = gone
	for e := range s.ticket.entries {
		q.tidy(e.lane)
		e.lane = nil
	}
	q.forget(s.ticket)
	if reason != nil {
		s.reason = reason
		close(s.ready)
	}
}
