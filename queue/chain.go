package queue

// Parent is an action that another one can come after: a [*Ticket] or a
// [*Future].
type Parent interface {
	// adopt calls the child when the action has ended, at once if it has.
	adopt(child)
	// ticket returns the [*Ticket], or nil for a nil pointer.
	ticket() any
}

// child is a ticket that waits for its parent, maybe of another queue.
type child interface {
	parentEnded(Outcome, error)
}

func (t *Ticket[K]) ticket() any {
	if t == nil {
		return nil
	}
	return t
}

func (t *Ticket[K]) adopt(c child) {
	t.q.mu.Lock()
	if t.state != Ended {
		r := t.extra()
		r.children = append(r.children, c)
		t.q.mu.Unlock()
		return
	}
	t.q.mu.Unlock()
	c.parentEnded(t.outcome, t.err)
}

// tellChildren is called once, after the end and without a lock: a child may be
// of another queue. Nobody is adopted after the end.
func (t *Ticket[K]) tellChildren() {
	if t.rare == nil {
		return
	}
	for _, c := range t.rare.children {
		c.parentEnded(t.outcome, t.err)
	}
}

func (t *Ticket[K]) parentEnded(o Outcome, err error) {
	q := t.q
	now := q.now()
	q.mu.Lock()
	if t.state != Waiting {
		// It was withdrawn before.
		q.mu.Unlock()
		return
	}
	if o != OK {
		q.withdraw(t, Failed, err, now)
		return
	}
	t.missing--
	if t.missing > 0 {
		q.mu.Unlock()
		return
	}
	q.push(t)
	next := q.pump(now)
	q.mu.Unlock()
	if next != nil {
		go q.work(next)
	}
}
