package queue

import "math"

// never is the turn of nobody.
const never = math.MaxUint64

// class is a node of the tree of limits. Tickets that are ready wait at the node
// they name, in the order of their turns. Every node knows the best turn that is
// waiting at or below it and that the limits from it downwards allow, so that the
// best of all is found by walking down from the root: nobody who may start waits
// behind somebody who may not, and among those who may the oldest turn wins.
//
//	best == never                       if running == limit.MaxRunning
//	best == min(head.turn, busy[0].best, idle[0].best if a child more may run)
type class[K comparable] struct {
	path    string
	parent  *class[K]
	limit   Limit
	running int // at or below
	active  int // children with running > 0

	head, tail *Ticket[K]
	best       uint64
	busy, idle heap[K] // children with best != never: those with running > 0, and the others
	in         *heap[K]
	pos        int // in in
}

// push gives a ready ticket its turn and puts it at the end of its class.
func (q *Queuer[K]) push(t *Ticket[K]) {
	q.turn++
	t.turn = q.turn
	t.queued = true
	c := t.class
	t.next, t.prev = nil, c.tail
	if c.tail != nil {
		c.tail.next = t
	} else {
		c.head = t
	}
	c.tail = t
	c.refresh()
}

// pull takes a ready ticket out of its class.
func (t *Ticket[K]) pull() {
	c := t.class
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		c.head = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		c.tail = t.prev
	}
	t.next, t.prev = nil, nil
	t.queued = false
	c.refresh()
}

// pick returns the oldest turn that may start now, or nil.
func (q *Queuer[K]) pick() *Ticket[K] {
	c := &q.root
	if c.best == never {
		return nil
	}
	for {
		switch {
		case c.head != nil && c.head.turn == c.best:
			return c.head
		case c.busy.best() == c.best:
			c = c.busy[0]
		default:
			c = c.idle[0]
		}
	}
}

// take and give count one running action in the class and all above it, at once.
func (c *class[K]) take() {
	for n := c; n != nil; n = n.parent {
		n.running++
		if n.running == 1 && n.parent != nil {
			n.parent.active++
		}
	}
	c.refresh()
}

func (c *class[K]) give() {
	for n := c; n != nil; n = n.parent {
		n.running--
		if n.running == 0 && n.parent != nil {
			n.parent.active--
		}
	}
	c.refresh()
}

// refresh restores the invariants from the class up to the root.
func (c *class[K]) refresh() {
	for ; ; c = c.parent {
		c.best = c.look()
		if c.parent == nil {
			return
		}
		var in *heap[K]
		if c.best != never {
			in = &c.parent.idle
			if c.running > 0 {
				in = &c.parent.busy
			}
		}
		if c.in != nil && c.in != in {
			c.in.remove(c)
		}
		switch {
		case in == nil:
		case c.in == nil:
			in.insert(c)
		default:
			in.fix(c.pos)
		}
	}
}

func (c *class[K]) look() uint64 {
	if c.limit.MaxRunning > 0 && c.running >= c.limit.MaxRunning {
		return never
	}
	best := uint64(never)
	if c.head != nil {
		best = c.head.turn
	}
	best = min(best, c.busy.best())
	if c.limit.MaxChildren == 0 || c.active < c.limit.MaxChildren {
		best = min(best, c.idle.best())
	}
	return best
}

// heap has classes by their best turn, the oldest first. Classes know their
// position, so that one can be moved or taken out.
type heap[K comparable] []*class[K]

func (h heap[K]) best() uint64 {
	if len(h) == 0 {
		return never
	}
	return h[0].best
}

func (h *heap[K]) insert(c *class[K]) {
	*h = append(*h, c)
	c.in, c.pos = h, len(*h)-1
	h.fix(c.pos)
}

func (h *heap[K]) remove(c *class[K]) {
	i, n := c.pos, len(*h)-1
	h.swap(i, n)
	(*h)[n] = nil
	*h = (*h)[:n]
	c.in = nil
	if i < n {
		h.fix(i)
	}
}

func (h *heap[K]) fix(i int) {
	for i > 0 && (*h)[i].best < (*h)[(i-1)/2].best {
		h.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(*h) && (*h)[child].best < (*h)[least].best {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h *heap[K]) swap(i, j int) {
	(*h)[i], (*h)[j] = (*h)[j], (*h)[i]
	(*h)[i].pos, (*h)[j].pos = i, j
}
