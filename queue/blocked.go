package queue

import (
	"context"
	"fmt"
	"slices"
)

// submitter is a goroutine that waits in Submit for room, and then for the answer of Admit.
type submitter[K comparable] struct {
	ticket   *Ticket[K]
	reserved bool          // the ticket has its places
	ready    chan struct{} // closed when it may call Admit or is refused
	mayAdmit bool          // ready is closed because it may call Admit
	refused  error         // ready is closed because of this
}

// block waits until the ticket has reserved places and then admits it. ctxDone is that of
// ctx. REQUIRES: q.mu, and releases it.
func (q *Queuer[K]) block(ctx context.Context, ctxDone <-chan struct{}, t, self *Ticket[K]) (*Ticket[K], error) {
	// The room might depend on the end of the action that waits for it: by its keys,
	// by its share of the limits, or because another action waits for it.
	if self.runs() {
		q.mu.Unlock()
		return nil, fmt.Errorf("%w: submit of %q waits for room inside %q", ErrWouldDeadlock, t.act.Name, self.act.Name)
	}
	s := &submitter[K]{ticket: t, ready: make(chan struct{})}
	q.blocked = append(q.blocked, s)
	q.grant() // there may be room: only an earlier submitter is not yet admitted
	q.mu.Unlock()
	select {
	case <-s.ready:
	case <-ctxDone:
	}
	q.mu.Lock()
	if s.mayAdmit { // also if the context ends at the same moment
		q.mu.Unlock()
		return q.admit(ctx, t)
	}
	defer q.mu.Unlock()
	if s.refused != nil {
		return nil, s.refused
	}
	if s.reserved {
		q.end(t) // an earlier submitter is being admitted
	} else {
		q.removeSubmitter(t)
	}
	in, _ := q.obstacle(t)
	return nil, q.refusal(t, ErrFull, in, context.Cause(ctx))
}

// removeSubmitter removes the submitter of a ticket, if it has one. It may have kept others
// from their room and from Admit. REQUIRES: q.mu.
func (q *Queuer[K]) removeSubmitter(t *Ticket[K]) {
	q.blocked = slices.DeleteFunc(q.blocked, func(s *submitter[K]) bool { return s.ticket == t })
	q.grant()
}

// wanted reports whether a blocked submitter has no room in the lane of the key, or, with
// reserved, is not yet admitted to it. REQUIRES: q.mu.
func (q *Queuer[K]) wanted(key K, reserved bool) bool {
	return slices.ContainsFunc(q.blocked, func(s *submitter[K]) bool {
		return (reserved || !s.reserved) && s.ticket.needs(key)
	})
}

// grant gives room to blocked submitters in the order of their arrival, and in this order it
// lets those of one key call Admit, one at a time, although each calls it in a goroutine of
// its own. One that does not fit keeps later ones from its lanes, but not from others.
// REQUIRES: q.mu.
func (q *Queuer[K]) grant() {
	if len(q.blocked) == 0 {
		return
	}
	wanted, admitting := make(map[K]bool), make(map[K]bool)
	// first reports whether no earlier submitter has a key of this one.
	first := func(t *Ticket[K], earlier map[K]bool) bool {
		return !slices.ContainsFunc(t.places, func(p place[K]) bool { return earlier[p.key] })
	}
	for _, s := range q.blocked {
		t, mark := s.ticket, admitting
		if !s.reserved && first(t, wanted) {
			q.findLanes(t)
			if _, reason := q.full(t); reason == nil {
				q.reserve(t)
				s.reserved = true
			}
		}
		if !s.reserved {
			mark = wanted
		} else if !s.mayAdmit && first(t, admitting) {
			s.mayAdmit = true
			close(s.ready)
		}
		for _, p := range t.places {
			mark[p.key] = true
		}
	}
}

// refuseBlocked refuses the blocked submitters that need the lane; nil: all of them.
// REQUIRES: q.mu.
func (q *Queuer[K]) refuseBlocked(reason error, in *lane[K]) {
	q.blocked = slices.DeleteFunc(q.blocked, func(s *submitter[K]) bool {
		if s.reserved || in != nil && !s.ticket.needs(in.key) {
			return false
		}
		s.refused = q.refusal(s.ticket, reason, in, nil)
		close(s.ready)
		return true
	})
}
