package queue

import (
	"math"
	"time"
)

// startDelay lets the ticket enter its lanes after d. REQUIRES: q.mu.
func (t *Ticket[K]) startDelay(d time.Duration) {
	t.stopTimer()
	t.due = t.q.after(d)
	t.timer = time.AfterFunc(d, t.endDelay)
}

// after returns the time after d from now, at most the longest time.Duration.
func (q *Queuer[K]) after(d time.Duration) time.Duration {
	now := q.now()
	return now + min(d, math.MaxInt64-now)
}

// endDelay ends the delay of a ticket.
func (t *Ticket[K]) endDelay() {
	q := t.q
	q.mu.Lock()
	defer q.mu.Unlock()
	// The timer may be late: the action may have been cancelled, or brought forward.
	if t.state == Delayed {
		q.enterLanes(t)
	}
}

// enterLanes gives a delayed ticket its places at the ends of its lanes. REQUIRES: q.mu.
func (q *Queuer[K]) enterLanes(t *Ticket[K]) {
	t.stopTimer()
	for _, p := range t.places {
		p.lane.drop(t)
	}
	q.seq++
	t.seq = q.seq
	for _, p := range t.places {
		p.lane.queue = append(p.lane.queue, t)
	}
	q.startWaiting(t)
	q.pump(q.now())
}

// coalesce returns the ticket if it answers the request of another one with its ID, or
// nil. It brings a delayed ticket forward. REQUIRES: q.mu.
func (t *Ticket[K]) coalesce(request *Ticket[K]) *Ticket[K] {
	switch {
	case t.state == Waiting && t.attempt == 0:
	case t.state == Delayed && request.act.Delay == 0:
		t.due = t.q.now()
		t.q.enterLanes(t)
	case t.state == Delayed && t.q.after(request.act.Delay) < t.due:
		t.startDelay(request.act.Delay)
	case t.state != Delayed:
		return nil
	}
	return t
}
