package explore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// packet is a frame of the alternating bit protocol: the bit, and the index of the
// value that it carries. An acknowledgement has no value.
type packet struct {
	Bit   bool
	Value int
}

// station is either end: the bit that it expects or sends, and the index of its value.
type station struct {
	Bit   bool
	Value int
}

// alternatingBit sends three values over channels that lose and repeat frames. Without
// the bit, the receiver accepts every frame as new.
func alternatingBit(ordered, compares bool) *explore.System {
	const values = 3
	sys := explore.New("alternating bit")
	is := explore.ChannelSpec{
		Capacity: 2, Ordered: ordered,
		Lose: sys.Budget("loss", 2), Duplicate: sys.Budget("duplication", 2),
	}
	sender := explore.NewActor(sys, "sender", station{})
	receiver := explore.NewActor(sys, "receiver", station{})
	frames := explore.NewChannel[packet](sys, "frames", is)
	acks := explore.NewChannel[bool](sys, "acks", is)
	explore.Sends(sender, frames, func(s station, send func(string, packet, station)) {
		if s.Value < values {
			send("frame", packet(s), s)
		}
	})
	explore.Receives(receiver, frames, func(r station, p packet, next func(string, station)) {
		if !compares || p.Bit == r.Bit {
			next("take", station{!r.Bit, r.Value + 1})
		}
	})
	explore.Sends(receiver, acks, func(r station, send func(string, bool, station)) {
		if r.Value > 0 {
			send("ack", !r.Bit, r)
		}
	})
	explore.Receives(sender, acks, func(s station, bit bool, next func(string, station)) {
		if bit == s.Bit && s.Value < values {
			next("acknowledged", station{!s.Bit, s.Value + 1})
		}
	})
	sys.Always("in order", func(v *explore.View) error {
		s, r := sender.In(v).Value, receiver.In(v).Value
		if r < s || r > s+1 {
			return fmt.Errorf("%d received of %d sent", r, s)
		}
		return nil
	})
	sys.Rests(func(v *explore.View) bool {
		return sender.In(v).Value == values && len(frames.In(v)) == 0
	})
	return sys
}

func explored(t *testing.T, sys *explore.System, o *explore.Config) *explore.Verdict {
	t.Helper()
	v, err := sys.Explore(context.Background(), o)
	require.NoError(t, err)
	return v
}

// counters returns independent counters up to n: n+1 states each, in all combinations.
// Further actors without steps make the states longer.
func counters(actors, n, idle int) *explore.System {
	sys := explore.New("counters")
	var all []*explore.Actor[int]
	for i := range actors + idle {
		a := explore.NewActor(sys, fmt.Sprint(i), 0)
		if i >= actors {
			continue
		}
		a.Acts(func(l int, step func(string, int)) {
			if l < n {
				step("count", l+1)
			}
		})
		all = append(all, a)
	}
	sys.Rests(func(v *explore.View) bool {
		for _, a := range all {
			if a.In(v) < n {
				return false
			}
		}
		return true
	})
	return sys
}
