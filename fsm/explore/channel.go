package explore

import (
	"fmt"
	"slices"
)

// Channel says how a channel behaves. Faults of a channel are steps of their own
// and take one from their budget each.
type Channel struct {
	// Capacity is how many messages fit in: 1 to [MaxCapacity]. A send into a full
	// channel is not possible for now; it is not lost.
	Capacity int
	// Ordered: first in, first out. Otherwise any message may come next, so that
	// late and reordered messages need no fault.
	Ordered bool
	// Lose: any one message disappears.
	Lose Budget
	// Duplicate: any one message is there twice, if there is room; in an ordered
	// channel the copy follows the original at once.
	Duplicate Budget
}

// MaxCapacity is the greatest capacity of a channel.
const MaxCapacity = 64

// Chan is a channel that carries messages of type M, for which the same holds as
// for the local state of an [Actor]. It is made with [NewChannel].
type Chan[M comparable] struct {
	sys *System
	at  int
}

// channelPart is a channel without its type.
type channelPart struct {
	name     string
	is       Channel
	filled   bool // has initial messages
	messages func() messageTable
	start    func(messageTable) []uint32
}

// NewChannel adds a channel with the messages that are in it at the beginning,
// the oldest first; usually none.
func NewChannel[M comparable](s *System, name string, is Channel, initial ...M) *Chan[M] {
	part := partName("channel", name)
	s.nameOf(part, name)
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
		messages: func() messageTable {
			return &messages[M]{interned: newInterned[M]()}
		},
		start: func(t messageTable) (ids []uint32) {
			for _, m := range initial {
				ids = append(ids, t.(*messages[M]).add(m))
			}
			return ids
		},
	})
	return &Chan[M]{sys: s, at: len(s.channels) - 1}
}

// In returns the messages in flight in a state: of an ordered channel the oldest
// first, of an unordered one in an order that means nothing. The slice belongs to
// the exploration and must not be changed.
func (c *Chan[M]) In(v *View) []M {
	v.mustBeOf(c.sys)
	return v.t.channels[c.at].messages.(*messages[M]).lists[v.ids[len(v.t.locals)+c.at]]
}

func (c *Chan[M]) part() string { return partName("channel", c.sys.channels[c.at].name) }
