package queue

// lane is the FIFO of one key: its first entry runs or is next to run.
type lane[K comparable] struct {
	key        K
	head, tail *entry[K]
	depth      int32 // entries
	halted     bool
	stopping   bool
	crowd      *crowd[K]     // submitters that want room here, nil: none
	drained    chan struct{} // made by who waits for depth == 0
	free       *lane[K]
}

// entry is the place of a ticket in one lane, or in the crowd in front of it.
type entry[K comparable] struct {
	ticket     *Ticket[K]
	lane       *lane[K]
	next, prev *entry[K]
	key        K // the lane's, which may be gone when the ticket is asked
}

const (
	// Below this many lanes the map is kept when it runs empty: making a new one
	// for every action of a quiet queue costs more than it holds.
	keepLanes = 128
	// The map is made anew when it is filled to less than 1/shrink of its peak.
	shrink = 8
)

// laneOf returns the lane of the key and makes it at first use.
func (q *Queuer[K]) laneOf(key K) *lane[K] {
	if l := q.lanes[key]; l != nil {
		return l
	}
	l := q.spare
	if l != nil {
		q.spare, l.free = l.free, nil
		q.nfree--
	} else {
		l = new(lane[K])
	}
	l.key = key
	if q.lanes == nil {
		q.lanes = make(map[K]*lane[K])
	}
	q.lanes[key] = l
	q.peak = max(q.peak, len(q.lanes))
	return l
}

// tidy removes the lane if nothing needs it. Go's maps never shrink: one that has
// become much too large is made anew, so that what was busy once costs nothing.
func (q *Queuer[K]) tidy(l *lane[K]) {
	if l.depth > 0 || l.crowd != nil || l.halted && !l.stopping {
		return
	}
	if l.drained != nil {
		close(l.drained)
	}
	delete(q.lanes, l.key)
	*l = lane[K]{}
	if q.nfree < keepLanes {
		l.free, q.spare = q.spare, l
		q.nfree++
	}
	if q.peak > keepLanes && len(q.lanes) < q.peak/shrink {
		q.rebuild()
	}
}

func (q *Queuer[K]) rebuild() {
	lanes := make(map[K]*lane[K], len(q.lanes))
	for k, l := range q.lanes {
		lanes[k] = l
	}
	q.lanes, q.peak = lanes, len(lanes)
}

// append puts the entry at the end of the lane and reports whether it is first
// in a lane that moves.
func (l *lane[K]) append(e *entry[K]) bool {
	e.lane, e.key = l, l.key
	e.prev = l.tail
	if l.tail != nil {
		l.tail.next = e
	} else {
		l.head = e
	}
	l.tail = e
	l.depth++
	if l.crowd != nil && int(l.depth) == e.ticket.q.maxPerKey {
		l.crowd.first.ticket.rare.submitter.short++
	}
	return e.prev == nil && !l.halted
}

// remove takes the entry out. What becomes first by that in a lane that moves has
// one reason less to wait.
func (l *lane[K]) remove(e *entry[K]) {
	if l.head == e && e.next != nil && !l.halted {
		e.next.ticket.missing--
	}
	if e.prev != nil {
		e.prev.next = e.next
	} else {
		l.head = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	} else {
		l.tail = e.prev
	}
	e.next, e.prev = nil, nil
	l.depth--
	if l.crowd != nil && int(l.depth) == e.ticket.q.maxPerKey-1 {
		e.ticket.q.roomFor(l.crowd.first)
	}
}

// hashable panics for a key that no map takes, such as a slice in an interface,
// before the queue is locked: it would stay so.
func hashable[K comparable](key K) { _ = map[K]bool{}[key] }
