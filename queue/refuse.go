package queue

import "time"

// check says what is wrong with a submit, whatever the state of the queue.
func (q *Queuer[K]) check(key K, more []K, act *Action) (*class[K], error) {
	if act == nil {
		return nil, &InvalidError{"Action", "nil"}
	}
	if key != key {
		return nil, &InvalidError{"keys", "a key that is not equal to itself"}
	}
	if len(more) > 0 {
		seen := map[K]bool{key: true}
		for _, k := range more {
			if k != k {
				return nil, &InvalidError{"keys", "a key that is not equal to itself"}
			}
			if seen[k] {
				return nil, &InvalidError{"keys", "the same key twice"}
			}
			seen[k] = true
		}
	}
	switch {
	case act.Run == nil && act.Handler == "":
		return nil, &InvalidError{"Run", "nil, and no Handler"}
	case act.Run != nil && act.Handler != "":
		return nil, &InvalidError{"Run", "beside a Handler"}
	case act.Handler != "" && q.handlers[act.Handler] == nil:
		return nil, &InvalidError{"Handler", "unknown: " + act.Handler}
	case act.After != nil && act.After.ticket() == nil:
		return nil, &InvalidError{"After", "nil pointer"}
	case act.Preempt > PreemptRunning:
		return nil, &InvalidError{"Preempt", "unknown"}
	case act.OnFailure > Halt:
		return nil, &InvalidError{"OnFailure", "unknown"}
	case act.Timeout < 0:
		return nil, &InvalidError{"Timeout", "negative"}
	case act.QueueTimeout < 0:
		return nil, &InvalidError{"QueueTimeout", "negative"}
	case act.Retry.Attempts < 0:
		return nil, &InvalidError{"Retry", "negative number of attempts"}
	}
	for _, d := range act.Retry.Backoff {
		if d < 0 {
			return nil, &InvalidError{"Retry", "negative back-off"}
		}
	}
	c := q.find(act.Class)
	if c == nil {
		return nil, &InvalidError{"Class", "unknown: " + act.Class}
	}
	return c, nil
}

// refuse tells and returns why the ticket was not accepted. REQUIRES: q.mu, and
// unlocks it.
func (q *Queuer[K]) refuse(t *Ticket[K], reason error, in *lane[K], err error) error {
	refused := q.refusedError(t, reason, in, err)
	q.mu.Unlock()
	q.tellRefused(t.keys(), t.act, refused)
	return refused
}

// refusedError says what is in the way. The ticket itself does not count, if it
// has a place. REQUIRES: q.mu.
func (q *Queuer[K]) refusedError(t *Ticket[K], reason error, in *lane[K], err error) *RefusedError {
	e := &RefusedError{Reason: reason, Name: t.act.Name, Err: err}
	if reason == ErrConflict {
		in = q.busiest(t, in)
	}
	if in == nil {
		e.Waiting = q.total - q.running
		// What runs for one of the keys is of interest all the same.
		if l := q.busiest(t, nil); l != nil && reason == ErrFull {
			e.Running, e.Since = q.holder(l, t)
		}
		return e
	}
	e.Key = in.key
	for o := in.head; o != nil; o = o.next {
		switch {
		case o.ticket == t:
		case o.ticket.holds:
			e.Running, e.Since = o.ticket.act.Name, q.at(o.ticket.started)
		default:
			e.Waiting++
		}
	}
	return e
}

func (q *Queuer[K]) tellRefused(keys []K, act *Action, err error) {
	if f := q.observer.Refused; f != nil {
		e := Refused[K]{Keys: keys, Err: err}
		if act != nil {
			e.Name = act.Name
		}
		f(e)
	}
}

// busiest returns the lane of the ticket's keys in which something runs, else one
// in which something waits, else the given one. REQUIRES: q.mu.
func (q *Queuer[K]) busiest(t *Ticket[K], otherwise *lane[K]) *lane[K] {
	waits := otherwise
	for e := range t.entries {
		l := q.lanes[e.key]
		if l == nil {
			continue
		}
		if _, since := q.holder(l, t); !since.IsZero() {
			return l
		}
		if l.head != nil && l.head.ticket != t && (waits == nil || waits == otherwise) {
			waits = l
		}
	}
	return waits
}

// holder returns what runs in a lane besides the ticket, and since when; the zero
// time if nothing does. REQUIRES: q.mu.
func (q *Queuer[K]) holder(l *lane[K], t *Ticket[K]) (name string, since time.Time) {
	for o := l.head; o != nil; o = o.next {
		if o.ticket != t && o.ticket.holds {
			return o.ticket.act.Name, q.at(o.ticket.started)
		}
	}
	return "", time.Time{}
}
