package explore

import "encoding/binary"

// layout is the place of each part in the bytes of a state: four for a local
// state, two for each message that fits into a channel, two for a budget.
type layout struct {
	queues  []int // by channel: its first byte; the last entry is the end of all
	budgets int   // first byte
	size    int
}

func newLayout(s *System) layout {
	l := layout{queues: []int{4 * len(s.actors)}}
	for i, c := range s.channels {
		l.queues = append(l.queues, l.queues[i]+2*c.is.Capacity)
	}
	l.budgets = l.queues[len(s.channels)]
	l.size = l.budgets + 2*len(s.budgets)
	return l
}

func (l *layout) local(state []byte, actor int) uint32 {
	return binary.LittleEndian.Uint32(state[4*actor:])
}

func (l *layout) setLocal(state []byte, actor int, local uint32) {
	binary.LittleEndian.PutUint32(state[4*actor:], local)
}

// left returns what a state has left of a budget.
func (l *layout) left(state []byte, b Budget) int {
	if b.sys == nil {
		return 0
	}
	return int(binary.LittleEndian.Uint16(state[l.budgets+2*b.at:]))
}

func (l *layout) setBudget(state []byte, i, left int) {
	binary.LittleEndian.PutUint16(state[l.budgets+2*i:], uint16(left))
}

func (l *layout) queue(state []byte, channel int) queue {
	return queue(state[l.queues[channel]:l.queues[channel+1]])
}

// queue is the content of a channel: a slot of two bytes for each message that
// fits in, with the number of the message plus one, 0 if it is free. The messages
// of an ordered channel stand oldest first, those of another in order of numbers,
// so that equal contents are equal bytes.
type queue []byte

// maxMessages is the number of different messages that a slot can hold.
const maxMessages = 1<<16 - 1

func (q queue) len() int {
	n := 0
	for 2*n < len(q) && (q[2*n] != 0 || q[2*n+1] != 0) {
		n++
	}
	return n
}

func (q queue) at(i int) uint32 { return uint32(binary.LittleEndian.Uint16(q[2*i:])) - 1 }

// repeats reports whether the message at i equals the one before it.
func (q queue) repeats(i int) bool { return i > 0 && q.at(i) == q.at(i-1) }

func (q queue) insert(i int, message uint32) {
	copy(q[2*(i+1):], q[2*i:])
	binary.LittleEndian.PutUint16(q[2*i:], uint16(message+1))
}

func (q queue) remove(i int) {
	copy(q[2*i:], q[2*(i+1):])
	clear(q[len(q)-2:])
}

// place returns where a new message goes among the n that are there.
func (q queue) place(n int, message uint32, ordered bool) int {
	if ordered {
		return n
	}
	i := 0
	for i < n && q.at(i) <= message {
		i++
	}
	return i
}
