package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Submit gives the action a place at the end of the key's lane and returns its
// ticket. It waits only for Admit, and for room if Action.Wait is set. ctx limits
// these two and does not influence the action itself.
//
// Submit checks in this order: the action itself ([*InvalidError]); whether a ticket
// with its ID exists, and whether that is for the same request; whether the queue is
// terminated, a key is stopping, there is room, and Admit agrees ([*RefusedError]).
// After an error nothing has changed, and Settle is not called. Inside an action, a submit
// that would wait for room returns [ErrWouldDeadlock].
func (q *Queuer[K]) Submit(ctx context.Context, key K, act *Action) (*Ticket[K], error) {
	t := &Ticket[K]{q: q, act: act}
	t.only[0].key = key
	t.places = t.only[:]
	return q.submit(ctx, t)
}

// SubmitAll is [Queuer.Submit] for an action that needs several keys. The action
// gets a place in all their lanes at once, starts when it is first in all of them,
// and keeps them until it has ended. The order of the keys has no meaning. The same
// key twice is an [*InvalidError].
func (q *Queuer[K]) SubmitAll(ctx context.Context, keys []K, act *Action) (*Ticket[K], error) {
	t := &Ticket[K]{q: q, act: act, places: make([]place[K], len(keys))}
	for i, k := range keys {
		t.places[i].key = k
	}
	return q.submit(ctx, t)
}

// submit gives the ticket its places and admits it, or returns the ticket that has its
// ID.
func (q *Queuer[K]) submit(ctx context.Context, t *Ticket[K]) (*Ticket[K], error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	q.once.Do(q.prepare)
	act, self := t.act, actionOf(ctx, q)
	var ctxDone <-chan struct{}
	if act.Wait {
		ctxDone = ctx.Done() // not later: it may panic
	}
	q.mu.Lock()
	if !q.allows(act.Class) {
		q.mu.Unlock()
		return nil, &InvalidError{"Class", noClass(act.Class)}
	}
	if known, err := q.known(ctx, t); known != nil || err != nil {
		q.mu.Unlock()
		return known, err
	}
	if in, reason := q.obstacle(t); reason != nil {
		if reason == ErrFull && act.Wait {
			return q.block(ctx, ctxDone, t, self)
		}
		defer q.mu.Unlock()
		return nil, q.refusal(t, reason, in, nil)
	}
	q.reserve(t)
	if act.Admit == nil && q.config.Observer.Accepted == nil {
		q.confirm(t)
		return t, nil
	}
	q.mu.Unlock()
	return q.admit(ctx, t)
}

// known returns the ticket that has the same ID, or nil. It waits for a ticket that
// is being admitted, because its place may still vanish. REQUIRES: q.mu, which it
// releases while it waits.
func (q *Queuer[K]) known(ctx context.Context, t *Ticket[K]) (*Ticket[K], error) {
	if t.act.ID == "" {
		return nil, nil
	}
	for {
		first := q.ids[t.act.ID]
		if first == nil {
			return nil, nil
		}
		if !first.sameRequest(t) {
			return nil, q.refusal(t, ErrIDInUse, nil, fmt.Errorf("id %q is of %q", t.act.ID, first.act.Name))
		}
		if first.state != Admitting {
			if t.act.Coalesce {
				return first.coalesce(t), nil
			}
			return first, nil
		}
		q.mu.Unlock()
		select {
		case <-first.admitted:
			q.mu.Lock()
		case <-ctx.Done():
			cause := context.Cause(ctx) // without q.mu: it may panic
			q.mu.Lock()
			return nil, q.refusal(t, ErrConflict, nil, cause)
		}
	}
}

// sameRequest reports whether the tickets have the same keys and their actions the
// same name, class and Coalesce.
func (t *Ticket[K]) sameRequest(o *Ticket[K]) bool {
	return t.act.Name == o.act.Name && t.act.Class == o.act.Class && t.act.Coalesce == o.act.Coalesce &&
		len(t.places) == len(o.places) && !slices.ContainsFunc(o.places, func(p place[K]) bool { return !t.needs(p.key) })
}

// obstacle returns why the ticket cannot have its places and in which lane; nil if
// it can. The lane is nil if the queue as a whole refuses. REQUIRES: q.mu.
func (q *Queuer[K]) obstacle(t *Ticket[K]) (in *lane[K], reason error) {
	if q.closed {
		return nil, ErrTerminated
	}
	q.findLanes(t)
	for _, p := range t.places {
		if p.lane != nil && p.lane.drained != nil {
			return p.lane, ErrStopping
		}
	}
	if t.act.Preempt != NoPreempt {
		return nil, nil
	}
	for _, p := range t.places {
		// A blocked submitter of the same key arrived earlier. If this one may wait as well,
		// it also waits until that one is admitted.
		if q.wanted(p.key, t.act.Wait) {
			return cmp.Or(p.lane, &lane[K]{key: p.key}), ErrFull
		}
	}
	return q.full(t)
}

