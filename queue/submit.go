package queue

import (
	"context"
	"time"
)

// Submit gives the action a place at the end of the key's lane and returns its
// ticket. It does not wait for anything but Admit, and for room if the action
// says Wait; ctx bounds these two and has no influence on the action itself.
//
// Checked is, in this order: the action itself ([*InvalidError]), whether a
// ticket with its ID is known, then whether the queue was terminated, the key is
// stopping, there is room, and Admit agrees ([*RefusedError]). After an error
// nothing has changed, and Settle is not called.
func (q *Queuer[K]) Submit(ctx context.Context, key K, act *Action) (*Ticket[K], error) {
	return q.submit(ctx, key, nil, act)
}

// SubmitAll is [Queuer.Submit] for an action that needs several keys: it gets a
// place in all their lanes at once, starts when it is first in all of them, and
// keeps all of them until it has ended. The order of the keys has no meaning; the
// same key twice is an [*InvalidError].
func (q *Queuer[K]) SubmitAll(ctx context.Context, keys []K, act *Action) (*Ticket[K], error) {
	if len(keys) == 0 {
		err := &InvalidError{"keys", "none"}
		q.tellRefused(nil, act, err)
		return nil, err
	}
	return q.submit(ctx, keys[0], keys[1:], act)
}

func (q *Queuer[K]) submit(ctx context.Context, key K, more []K, act *Action) (*Ticket[K], error) {
	q.prepare()
	class, err := q.check(key, more, act)
	if err != nil {
		q.tellRefused(append([]K{key}, more...), act, err)
		return nil, err
	}
	t := &Ticket[K]{q: q, act: act, class: class}
	t.entry.ticket, t.entry.key = t, key
	if len(more) > 0 {
		entries := make([]entry[K], len(more))
		for i, k := range more {
			entries[i].ticket, entries[i].key = t, k
		}
		t.rare = &rare[K]{more: entries}
	}

	told := act.Admit != nil || q.observer.Accepted != nil
	var now int64 // of the acceptance
	if !told {
		now = q.now()
	}
	q.mu.Lock()
	if act.ID != "" {
		if known, err := q.known(ctx, act); known != nil || err != nil {
			return known, err
		}
	}
	if in, reason := q.refusal(t); reason != nil {
		if reason == ErrFull && act.Wait {
			return q.block(ctx, t)
		}
		return nil, q.refuse(t, reason, in, nil)
	}
	q.place(t)
	if told {
		t.missing++
		q.mu.Unlock()
		return q.admit(ctx, t)
	}
	q.confirm(t, now)
	return t, nil
}

// known returns the ticket that has the ID already, and unlocks if it returns
// anything. One that is being admitted may still vanish, so it is waited for.
// REQUIRES: q.mu.
func (q *Queuer[K]) known(ctx context.Context, act *Action) (*Ticket[K], error) {
	for {
		t := q.ids[act.ID]
		if t == nil {
			return nil, nil
		}
		if t.state != Admitting {
			q.mu.Unlock()
			return t, nil
		}
		if self := acting(ctx, q); self != nil && self.state == Running && t.blocked {
			// Its first submitter waits for room, maybe for this action's.
			q.mu.Unlock()
			return nil, q.tellDeadlock(t, self)
		}
		r := t.extra()
		if r.gate == nil {
			r.gate = make(chan struct{})
		}
		gate := r.gate // open sets the field to nil, maybe before the select
		q.mu.Unlock()
		select {
		case <-gate:
		case <-ctx.Done():
			q.mu.Lock()
			return nil, q.refuse(t, ErrConflict, t.entry.lane, context.Cause(ctx))
		}
		q.mu.Lock()
	}
}

// refusal says why the ticket cannot have a place, and in which lane, nil if it
// can. What it finds it leaves in the entries for place. REQUIRES: q.mu.
func (q *Queuer[K]) refusal(t *Ticket[K]) (in *lane[K], reason error) {
	if q.closed {
		return nil, ErrTerminated
	}
	for e := range t.entries {
		if e.lane = q.lanes[e.key]; e.lane != nil && e.lane.stopping {
			return e.lane, ErrStopping
		}
	}
	if t.act.Preempt != NoPreempt {
		return nil, nil
	}
	if q.maxPerKey > 0 {
		for e := range t.entries {
			// Whoever waits for room here came earlier.
			if l := e.lane; l != nil && (l.crowd != nil || int(l.depth) >= q.maxPerKey) {
				return l, ErrFull
			}
		}
	}
	if q.maxWaiting > 0 && q.total-q.running >= q.maxWaiting {
		return nil, ErrFull
	}
	return nil, nil
}

// place puts the ticket into its lanes: from here on it counts. REQUIRES: q.mu.
func (q *Queuer[K]) place(t *Ticket[K]) {
	q.seq++
	t.seq = q.seq
	q.total++
	q.enter(t)
	if t.act.After != nil {
		t.missing++
	}
	for e := range t.entries {
		if e.lane == nil {
			e.lane = q.laneOf(e.key)
		}
		if !e.lane.append(e) {
			t.missing++
		}
	}
}

