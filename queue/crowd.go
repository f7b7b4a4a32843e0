package queue

// crowd is the submitters that want room in one lane, in the order in which they
// came.
type crowd[K comparable] struct {
	first, last *entry[K]
	n           int
}

// join puts a blocked submitter into the crowds of its lanes. REQUIRES: q.mu.
func (q *Queuer[K]) join(s *submitter[K]) {
	q.blocked++
	q.arrival++
	s.arrival = q.arrival
	s.short = 1 // until it is in all crowds
	s.ticket.extra().submitter = s
	for e := range s.ticket.entries {
		l := q.laneOf(e.key)
		e.lane = l
		if l.crowd == nil {
			l.crowd = new(crowd[K])
		}
		c := l.crowd
		if e.prev = c.last; e.prev != nil {
			e.prev.next = e
		} else {
			c.first = e
		}
		c.last = e
		c.n++
		if c.first != e || !q.room(l) {
			s.short++
		}
	}
	q.roomFor(&s.ticket.entry)
}

// part takes a blocked submitter out of all crowds. REQUIRES: q.mu.
func (q *Queuer[K]) part(s *submitter[K]) {
	q.blocked--
	s.ticket.rare.submitter = nil
	for e := range s.ticket.entries {
		l, c := e.lane, e.lane.crowd
		next := e.next
		if c.first == e {
			c.first = next
		} else {
			e.prev.next = next
			next = nil // it is not the first by this
		}
		if e.next != nil {
			e.next.prev = e.prev
		} else {
			c.last = e.prev
		}
		e.next, e.prev = nil, nil
		if c.n--; c.n == 0 {
			l.crowd = nil
		}
		if next != nil && q.room(l) {
			q.roomFor(next)
		}
	}
}

func (q *Queuer[K]) room(l *lane[K]) bool {
	return q.maxPerKey == 0 || int(l.depth) < q.maxPerKey
}

// roomFor takes away one reason why a submitter cannot have its places.
// REQUIRES: q.mu.
func (q *Queuer[K]) roomFor(e *entry[K]) {
	s := e.ticket.rare.submitter
	s.short--
	if s.short == 0 && !s.roomy {
		s.roomy = true
		q.roomy.insert(s)
	}
}

// roomy is a heap of the submitters whose lanes have room, who came first in
// front. One that has lost its room since, or has gone, is left in until it is
// its turn.
type roomy[K comparable] []*submitter[K]

func (h *roomy[K]) insert(s *submitter[K]) {
	*h = append(*h, s)
	list := *h
	for i := len(list) - 1; i > 0 && list[i].arrival < list[(i-1)/2].arrival; i = (i - 1) / 2 {
		list[i], list[(i-1)/2] = list[(i-1)/2], list[i]
	}
}

func (h *roomy[K]) pop() *submitter[K] {
	list := *h
	n := len(list) - 1
	s := list[0]
	s.roomy = false
	list[0], list[n] = list[n], nil
	list = list[:n]
	*h = list
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < n && list[child].arrival < list[least].arrival {
				least = child
			}
		}
		if least == i {
			return s
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}
