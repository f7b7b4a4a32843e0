package explore

import "fmt"

// ChannelSpec describes how a channel behaves. A loss or a duplication is a step of
// its own and takes one from its budget.
type ChannelSpec struct {
	// Capacity is the number of messages that fit in: 1 to 64. A full
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

// maxCapacity is the largest capacity of a channel.
const maxCapacity = 64

// Channel carries messages of type M. The rules for the local state of an [Actor] apply
// to M too. [NewChannel] makes a Channel.
type Channel[M comparable] struct {
	sys   *System
	at    int
	label string // in errors
}

// NewChannel adds a channel with its initial messages, the oldest first.
func NewChannel[M comparable](s *System, name string, spec ChannelSpec, initial ...M) *Channel[M] {
	c := &Channel[M]{sys: s, at: len(s.channels), label: s.declare("channel", name)}
	switch {
	case spec.Capacity < 1 || spec.Capacity > maxCapacity:
		s.problem(c.label, fmt.Sprintf("its capacity of %d is not between 1 and %d", spec.Capacity, maxCapacity))
	case len(initial) > spec.Capacity:
		s.problem(c.label, fmt.Sprintf("%d initial messages are more than its capacity of %d", len(initial), spec.Capacity))
	}
	if err := plain[M](); err != nil {
		s.problem(c.label, "its message "+err.Error())
	}
	for _, b := range []Budget{spec.Lose, spec.Duplicate} {
		if b.sys != nil {
			s.same(c.label+" and its budget", b.sys)
		}
	}
	s.channels = append(s.channels, channelPart{name, spec, untyped(initial)})
	s.losses = append(s.losses,
		&rule{kind: StepLose, actor: none, channel: c.at, budget: spec.Lose, label: "loss in " + c.label},
		&rule{kind: StepDuplicate, actor: none, channel: c.at, budget: spec.Duplicate, label: "duplication in " + c.label})
	return c
}

// In returns the messages in flight in a state: of an ordered channel the oldest
// first, of an unordered one in no particular order.
func (c *Channel[M]) In(v *View) (list []M) {
	v.mustBeOf(c.sys)
	for _, m := range v.t.lay.queue(v.state, c.at).messages() {
		list = append(list, v.t.messages[c.at].value(m).(M))
	}
	return list
}
