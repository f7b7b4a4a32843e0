package explore

import "slices"

// A state of a system is a list of numbers: the local state of each actor, then the slots
// of each channel, then what is left of each budget. layout has the places of the parts.
type layout struct {
	queues  []int // by channel: its first slot; the last entry is the end of all
	budgets int   // the first budget
	size    int
}

func newLayout(s *System) layout {
	l := layout{queues: []int{len(s.actors)}}
	for i, c := range s.channels {
		l.queues = append(l.queues, l.queues[i]+c.spec.Capacity)
	}
	l.budgets = l.queues[len(s.channels)]
	l.size = l.budgets + len(s.budgets)
	return l
}

// left returns what a state has left of a budget.
func (l *layout) left(state []uint32, b Budget) uint32 {
	if b.sys == nil {
		return 0
	}
	return state[l.budgets+b.at]
}

func (l *layout) queue(state []uint32, channel int) queue {
	return state[l.queues[channel]:l.queues[channel+1]]
}

// queue is the content of a channel: a slot for each message that fits in. 0 is a free
// slot. The messages of an ordered channel stand oldest first, those of another in order
// of numbers, so that equal contents are equal numbers.
type queue []uint32

// messages returns the slots that are not free.
func (q queue) messages() []uint32 {
	if n := slices.Index(q, 0); n >= 0 {
		return q[:n]
	}
	return q
}

func (q queue) full() bool { return q[len(q)-1] != 0 }

// repeats reports whether the message at i equals the one before it.
func (q queue) repeats(i int) bool { return i > 0 && q[i] == q[i-1] }

func (q queue) insert(i int, message uint32) {
	copy(q[i+1:], q[i:])
	q[i] = message
}

func (q queue) remove(i int) {
	copy(q[i:], q[i+1:])
	q[len(q)-1] = 0
}

// add puts a message where a new one goes.
func (q queue) add(message uint32, ordered bool) {
	at := len(q.messages())
	if !ordered {
		at, _ = slices.BinarySearch(q[:at], message)
	}
	q.insert(at, message)
}
