package queue

import (
	"slices"
	"strings"
)

// class is a node of the tree of limits. A ready ticket waits at the class that its
// action names.
//
//	running == number of running tickets at or below
//	active  == number of children with running > 0
type class[K comparable] struct {
	path     string
	parent   *class[K]
	children []*class[K]
	limit    Limit
	ready    []*Ticket[K] // ordered by turn
	running  int
	active   int

	unnamed bool // made for a pattern: it goes when it has no tickets
	tickets int  // with places
}

// makeClass returns the class of the path and makes it and its parents if they are
// missing. A class whose last part is "*" is a pattern: it is no child of its
// parent and nothing runs in it.
func (q *Queuer[K]) makeClass(path string) *class[K] {
	if path == "" {
		return &q.root
	}
	if c := q.classes[path]; c != nil {
		return c
	}
	above, last := cut(path)
	c := &class[K]{path: path, parent: q.makeClass(above)}
	if last != "*" {
		c.parent.children = append(c.parent.children, c)
	}
	q.classes[path] = c
	return c
}

// pattern returns the class "*" that applies to a path without an entry, or nil.
// REQUIRES: q.mu.
func (q *Queuer[K]) pattern(path string) *class[K] {
	above, last := cut(path)
	if last == "" || last == "*" {
		return nil
	}
	return q.classes[strings.TrimPrefix(above+"/*", "/")]
}

// knows reports whether the configuration allows actions of the class. REQUIRES:
// q.mu.
func (q *Queuer[K]) knows(path string) bool {
	_, last := cut(path)
	return path == "" || last != "*" && q.classes[path] != nil || q.pattern(path) != nil
}

// enterClass returns the class of a ticket that gets its places. REQUIRES: q.mu.
func (q *Queuer[K]) enterClass(path string) *class[K] {
	unnamed := path != "" && q.classes[path] == nil
	c := q.makeClass(path)
	if unnamed {
		c.unnamed, c.limit = true, q.pattern(path).limit
	}
	c.tickets++
	return c
}

// leaveClass frees the class if only its tickets needed it. REQUIRES: q.mu.
func (q *Queuer[K]) leaveClass(c *class[K]) {
	if c.tickets--; c.tickets == 0 && c.unnamed {
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

// oldest returns the ticket with the lowest turn among those at or below the class
// that the limits from the class downwards allow to start, or nil. So a ticket that
// may start never waits behind one that may not.
func (c *class[K]) oldest() *Ticket[K] {
	if c.full() {
		return nil
	}
	var oldest *Ticket[K]
	if len(c.ready) > 0 {
		oldest = c.ready[0]
	}
	for _, child := range c.children {
		if c.crowded(child) {
			continue
		}
		if t := child.oldest(); t != nil && (oldest == nil || t.turn < oldest.turn) {
			oldest = t
		}
	}
	return oldest
}

// full reports whether MaxRunning actions run.
func (c *class[K]) full() bool {
	return c.limit.MaxRunning > 0 && c.running >= c.limit.MaxRunning
}

// crowded reports whether MaxChildren keeps an idle child from starting an action.
func (c *class[K]) crowded(child *class[K]) bool {
	return child.running == 0 && c.limit.MaxChildren > 0 && c.active >= c.limit.MaxChildren
}

// take counts a running action in the class and in all classes above.
func (c *class[K]) take() {
	for ; c != nil; c = c.parent {
		c.running++
		if c.running == 1 && c.parent != nil {
			c.parent.active++
		}
	}
}

// give undoes take.
func (c *class[K]) give() {
	for ; c != nil; c = c.parent {
		c.running--
		if c.running == 0 && c.parent != nil {
			c.parent.active--
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