// findLanes looks up the lanes of the ticket's keys. A key without actions has none.
// REQUIRES: q.mu.
func (q *Queuer[K]) findLanes(t *Ticket[K]) {
	for i := range t.places {
		t.places[i].lane = q.lanes[t.places[i].key]
	}
}

// full returns ErrFull if there is no room for the ticket in the lanes that findLanes
// found. REQUIRES: q.mu.
func (q *Queuer[K]) full(t *Ticket[K]) (in *lane[K], reason error) {
	if q.config.MaxPerKey > 0 {
		for _, p := range t.places {
			if p.lane != nil && p.lane.size() >= q.config.MaxPerKey {
				return p.lane, ErrFull
			}
		}
	}
	if q.config.MaxWaiting > 0 && q.waiting() >= q.config.MaxWaiting {
		return nil, ErrFull
	}
	return nil, nil
}

// reserve gives the ticket places in the lanes that findLanes found. From here on it
// counts. REQUIRES: q.mu.
func (q *Queuer[K]) reserve(t *Ticket[K]) {
	q.seq++
	t.seq = q.seq
	q.total++
	t.class = q.enterClass(t.act.Class)
	if t.act.ID != "" {
		if q.ids == nil {
			q.ids = make(map[string]*Ticket[K])
		}
		q.ids[t.act.ID] = t
		t.admitted = make(chan struct{})
	}
	for i := range t.places {
		p := &t.places[i]
		if p.lane == nil {
			p.lane = q.makeLane(p.key)
		}
		if t.act.Delay > 0 {
			p.lane.delayed = append(p.lane.delayed, t)
		} else {
			p.lane.queue = append(p.lane.queue, t)
		}
	}
}

// admit calls Admit for a ticket that has reserved places. It confirms the places if
// Admit agrees. Otherwise it removes them, also if Admit panics.
func (q *Queuer[K]) admit(ctx context.Context, t *Ticket[K]) (*Ticket[K], error) {
	agreed := false
	defer func() {
		q.mu.Lock()
		if agreed {
			q.confirm(t)
			return
		}
		q.end(t)
		q.mu.Unlock()
	}()
	if t.act.Admit != nil {
		if err := t.act.Admit(ctx); err != nil {
			q.mu.Lock()
			defer q.mu.Unlock()
			return nil, q.refusal(t, ErrConflict, nil, err)
		}
	}
	// The places stay even if the observer panics: Admit has changed the state.
	agreed = true
	if q.config.Observer.Accepted != nil {
		q.config.Observer.Accepted(ctx, Accepted[K]{t.Info()})
	}
	return t, nil
}

// confirm accepts a ticket with reserved places and ends the actions that it
// pre-empts. REQUIRES: q.mu, and releases it.
func (q *Queuer[K]) confirm(t *Ticket[K]) {
	t.state = Waiting
	t.accepted = q.now()
	q.removeSubmitter(t)
	if t.admitted != nil {
		close(t.admitted)
	}
	if end := cmp.Or(t.signal, q.aborted); end != nil {
		// Superseded or aborted while it was being admitted.
		claimed := q.claim([]*Ticket[K]{t}, end)
		q.mu.Unlock()
		q.retireAll(claimed)
		return
	}
	waiting, running := q.preempt(t)
	if t.act.Delay > 0 {
		t.state = Delayed
		t.startDelay(t.act.Delay)
	} else {
		q.startWaiting(t)
	}
	q.pump(t.accepted)
	q.mu.Unlock()
	if len(running) > 0 {
		// Running actions end last, also if an observer panics.
		defer q.interruptAll(running, &EndError{Outcome: Preempted}, Superseded)
	}
	q.retireAll(waiting)
}

// preempt claims the waiting tickets that a pre-empting ticket ends, and returns the
// running ones. One that is being admitted ends when Admit has answered. REQUIRES:
// q.mu.
func (q *Queuer[K]) preempt(t *Ticket[K]) (claimed, running []*Ticket[K]) {
	if t.act.Preempt == NoPreempt {
		return nil, nil
	}
	end := &EndError{Outcome: Superseded}
	var waiting []*Ticket[K]
	for _, p := range t.places {
		ahead := p.lane.queue[:p.lane.index(t)]
		for _, o := range slices.Concat(ahead, p.lane.delayed) {
			switch {
			case o.state == Running && t.act.Preempt == PreemptRunning:
				running = append(running, o)
			case o.state == Running, o.act.Preempt != NoPreempt:
			case o.state == Admitting:
				o.interrupt(end)
			default:
				waiting = append(waiting, o)
			}
		}
	}
	return q.claim(waiting, end), running
}
