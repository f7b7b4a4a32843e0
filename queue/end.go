package queue

import (
	"runtime/debug"
	"time"
)

// The end of an action has two parts where somebody is to be told: its outcome is
// decided and its state is Ending; Settle and observers are told without the
// lock; then it gives up its places. Nobody behind it starts before.

// quiet reports whether nobody has to be told. REQUIRES: q.mu.
func (q *Queuer[K]) quiet(t *Ticket[K]) bool {
	return t.act.Settle == nil && q.observer.Finished == nil && !(t.halts && q.observer.Halted != nil)
}

// pump starts what may start and gives room to blocked submitters. The first one
// that starts is returned and belongs to the caller. REQUIRES: q.mu.
func (q *Queuer[K]) pump(now int64) (mine *Ticket[K]) {
	for t := q.pick(); t != nil; t = q.pick() {
		t.pull()
		t.class.take()
		q.running++
		t.holds = true
		t.prev = q.last
		if q.last != nil {
			q.last.next = t
		} else {
			q.first = t
		}
		q.last = t
		t.state = Running
		t.started = now
		t.attempt++
		t.stopTimer()
		if mine == nil {
			mine = t
		} else {
			go q.work(t)
		}
	}
	if len(q.roomy) > 0 {
		q.grant()
	}
	return mine
}

// yield gives back the share of the limits. REQUIRES: q.mu.
func (q *Queuer[K]) yield(t *Ticket[K]) {
	t.class.give()
	q.running--
	t.holds = false
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		q.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		q.last = t.prev
	}
	t.next, t.prev = nil, nil
}

// end takes the ticket out of everything, publishes its outcome, and starts what
// may start now; the first of that is returned and belongs to the caller.
// REQUIRES: q.mu.
func (q *Queuer[K]) end(t *Ticket[K], now int64) *Ticket[K] {
	q.release(t, now)
	next := q.pump(now)
	q.leave(t)
	return next
}

// release is the part of end before others start. REQUIRES: q.mu.
func (q *Queuer[K]) release(t *Ticket[K], now int64) {
	if t.holds {
		q.yield(t)
	}
	q.total--
	t.state = Ended
	t.ended = now
	t.closeContext()
	t.stopTimer()
	q.forget(t)
	for e := range t.entries {
		if t.halts {
			e.lane.halted = true
		}
		e.lane.remove(e)
	}
	// Only now, so that what becomes ready by this does so in the order of keys,
	// however many of its lanes the ticket was in.
	for e := range t.entries {
		if h := e.lane.head; h != nil && h.ticket.missing == 0 && h.ticket.state == Waiting && !h.ticket.queued {
			q.push(h.ticket)
		}
	}
	if t.done != nil {
		close(t.done)
	}
}

// leave is the part of end after others have started: what is empty goes.
// REQUIRES: q.mu.
func (q *Queuer[K]) leave(t *Ticket[K]) {
	for e := range t.entries {
		q.tidy(e.lane)
		e.lane = nil
	}
	if q.total == 0 && q.closed {
		q.sweep()
	}
}

func (t *Ticket[K]) stopTimer() {
	if t.rare != nil && t.rare.timer != nil {
		t.rare.timer.Stop()
		t.rare.timer = nil
	}
}

// withdraw ends one that does not run, and adds its children to those that are to
// be told. REQUIRES: q.mu and that it waits, and unlocks.
func (q *Queuer[K]) withdraw(t *Ticket[K], o Outcome, err error, now int64, f *family) {
	t.decide(o, err)
	var next *Ticket[K]
	if q.quiet(t) {
		next = q.end(t, now)
		q.mu.Unlock()
		t.childrenTo(f)
	} else {
		q.mu.Unlock()
		next = q.retire(t, f)
	}
	if next != nil {
		go q.work(next)
	}
}

// withdrawAlone is withdraw where nobody else is to be told.
func (q *Queuer[K]) withdrawAlone(t *Ticket[K], o Outcome, err error, now int64) {
	var f family
	defer f.tell() // also if its Settle does not return
	q.withdraw(t, o, err, now, &f)
}

// decide gives one that does not run its outcome; nobody else can from here on.
// REQUIRES: q.mu and that it waits.
func (t *Ticket[K]) decide(o Outcome, err error) {
	if t.queued {
		t.pull()
	}
	t.stopTimer()
	t.state = Ending
	t.outcome, t.err = o, err
}

