package queue

import (
	"cmp"
	"slices"
	"strings"
)

// class is a node of the tree of limits. A ready ticket waits at the class that its
// action names.
//
//	total.running == number of tickets at or below with a share of the limits
//	own.running   == number of those of the class itself
//	active        == number of children with total.running > 0
type class[K comparable] struct {
	path       string
	parent     *class[K]
	children   []*class[K]
	rule       *rule        // shared with the pattern if the class is made for one
	ready      []*Ticket[K] // ordered by turn
	peak       int          // most ready tickets since the list was made
	total, own share
	active     int

	fromPattern bool // made for a pattern: it goes when it has no tickets
	tickets     int  // with places
}

// rule is what the configuration and calls such as SetLimit determine.
type rule struct {
	limit  Limit
	paused bool
}

// share is what a class has of the limits above it.
type share struct {
	running   int
	lastStart uint64 // the last start, or the last one before the class was made for a pattern
}

// makeClass returns the class of the path and makes it and its parents if they are
// missing. A class whose last part is "*" is a pattern: it is not a child of its
// parent and nothing runs in it.
func (q *Queuer[K]) makeClass(path string) *class[K] {
	if path == "" {
		return &q.root
	}
	if c := q.classes[path]; c != nil {
		return c
	}
	above, last := cut(path)
	c := &class[K]{path: path, parent: q.makeClass(above), rule: new(rule)}
	if last != "*" {
		c.parent.children = append(c.parent.children, c)
	}
	if q.classes == nil {
		q.classes = make(map[string]*class[K])
	}
	q.classes[path] = c
	return c
}

// pattern returns the class "*" that applies to a path without an entry, or nil.
// REQUIRES: q.mu.
func (q *Queuer[K]) pattern(path string) *class[K] {
	_, last := cut(path)
	if last == "" || last == "*" {
		return nil
	}
	return q.classes[strings.TrimSuffix(path, last)+"*"]
}

// allows reports whether the configuration allows actions of the class. REQUIRES:
// q.mu.
func (q *Queuer[K]) allows(path string) bool {
	_, last := cut(path)
	return last != "*" && q.ruleOf(path) != nil
}

// enterClass returns the class of a ticket that gets its places. REQUIRES: q.mu.
func (q *Queuer[K]) enterClass(path string) *class[K] {
	fromPattern := path != "" && q.classes[path] == nil
	c := q.makeClass(path)
	if fromPattern {
		c.fromPattern, c.rule = true, q.pattern(path).rule
		// As if an action of it had just started. The bad schedule: a tenant that returns
		// as soon as its only action has ended is new each time, and precedes all others.
		c.own.lastStart, c.total.lastStart = q.starts, q.starts
	}
	c.tickets++
	return c
}

// withOwnRule returns the class with a rule of its own, which it keeps for good, and so do
// the classes above. A class that has used a pattern gets a copy of the pattern's rule.
// REQUIRES: q.mu.
func (q *Queuer[K]) withOwnRule(path string) *class[K] {
	if c := q.classes[path]; path == "" || c != nil && !c.fromPattern {
		return q.makeClass(path)
	}
	above, _ := cut(path)
	q.withOwnRule(above)
	var own rule
	if r := q.ruleOf(path); r != nil {
		own = *r
	}
	c := q.makeClass(path)
	c.fromPattern, c.rule = false, &own
	return c
}

// ruleOf returns the rule that applies to a class or a pattern, or nil if the queue does not
// have it. REQUIRES: q.mu.
func (q *Queuer[K]) ruleOf(path string) *rule {
	if path == "" {
		return q.root.rule
	}
	c := q.classes[path]
	if c == nil {
		c = q.pattern(path)
	}
	if c == nil {
		return nil
	}
	return c.rule
}

// leaveClass frees the class if only its tickets needed it. REQUIRES: q.mu.
func (q *Queuer[K]) leaveClass(c *class[K]) {
	if c.tickets--; c.tickets == 0 && c.fromPattern {
		delete(q.classes, c.path)
		i := slices.Index(c.parent.children, c)
		c.parent.children = slices.Delete(c.parent.children, i, i+1)
	}
}

// cut returns the path of the class above and the last part.
func cut(path string) (above, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// next returns the ticket that starts next, among those at or below the class that the
// limits from the class downwards allow to start, or nil. So a ticket that may start
// never waits behind one that may not.
func (c *class[K]) next() (next *Ticket[K]) {
	if !c.open() {
		return nil
	}
	var nextShare share
	if len(c.ready) > 0 {
		next, nextShare = c.ready[0], c.own
	}
	for _, child := range c.children {
		if c.crowded(child) {
			continue
		}
		if t := child.next(); t != nil && (next == nil || c.precedes(t, child.total, next, nextShare)) {
			next, nextShare = t, child.total
		}
	}
	return next
}

// precedes reports whether ticket a starts before b. The shares are those of their classes.
func (c *class[K]) precedes(a *Ticket[K], aShare share, b *Ticket[K], bShare share) bool {
	if !c.rule.limit.Fair {
		return a.turn < b.turn
	}
	return cmp.Or(cmp.Compare(aShare.running, bShare.running), cmp.Compare(aShare.lastStart, bShare.lastStart), cmp.Compare(a.turn, b.turn)) < 0
}

// open reports whether an action may start: the class is neither paused nor full.
func (c *class[K]) open() bool { return !c.rule.paused && !c.full() }

// full reports whether MaxRunning actions run.
func (c *class[K]) full() bool {
	most := c.rule.limit.MaxRunning
	return most > 0 && c.total.running >= most
}

// crowded reports whether MaxChildren keeps an idle child from starting an action.
func (c *class[K]) crowded(child *class[K]) bool {
	most := c.rule.limit.MaxChildren
	return child.total.running == 0 && most > 0 && c.active >= most
}

// paused reports whether the class or one above it is paused.
func (c *class[K]) paused() bool {
	for ; c != nil; c = c.parent {
		if c.rule.paused {
			return true
		}
	}
	return false
}

// recordStart counts a running action in the class and in all classes above. start is the
// number of the start.
func (c *class[K]) recordStart(start uint64) {
	c.count(1)
	c.own.lastStart = start
	for ; c != nil; c = c.parent {
		c.total.lastStart = start
	}
}

// count adds n running actions to the class and to all classes above.
func (c *class[K]) count(n int) {
	c.own.running += n
	for ; c != nil; c = c.parent {
		idle := c.total.running == 0
		c.total.running += n
		if c.parent != nil && idle != (c.total.running == 0) {
			c.parent.active += n
		}
	}
}

// below reports whether the class is top or below it.
func (c *class[K]) below(top *class[K]) bool {
	for ; c != nil; c = c.parent {
		if c == top {
			return true
		}
	}
	return false
}