// enter makes the ID known. REQUIRES: q.mu.
func (q *Queuer[K]) enter(t *Ticket[K]) {
	if t.act.ID == "" {
		return
	}
	if q.ids == nil {
		q.ids = make(map[string]*Ticket[K])
	}
	q.ids[t.act.ID] = t
}

// forget makes the ID unknown and lets go whoever waits for its admission.
// REQUIRES: q.mu.
func (q *Queuer[K]) forget(t *Ticket[K]) {
	if t.act.ID == "" {
		return
	}
	delete(q.ids, t.act.ID)
	if len(q.ids) == 0 {
		q.ids = nil
	}
	t.open()
}

func (t *Ticket[K]) open() {
	if t.rare != nil && t.rare.gate != nil {
		close(t.rare.gate)
		t.rare.gate = nil
	}
}

// admit asks Admit for a ticket that has a reserved place, and makes the place
// real or lets it vanish, also if Admit panics.
func (q *Queuer[K]) admit(ctx context.Context, t *Ticket[K]) (*Ticket[K], error) {
	settled := false
	defer func() {
		if !settled {
			q.mu.Lock()
			q.vanish(t, q.now())
			q.mu.Unlock()
		}
	}()
	if t.act.Admit != nil {
		if err := t.act.Admit(ctx); err != nil {
			settled = true
			q.mu.Lock()
			in := t.entry.lane
			refused := q.refusedError(t, ErrConflict, in, err)
			q.vanish(t, q.now())
			q.mu.Unlock()
			q.tellRefused(t.keys(), t.act, refused)
			return nil, refused
		}
	}
	settled = true
	defer func() {
		// Also if the observer panics: Admit has agreed, the place is real.
		q.mu.Lock()
		t.missing--
		q.confirm(t, q.now())
	}()
	if f := q.observer.Accepted; f != nil {
		f(Accepted[K]{t.Info()})
	}
	return t, nil
}

// vanish gives back a reserved place. REQUIRES: q.mu.
func (q *Queuer[K]) vanish(t *Ticket[K], now int64) {
	if next := q.end(t, now); next != nil {
		go q.work(next)
	}
}

// confirm makes a reserved place real. REQUIRES: q.mu, and unlocks it.
func (q *Queuer[K]) confirm(t *Ticket[K], now int64) {
	t.state = Waiting
	t.accepted = now
	t.open()
	switch {
	case q.aborted != nil:
		// Aborted while it was being admitted.
		q.withdrawAlone(t, Aborted, q.aborted, now)
		return
	case t.rare != nil && t.rare.signal != nil:
		// Superseded while it was being admitted.
		q.withdrawAlone(t, t.rare.signal.Outcome, t.rare.signal, now)
		return
	}
	var waiting, running []*Ticket[K]
	if t.act.Preempt != NoPreempt {
		waiting, running = q.ahead(t)
		waiting = q.claim(waiting, &EndError{Outcome: Superseded}, now)
	}
	if t.missing == 0 && !t.queued {
		q.push(t)
	}
	next := q.pump(now)
	if d := t.act.QueueTimeout; d > 0 && t.state == Waiting {
		t.extra().timer = time.AfterFunc(d, t.expire)
	}
	if w := q.idle; w != nil && next != nil {
		w.t, q.idle, next = next, nil, nil
	}
	q.mu.Unlock()
	if next != nil {
		go q.work(next)
	}
	if len(waiting) > 0 || len(running) > 0 || t.act.After != nil {
		q.follow(t, waiting, running)
	}
}

// follow ends what a new ticket ends, and lets it follow its parent; each of that
// also if somebody's Settle does not return.
func (q *Queuer[K]) follow(t *Ticket[K], waiting, running []*Ticket[K]) {
	defer func() {
		if len(running) > 0 {
			// After those that waited, so that they end first.
			q.stop(running, &EndError{Outcome: Preempted}, Superseded)
		}
	}()
	defer func() {
		if t.act.After != nil {
			t.act.After.adopt(t)
		}
	}()
	q.retireAll(waiting)
}

// ahead returns what a pre-empting ticket ends. REQUIRES: q.mu.
func (q *Queuer[K]) ahead(t *Ticket[K]) (waiting, running []*Ticket[K]) {
	for own := range t.entries {
		for e := own.lane.head; e != own; e = e.next {
			o := e.ticket
			if o.act.Preempt != NoPreempt && o.state != Running {
				continue // those that wait keep their own order
			}
			switch o.state {
			case Admitting:
				if r := o.extra(); r.signal == nil {
					r.signal = &EndError{Outcome: Superseded}
				}
			case Waiting, Retrying:
				waiting = append(waiting, o)
			case Running:
				if t.act.Preempt == PreemptRunning {
					running = append(running, o)
				}
			}
		}
	}
	return waiting, running
}
