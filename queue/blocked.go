package queue

import (
	"context"
	"fmt"
	"slices"
)

// submitter is a goroutine that waits in Submit for room.
type submitter[K comparable] struct {
	ticket *Ticket[K]
	ready  chan struct{} // closed when it has its places or reason is set
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
	q.blocked = append(q.blocked, s)
	q.mu.Unlock()
	select {
	case <-s.ready:
	case <-ctx.Done():
	}
	q.mu.Lock()
	// If the context ends at the moment at which the submitter gets its places, it
	// keeps them: they are counted.
	if i := slices.Index(q.blocked, s); i >= 0 {
		q.blocked = slices.Delete(q.blocked, i, i+1)
		defer q.mu.Unlock()
		q.grant() // it may have kept others from their room
		return nil, q.refusal(t, ErrFull, q.lanes[t.places[0].key], context.Cause(ctx))
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
			close(s.ready)
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