// claim decides the outcome of those in the list that wait, of all before any of
// them gives up its place, so that none of them starts in between. If all are
// quiet they end at once, otherwise they are returned for retireAll: they end one
// by one in the order of the list either way. The caller pumps. REQUIRES: q.mu.
func (q *Queuer[K]) claim(list []*Ticket[K], end *EndError, now int64) (loud []*Ticket[K]) {
	quiet := true
	claimed := list[:0]
	for _, t := range list {
		if t.state == Waiting || t.state == Retrying {
			t.decide(end.Outcome, &EndError{end.Outcome, end.Cause, t.err})
			claimed = append(claimed, t)
			quiet = quiet && q.quiet(t) && (t.rare == nil || len(t.rare.children) == 0)
		}
	}
	if !quiet {
		return claimed
	}
	for _, t := range claimed {
		q.release(t, now)
		q.leave(t)
	}
	return nil
}

// retireAll does the second part for some that did not run, for all of them also
// if the Settle of one does not return.
func (q *Queuer[K]) retireAll(list []*Ticket[K]) {
	defer func() {
		if len(list) > 0 {
			q.retireAll(list)
		}
	}()
	for len(list) > 0 {
		t := list[0]
		list = list[1:]
		if next := q.retireOne(t); next != nil {
			go q.work(next)
		}
	}
}

// retireOne is retire, and tells the children.
func (q *Queuer[K]) retireOne(t *Ticket[K]) (next *Ticket[K]) {
	var f family
	defer func() {
		if len(f) == 0 {
			return
		}
		if next != nil {
			go q.work(next) // as in tellChildren
			next = nil
		}
		f.tell()
	}()
	return q.retire(t, &f)
}

// retire tells whoever is to be told about the outcome, and lets the ticket give
// up its places, also if what it calls does not return. It adds the children to
// those that are to be told, and returns what the caller has to run next, or nil.
func (q *Queuer[K]) retire(t *Ticket[K], f *family) (next *Ticket[K]) {
	told := false
	defer func() {
		now := q.now()
		q.mu.Lock()
		if t.state == Ended { // abandoned meanwhile
			q.stray--
			q.mu.Unlock()
			return
		}
		next = q.end(t, now)
		q.mu.Unlock()
		t.childrenTo(f)
		if !told && next != nil {
			// This goroutine is on its way out.
			go q.work(next)
			next = nil
		}
	}()
	q.settle(t)
	q.tellFinished(t)
	told = true
	return nil
}

// settle calls Settle. That it panics is the outcome then.
func (q *Queuer[K]) settle(t *Ticket[K]) {
	if t.act.Settle == nil {
		return
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		p := &PanicError{Value: recover()}
		p.Goexit = p.Value == nil
		if !p.Goexit {
			p.Stack = debug.Stack()
		}
		q.mu.Lock()
		if t.state != Ended {
			t.outcome, t.err = Panicked, p
		}
		q.mu.Unlock()
	}()
	t.act.Settle(q.base, t.outcome, t.err)
	returned = true
}

// stop tells running actions to end; those that wait by now end at once, with
// the outcome for waiting ones.
func (q *Queuer[K]) stop(list []*Ticket[K], end *EndError, waiting Outcome) {
	now := q.now()
	q.mu.Lock()
	var rest []*Ticket[K]
	for _, t := range list {
		switch t.state {
		case Running:
			t.signal(end)
		case Waiting, Retrying:
			rest = append(rest, t)
		}
	}
	loud := q.claim(rest, &EndError{Outcome: waiting, Cause: end.Cause}, now)
	next := q.pump(now)
	q.mu.Unlock()
	if next != nil {
		go q.work(next)
	}
	q.retireAll(loud)
}

// suspend sends a running action into its back-off: it keeps its places and gives
// back its share of the limits. REQUIRES: q.mu.
func (q *Queuer[K]) suspend(t *Ticket[K], err error, now int64) {
	q.yield(t)
	t.ended = now
	t.err = err
	t.closeContext()
	t.context.Store(nil)
	if d := t.act.Retry.pause(t.attempt); d > 0 {
		t.state = Retrying
		t.extra().timer = time.AfterFunc(d, t.again)
		return
	}
	t.state = Waiting
	q.push(t)
}

// again ends the back-off. A turn is an attempt: the ticket queues up anew.
func (t *Ticket[K]) again() {
	q := t.q
	now := q.now()
	q.mu.Lock()
	if t.state != Retrying {
		q.mu.Unlock()
		return
	}
	t.state = Waiting
	q.push(t)
	next := q.pump(now)
	q.mu.Unlock()
	if next != nil {
		go q.work(next)
	}
}

// expire ends an action that waited too long for its first attempt. The bad
// schedule: the timer fires, the action starts and goes into its back-off before
// this has the lock; therefore attempt is looked at.
func (t *Ticket[K]) expire() {
	now := t.q.now()
	t.q.mu.Lock()
	if t.state != Waiting || t.attempt > 0 {
		t.q.mu.Unlock()
		return
	}
	t.q.withdrawAlone(t, Expired, &EndError{Outcome: Expired}, now)
}
