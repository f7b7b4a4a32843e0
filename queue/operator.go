package queue

// Resume lets a lane go on that a failed action brought to a stand, and reports
// whether it stood still. The failed action has ended; the next one starts.
func (q *Queuer[K]) Resume(key K) bool {
	l, now := q.enterLane(key)
	if l == nil || !l.halted {
		q.mu.Unlock()
		return false
	}
	l.halted = false
	if l.head != nil {
		t := l.head.ticket
		t.missing--
		if t.missing == 0 && t.state == Waiting {
			q.push(t)
		}
	}
	next := q.pump(now)
	q.tidy(l)
	q.mu.Unlock()
	if next != nil {
		go q.work(next)
	}
	return true
}

// Skip is [Queuer.Resume] without the next action: the first one that waits ends
// as [Skipped], and the one after it starts. If nothing waits it is the same.
func (q *Queuer[K]) Skip(key K) bool {
	l, now := q.enterLane(key)
	if l == nil || !l.halted {
		q.mu.Unlock()
		return false
	}
	// The lane stands still until the action has gone, so that what comes after
	// cannot start before.
	var loud []*Ticket[K]
	if l.head != nil {
		loud = q.claim([]*Ticket[K]{l.head.ticket}, &EndError{Outcome: Skipped}, now)
	}
	next := q.pump(now)
	q.mu.Unlock()
	if next != nil {
		go q.work(next)
	}
	defer q.Resume(key) // also if Settle does not return
	q.retireAll(loud)
	return true
}

// Abandon gives up the action that holds the key and does not end although it was
// told to: it ends as [Abandoned], its places and its share of the limits are
// given away, and what it returns some day is not looked at. Its goroutine
// cannot be killed and is counted in [Stats.Abandoned] until it returns: from
// here on two actions may be at the same object at once, unless the late one is
// refused by what it works on; see [Ticket.Seq]. It reports whether there was
// something to abandon.
func (q *Queuer[K]) Abandon(key K) bool {
	l, now := q.enterLane(key)
	if l == nil || l.head == nil {
		q.mu.Unlock()
		return false
	}
	t := l.head.ticket
	switch t.state {
	case Running:
		end := &EndError{Outcome: Abandoned}
		t.signal(end)
		t.state = Ending
		t.outcome, t.err = Abandoned, end
		q.stray++
		q.mu.Unlock()
		q.retireAll([]*Ticket[K]{t})
		return true
	case Ending:
		// Settle or an observer hangs; the outcome stays what it is.
		q.stray++
		next := q.end(t, now)
		q.mu.Unlock()
		if next = t.tellChildren(next); next != nil {
			go q.work(next)
		}
		return true
	}
	q.mu.Unlock()
	return false
}

// enterLane locks the queue and returns the lane of a key, nil if it has none.
func (q *Queuer[K]) enterLane(key K) (l *lane[K], now int64) {
	q.prepare()
	hashable(key)
	now = q.now()
	q.mu.Lock()
	return q.lanes[key], now
}
