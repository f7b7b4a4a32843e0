package queue

// Resume continues a lane that a failed action halted, and reports whether the lane
// was halted. The failed action has ended; the next one starts.
func (q *Queuer[K]) Resume(key K) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[key]
	if l == nil || !l.halted {
		return false
	}
	l.halted = false
	if len(l.queue) > 0 {
		q.enqueue(l.queue[0])
	}
	q.pump(q.now())
	q.tidy(l)
	return true
}

// Abandon gives up the action that holds the key and does not end although its context
// has ended. The action ends as [Abandoned], and later actions start. The queue ignores
// the late result. A goroutine cannot be killed; [Stats.Abandoned] counts it until it
// returns. Until then two actions may work on one object, unless the object refuses the
// late one; see [Ticket.Seq]. An action whose Settle hangs keeps its outcome. Abandon
// reports whether there was an action to abandon.
func (q *Queuer[K]) Abandon(key K) bool {
	t, abandoned := q.abandon(key)
	if t != nil {
		q.retireAll([]*Ticket[K]{t})
	}
	return abandoned
}

// abandon also returns the ticket if its outcome is decided now.
func (q *Queuer[K]) abandon(key K) (*Ticket[K], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[key]
	if l == nil || len(l.queue) == 0 {
		return nil, false
	}
	switch t := l.queue[0]; t.state {
	case Running:
		end := &EndError{Outcome: Abandoned}
		t.interrupt(end)
		t.decide(Abandoned, end)
		q.strays++
		return t, true
	case Ending: // Settle or an observer hangs
		q.strays++
		q.end(t)
		return nil, true
	}
	return nil, false
}
