package queue

import "strings"

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

// findClass returns the class that an action names, or nil if the configuration
// does not allow it. REQUIRES: q.mu.
func (q *Queuer[K]) findClass(path string) *class[K] {
	above, last := cut(path)
	if path == "" || last != "*" && q.classes[path] != nil {
		return q.makeClass(path)
	}
	pattern := q.classes[strings.TrimPrefix(above+"/*", "/")]
	if pattern == nil || last == "" || last == "*" {
		return nil
	}
	c := q.makeClass(path)
	c.limit = pattern.limit
	return c
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
