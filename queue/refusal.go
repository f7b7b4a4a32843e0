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

// running returns the ticket of the lane that runs, or that is settled after it ran; or nil.
// The lane may be nil.
func (l *lane[K]) running() *Ticket[K] {
	if l == nil || len(l.queue) == 0 {
		return nil
	}
	if t := l.queue[0]; t.hasWorker() {
		return t
	}
	return nil
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

// waitingBeside counts the tickets of the lane that do not run, without t, which does not run.
func (l *lane[K]) waitingBeside(t *Ticket[K]) int {
	n := l.size()
	if l.running() != nil {
		n--
	}
	if t != nil && l.index(t) >= 0 { // a ticket that is refused in its place has Admit, and so no Delay
		n--
	}
	return n
}
