package queue

// deadlock reports whether the target can only end after the running action self
// has: whether waiting for it inside self would never end.
//
// It looks at what the target depends on and asks who is free to end: a running
// action is free if all it waits for are free (self is not), a waiting one if
// those directly in front of it are free, its parent is, in every full class
// above it somebody who runs is, and where there are as many children as may be,
// all that runs in one of them is. Whoever is not free by these rules, applied
// until nothing changes, never will be. REQUIRES: q.mu.
func (q *Queuer[K]) deadlock(self, target *Ticket[K]) bool {
	reach := []*Ticket[K]{target}
	free := map[*Ticket[K]]bool{target: false}
	add := func(t *Ticket[K]) {
		if _, known := free[t]; !known && t.q == q && t.state != Ended {
			free[t] = false
			reach = append(reach, t)
		}
	}
	for i := 0; i < len(reach); i++ {
		t := reach[i]
		if t.holds {
			if t.rare != nil {
				for _, w := range t.rare.waits {
					add(w)
				}
			}
			continue
		}
		for e := range t.entries {
			if e.prev != nil {
				add(e.prev.ticket)
			}
		}
		if p := t.parent(); p != nil {
			add(p)
		}
		var from *class[K]
		for c := t.class; c != nil; from, c = c, c.parent {
			if c.full() || c.crowded(from) {
				for r := q.first; r != nil; r = r.next {
					if r.class.below(c) {
						add(r)
					}
				}
			}
		}
	}
	for changed := true; changed && !free[target]; {
		changed = false
		// What was found last is nearest to those that are free.
		for i := len(reach) - 1; i >= 0; i-- {
			if t := reach[i]; t != self && !free[t] && q.isFree(t, free) {
				free[t], changed = true, true
			}
		}
	}
	return !free[target]
}

func (q *Queuer[K]) isFree(t *Ticket[K], free map[*Ticket[K]]bool) bool {
	ok := func(o *Ticket[K]) bool { return o.q != q || o.state == Ended || free[o] }
	if t.state == Ending {
		return true // in the hands of another goroutine
	}
	if t.holds {
		if t.rare != nil {
			for _, w := range t.rare.waits {
				if !ok(w) {
					return false
				}
			}
		}
		return true
	}
	for e := range t.entries {
		if e.prev != nil && !ok(e.prev.ticket) {
			return false
		}
	}
	if p := t.parent(); p != nil && !ok(p) {
		return false
	}
	var from *class[K]
	for c := t.class; c != nil; from, c = c, c.parent {
		if c.crowded(from) && !q.childEnds(c, ok) {
			return false
		}
		if !c.full() {
			continue
		}
		some := false
		for r := q.first; r != nil && !some; r = r.next {
			some = r.class.below(c) && ok(r)
		}
		if !some {
			return false
		}
	}
	return true
}

// parent returns the ticket of the same queue that the action comes after.
func (t *Ticket[K]) parent() *Ticket[K] {
	if t.act.After == nil {
		return nil
	}
	p, _ := t.act.After.ticket().(*Ticket[K])
	return p
}

func (c *class[K]) full() bool {
	return c.limit.MaxRunning > 0 && c.running >= c.limit.MaxRunning
}

// crowded reports whether a child that has nothing running may not begin.
func (c *class[K]) crowded(child *class[K]) bool {
	return child != nil && child.running == 0 && c.limit.MaxChildren > 0 && c.active >= c.limit.MaxChildren
}

// childEnds reports whether in some child of the class all that runs will end.
// REQUIRES: q.mu.
func (q *Queuer[K]) childEnds(c *class[K], ends func(*Ticket[K]) bool) bool {
	stuck := map[*class[K]]bool{}
	for r := q.first; r != nil; r = r.next {
		for d := r.class; d.parent != nil; d = d.parent {
			if d.parent == c {
				stuck[d] = stuck[d] || !ends(r)
			}
		}
	}
	for _, s := range stuck {
		if !s {
			return true
		}
	}
	return false
}

func (c *class[K]) below(top *class[K]) bool {
	for ; c != nil; c = c.parent {
		if c == top {
			return true
		}
	}
	return false
}
