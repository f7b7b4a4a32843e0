package queue

import (
	"cmp"
	"maps"
	"slices"
)

// lane is the FIFO of one key. Its first ticket runs or is the next to run.
type lane[K comparable] struct {
	key     K
	queue   []*Ticket[K] // ordered by seq
	delayed []*Ticket[K] // not in queue yet, ordered by seq
	halted  bool
	drained chan struct{} // closed when the lane of a stopping key is empty; nil: the key is not stopping

	first [1]*Ticket[K] // the memory of queue while it has one ticket
}

// Go's maps never shrink. The map of lanes is replaced if less than 1/shrink of its
// peak is left. A map with a peak up to shrinkAbove stays, and so does a list of ready tickets.
const (
	shrink      = 8
	shrinkAbove = 128
)

// makeLane makes the lane of a key that has none. REQUIRES: q.mu.
func (q *Queuer[K]) makeLane(key K) *lane[K] {
	l := &lane[K]{key: key}
	l.queue = l.first[:0]
	if q.lanes == nil {
		q.lanes = make(map[K]*lane[K])
	}
	q.lanes[key] = l
	q.peak = max(q.peak, len(q.lanes))
	return l
}

// tidy removes the lane if nothing needs it, and then ends its drain. REQUIRES: q.mu.
func (q *Queuer[K]) tidy(l *lane[K]) {
	if l.size() > 0 || l.halted && l.drained == nil {
		return
	}
	if l.drained != nil {
		close(l.drained)
		l.drained = nil
	}
	delete(q.lanes, l.key)
	if q.peak > shrinkAbove && len(q.lanes) < q.peak/shrink {
		lanes := make(map[K]*lane[K], len(q.lanes))
		maps.Copy(lanes, q.lanes)
		q.lanes, q.peak = lanes, len(lanes)
	}
}

// size counts the tickets of the lane, also the delayed ones.
func (l *lane[K]) size() int { return len(l.queue) + len(l.delayed) }

// running returns the ticket of the lane that runs, or that is settled after it ran; or nil.
// The lane may be nil.
func (l *lane[K]) running() *Ticket[K] {
	if l == nil || len(l.queue) == 0 {
		return nil
	}
	if t := l.queue[0]; t.hasWorker() {
		return t
	}
	return nil
}

// waitingBeside counts the tickets of the lane that do not run, without t, which does not run.
func (l *lane[K]) waitingBeside(t *Ticket[K]) int {
	n := l.size()
	if l.running() != nil {
		n--
	}
	if t != nil && l.index(t) >= 0 { // a ticket that is refused in its place has Admit, and so no Delay
		n--
	}
	return n
}

// tickets returns the tickets of the lane, delayed ones last.
func (l *lane[K]) tickets() []*Ticket[K] {
	if len(l.delayed) == 0 {
		return l.queue
	}
	return slices.Concat(l.queue, l.delayed)
}

// drop removes the ticket.
func (l *lane[K]) drop(t *Ticket[K]) {
	if i := l.index(t); i >= 0 {
		l.queue = remove(l.queue, i)
		return
	}
	l.delayed = slices.DeleteFunc(l.delayed, func(o *Ticket[K]) bool { return o == t })
}

// index returns the position of the ticket in queue, or -1 if it is not there.
func (l *lane[K]) index(t *Ticket[K]) int {
	if len(l.queue) > 0 && l.queue[0] == t { // nearly always: the others are not looked at
		return 0
	}
	i, found := slices.BinarySearchFunc(l.queue, t.seq, func(o *Ticket[K], seq uint64) int { return cmp.Compare(o.seq, seq) })
	if !found {
		return -1
	}
	return i
}

// isNext reports whether the ticket is first in all its lanes and none of them is
// halted.
func (t *Ticket[K]) isNext() bool {
	for _, p := range t.places {
		if p.lane.halted || p.lane.queue[0] != t {
			return false
		}
	}
	return true
}

// remove takes the ticket at i out of a FIFO. It moves the tickets between i and the
// nearer end: the first one and the last one cost nothing.
func remove[K comparable](fifo []*Ticket[K], i int) []*Ticket[K] {
	last := len(fifo) - 1
	if last == 0 || i > last/2 {
		return slices.Delete(fifo, i, i+1) // keeps the memory
	}
	copy(fifo[1:], fifo[:i])
	fifo[0] = nil
	return fifo[1:]
}
