package explore

import (
	"fmt"
	"slices"
)

// Channel describes how a channel behaves. A loss or a duplication is a step of
// its own and takes one from its budget.
type Channel struct {
	// Capacity is the number of messages that fit in: 1 to [MaxCapacity]. A full
	// channel delays a send and does not lose it.
	Capacity int
	// Ordered channels deliver first in, first out. Unordered channels deliver any
	// message next, so late and reordered messages need no fault.
	Ordered bool
	// Lose is the budget for losing any one message.
	Lose Budget
	// Duplicate is the budget for duplicating any one message while there is room.
	// In an ordered channel the copy follows the original at once.
	Duplicate Budget
}

// MaxCapacity is the largest capacity of a channel.
const MaxCapacity = 64

// Chan carries messages of type M, to which the rules for the local state of an
// [Actor] apply. [NewChannel] makes one. A channel has at most 65,535 different
// messages.
type Chan[M comparable] struct {
	sys *System
	at  int
}

// channelPart is a channel without its type.
type channelPart struct {
	name   string
	is     Channel
	filled bool // it has initial messages
	table  func() table
	start  func(table) []uint32
}

// NewChannel adds a channel with its initial messages, the oldest first.
func NewChannel[M comparable](s *System, name string, is Channel, initial ...M) *Chan[M] {
	part := partName("channel", name)
	s.needName(part, name)
	if slices.ContainsFunc(s.channels, func(c *channelPart) bool { return c.name == name }) {
		s.problem(part, "declared twice")
	}
	switch {
	case is.Capacity < 1 || is.Capacity > MaxCapacity:
		s.problem(part, fmt.Sprintf("its capacity of %d is not between 1 and %d", is.Capacity, MaxCapacity))
	case len(initial) > is.Capacity:
		s.problem(part, fmt.Sprintf("%d initial messages are more than its capacity of %d", len(initial), is.Capacity))
	}
	if err := plain[M](); err != nil {
		s.problem(part, "its message "+err.Error())
	}
	for _, b := range []Budget{is.Lose, is.Duplicate} {
		if b.sys != nil {
			s.same(part+" and its budget", b.sys)
		}
	}
	initial = slices.Clone(initial)
	s.channels = append(s.channels, &channelPart{
		name: name, is: is, filled: len(initial) > 0,
		table: func() table { return newInterned[M]() },
		start: func(t table) (ids []uint32) {
			for _, m := range initial {
				ids = append(ids, t.(*interned[M]).add(m))
			}
			return ids
		},
	})
	return &Chan[M]{sys: s, at: len(s.channels) - 1}
}

// In returns the messages in flight in a state: of an ordered channel the oldest
// first, of an unordered one in no particular order.
func (c *Chan[M]) In(v *View) []M {
	v.mustBeOf(c.sys)
	queue := v.t.lay.queue(v.state, c.at)
	n := queue.len()
	if n == 0 {
		return nil
	}
	list := make([]M, n)
	for i := range list {
		list[i] = v.t.messages[c.at].(*interned[M]).values[queue.at(i)]
	}
	return list
}

func (c *Chan[M]) part() string { return partName("channel", c.sys.channels[c.at].name) }
