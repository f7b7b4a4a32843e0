package queue

import (
	"context"
	"fmt"
	"slices"
)

// submitter is a goroutine that waits in Submit for room.
type submitter[K comparable] struct {
	ticket *Ticket[K]
	ready  chan struct{} // closed when it may call Admit or reason is set
	called bool          // ready is closed because it may call Admit
	reason error
	in     *lane[K] // of reason
}

// block waits until the ticket has reserved places and then admits it. REQUIRES:
// q.mu, and releases it.
func (q *Queuer[K]) block(ctx context.Context, t, self *Ticket[K]) (*Ticket[K], error) {
	// The room might depend on the end of the action that waits for it: by its keys,
	// by its share of the limits, or because another action waits for it.
	if self.runs() {
		q.mu.Unlock()
		return nil, fmt.Errorf("%w: submit of %q waits for room inside %q", ErrWouldDeadlock, t.act.Name, self.act.Name)
	}
	s := &submitter[K]{ticket: t, ready: make(chan struct{})}
	t.submitter = s
	q.blocked = append(q.blocked, s)
	q.grant() // there may be room: only the earlier submitters are not yet admitted
	q.mu.Unlock()
	select {
	case <-s.ready:
	case <-ctx.Done():
	}
	q.mu.Lock()
	select {
	case <-s.ready: // also if the context ends at the same moment
	default:
		defer q.mu.Unlock()
		if i := slices.Index(q.blocked, s); i >= 0 {
			q.blocked = slices.Delete(q.blocked, i, i+1)
			q.grant() // it may have kept others from their room
		} else {
			q.end(t) // it has its places, and an earlier submitter is being admitted
		}
		in, _ := q.obstacle(t) // what is still in the way
		return nil, q.refusal(t, ErrFull, in, context.Cause(ctx))
	}
	if s.reason != nil {
		defer q.mu.Unlock()
		return nil, q.refusal(t, s.reason, s.in, nil)
	}
	q.mu.Unlock()
	return q.admit(ctx, t)
}

// awaited reports whether a blocked submitter needs room in the lane of the key.
// REQUIRES: q.mu.
func (q *Queuer[K]) awaited(key K) bool {
	return slices.ContainsFunc(q.blocked, func(s *submitter[K]) bool { return s.ticket.needs(key) })
}

// grant gives room to blocked submitters in the order of their arrival. One that
// does not fit keeps later ones from its lanes, but not from others. REQUIRES: q.mu.
func (q *Queuer[K]) grant() {
	if len(q.blocked) == 0 {
		return
	}
	taken := make(map[K]bool)
	left := q.blocked[:0]
	for _, s := range q.blocked {
		overtakes := slices.ContainsFunc(s.ticket.places, func(p place[K]) bool { return taken[p.key] })
		q.find(s.ticket)
		if _, reason := q.full(s.ticket); reason == nil && !overtakes {
			q.place(s.ticket)
			for _, p := range s.ticket.places {
				p.lane.waited = append(p.lane.waited, s.ticket)
			}
			s.ticket.admitNext()
			continue
		}
		left = append(left, s)
		for _, p := range s.ticket.places {
			taken[p.key] = true
		}
	}
	clear(q.blocked[len(left):])
	q.blocked = left
}

// admitNext lets a submitter that waited call Admit if it is the first of those in
// all its lanes. So submitters that wait for room of one key are admitted in the
// order of their calls, one at a time, although each calls Admit in a goroutine of
// its own. REQUIRES: q.mu.
func (t *Ticket[K]) admitNext() {
	first := !slices.ContainsFunc(t.places, func(p place[K]) bool { return p.lane.waited[0] != t })
	if first && !t.submitter.called {
		t.submitter.called = true
		close(t.submitter.ready)
	}
}

// answered comes after Admit: the next submitters may call it. REQUIRES: q.mu.
func (q *Queuer[K]) answered(t *Ticket[K]) {
	if t.submitter == nil {
		return
	}
	for _, p := range t.places {
		p.lane.waited = remove(p.lane.waited, slices.Index(p.lane.waited, t))
	}
	for _, p := range t.places {
		if len(p.lane.waited) > 0 {
			p.lane.waited[0].admitNext()
		}
	}
	t.submitter = nil
}

// dismiss refuses the blocked submitters that need the lane; nil: all of them.
// REQUIRES: q.mu.
func (q *Queuer[K]) dismiss(reason error, in *lane[K]) {
	q.blocked = slices.DeleteFunc(q.blocked, func(s *submitter[K]) bool {
		if in != nil && !s.ticket.needs(in.key) {
			return false
		}
		s.reason, s.in = reason, in
		close(s.ready)
		return true
	})
}
