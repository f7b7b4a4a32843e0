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
	// parentEnded lets the child start, or ends it and adds its own children.
	parentEnded(Outcome, error, *family)
}

// family is a stack of who has to be told that a parent has ended. Were they told
// by each other, a chain of futures that fails would be as deep on the goroutine's
// stack as it is long.
type family []relation

type relation struct {
	child   child
	outcome Outcome // of the parent
	err     error
}

// tell tells everybody, and those that are added meanwhile: children of children
// before brothers. It goes on if somebody's Settle does not return.
func (f *family) tell() {
	told := false
	defer func() {
		if !told {
			f.tell()
		}
	}()
	for n := len(*f); n > 0; n = len(*f) {
		r := (*f)[n-1]
		(*f)[n-1] = relation{}
		*f = (*f)[:n-1]
		r.child.parentEnded(r.outcome, r.err, f)
	}
	told = true
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
	f := family{{c, t.outcome, t.err}}
	f.tell()
}

// childrenTo adds the children. Called once, after the end and without a lock: a
// child may be of another queue. Nobody is adopted after the end.
func (t *Ticket[K]) childrenTo(f *family) {
	if t.rare == nil {
		return
	}
	for i := len(t.rare.children) - 1; i >= 0; i-- {
		*f = append(*f, relation{t.rare.children[i], t.outcome, t.err})
	}
}

// tellChildren tells the children, and returns what the caller has to run next.
func (t *Ticket[K]) tellChildren(next *Ticket[K]) *Ticket[K] {
	if t.rare == nil || len(t.rare.children) == 0 {
		return next
	}
	if next != nil {
		// It has started: the Settle of a child, which may hang or call Goexit,
		// must not be in its way.
		go t.q.work(next)
	}
	var f family
	t.childrenTo(&f)
	f.tell()
	return nil
}

func (t *Ticket[K]) parentEnded(o Outcome, err error, f *family) {
	q := t.q
	now := q.now()
	q.mu.Lock()
	if t.state != Waiting {
		// It was withdrawn before.
		q.mu.Unlock()
		return
	}
	if o != OK {
		q.withdraw(t, Failed, err, now, f)
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
