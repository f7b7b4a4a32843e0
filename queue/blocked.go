package queue

import (
	"context"
	"fmt"
	"slices"
)

// submitter is a goroutine that waits in Submit for room.
type submitter[K comparable] struct {
	ticket *Ticket[K]
	ready  chan struct{} // closed when placed or reason is set
	placed bool
	reason error
}

// block waits until the ticket has a reserved place, and goes on as if it had
// found one. REQUIRES: q.mu, and unlocks it.
func (q *Queuer[K]) block(ctx context.Context, t *Ticket[K]) (*Ticket[K], error) {
	if self := acting(ctx, q); self != nil && self.state == Running && self.shares(t) {
		q.mu.Unlock()
		err := fmt.Errorf("%w: no room behind %s", ErrWouldDeadlock, or(self.act.Name, "an action"))
		q.tellRefused(t.keys(), t.act, err)
		return nil, err
	}
	s := &submitter[K]{ticket: t, ready: make(chan struct{})}
	q.blocked = append(q.blocked, s)
	q.enter(t)
	for e := range t.entries {
		e.lane = q.laneOf(e.key)
		e.lane.blocked++
	}
	q.mu.Unlock()
	select {
	case <-s.ready:
	case <-ctx.Done():
	}
	q.mu.Lock()
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

// shares reports whether the two have a key in common. REQUIRES: q.mu.
func (t *Ticket[K]) shares(o *Ticket[K]) bool {
	for e := range t.entries {
		for f := range o.entries {
			if e.key == f.key {
				return true
			}
		}
	}
	return false
}

// grant gives room to blocked submitters. One that does not fit keeps those
// behind it from its lanes, but not from others. REQUIRES: q.mu.
func (q *Queuer[K]) grant() {
	q.scan++
	for i := 0; i < len(q.blocked); {
		if q.maxWaiting > 0 && q.total-q.running >= q.maxWaiting {
			return
		}
		s := q.blocked[i]
		fits := true
		for e := range s.ticket.entries {
			if e.lane.scan == q.scan || q.maxPerKey > 0 && int(e.lane.depth) >= q.maxPerKey {
				fits = false
			}
		}
		if !fits {
			for e := range s.ticket.entries {
				e.lane.scan = q.scan
			}
			i++
			continue
		}
		q.blocked = slices.Delete(q.blocked, i, i+1)
		for e := range s.ticket.entries {
			e.lane.blocked--
		}
		q.place(s.ticket)
		s.ticket.missing++ // its own goroutine confirms it
		s.placed = true
		close(s.ready)
	}
}

// dismiss sends a blocked submitter away. REQUIRES: q.mu.
func (q *Queuer[K]) dismiss(s *submitter[K], reason error) {
	if i := slices.Index(q.blocked, s); i >= 0 {
		q.blocked = slices.Delete(q.blocked, i, i+1)
	}
	for e := range s.ticket.entries {
		e.lane.blocked--
		q.tidy(e.lane)
		e.lane = nil
	}
	q.forget(s.ticket)
	if reason != nil {
		s.reason = reason
		close(s.ready)
	}
}
