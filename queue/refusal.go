package queue

// refusal returns the error of a submit that was not accepted, with what is in the
// way. The ticket itself does not count. REQUIRES: q.mu.
func (q *Queuer[K]) refusal(t *Ticket[K], reason error, in *lane[K], err error) *RefusedError {
	e := &RefusedError{Reason: reason, Name: t.act.Name, Err: err}
	if reason == ErrTerminated {
		e.Waiting = q.waiting()
		return e
	}
	busiest := q.busiest(t)
	if reason == ErrConflict {
		in = busiest
	}
	if in != nil {
		e.Key = in.key
		e.Waiting = in.waitingBeside(t)
		if reason == ErrFull {
			e.Admitting = in.admitting()
		}
		busiest = in
	} else if reason == ErrFull {
		e.Waiting = q.waiting()
	}
	if r := busiest.running(); r != nil {
		e.Running, e.Since = r.act.Name, q.at(r.started)
	}
	return e
}

// busiest returns the lane of the ticket's keys in which an action runs, else one in
// which an action other than the ticket waits, else nil. REQUIRES: q.mu.
func (q *Queuer[K]) busiest(t *Ticket[K]) (busiest *lane[K]) {
	for _, p := range t.places {
		l := q.lanes[p.key]
		if l.running() != nil {
			return l
		}
		if l != nil && busiest == nil && l.waitingBeside(t) > 0 {
			busiest = l
		}
	}
	return busiest
}

// admitting counts the tickets in the lane that are being admitted.
func (l *lane[K]) admitting() (n int) {
	for _, o := range l.tickets() {
		if o.state == Admitting {
			n++
		}
	}
	return n
}
