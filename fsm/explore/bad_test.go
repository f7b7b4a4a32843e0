package explore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// sound returns a correct system, to which a test adds one mistake.
func sound() (*explore.System, *explore.Actor[int], *explore.Channel[int]) {
	sys := explore.New("s")
	a := explore.NewActor(sys, "a", 0)
	c := explore.NewChannel[int](sys, "c", explore.ChannelSpec{Capacity: 1})
	explore.Sends(a, c, func(l int, send func(string, int, int)) { send("", 1, l) })
	explore.Receives(a, c, func(int, int, func(string, int)) {})
	sys.Always("fine", func(*explore.View) error { return nil })
	return sys, a, c
}

// A faulty description gives an error that names the part, and no verdict.
func TestBadSystems(t *testing.T) {
	type withPointer struct{ Deep [2]struct{ P *int } }
	fine := func(*explore.View) error { return nil }
	fits := func(*explore.View) bool { return true }
	tests := map[string]struct {
		make func(*explore.System, *explore.Actor[int], *explore.Channel[int])
		want string
	}{
		"actor without name": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) { explore.NewActor(s, "", 1) },
			`system "s": actor "": no name`,
		},
		"two actors": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) { explore.NewActor(s, "a", 1) },
			`actor "a": declared twice`,
		},
		"actor without initial state": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) { explore.NewActor[int](s, "b") },
			`actor "b": no initial state`,
		},
		"state with pointer": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				explore.NewActor(s, "b", withPointer{})
			},
			`actor "b": its local state is not comparable by content: explore_test.withPointer.Deep[].P is of kind ptr`,
		},
		"state is an interface": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				explore.NewActor[any](s, "b", 1)
			},
			`actor "b": its local state is not comparable by content: interface {} is of kind interface`,
		},
		"state with a float": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) { explore.NewActor(s, "b", 1.5) },
			`actor "b": its local state is not comparable by content: float64 is of kind float64`,
		},
		"message with a channel": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				explore.NewChannel[chan int](s, "d", explore.ChannelSpec{Capacity: 1})
			},
			`channel "d": its message is not comparable by content: chan int is of kind chan`,
		},
		"channel without bound": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				explore.NewChannel[int](s, "d", explore.ChannelSpec{})
			},
			`channel "d": its capacity of 0 is not between 1 and 64`,
		},
		"channel too large": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				explore.NewChannel[int](s, "d", explore.ChannelSpec{Capacity: 65})
			},
			`channel "d": its capacity of 65`,
		},
		"channel overfilled": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				explore.NewChannel(s, "d", explore.ChannelSpec{Capacity: 1}, 1, 2)
			},
			`channel "d": 2 initial messages are more than its capacity of 1`,
		},
		"two channels": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				explore.NewChannel[int](s, "c", explore.ChannelSpec{Capacity: 1})
			},
			`channel "c": declared twice`,
		},
		"received twice": {
			func(_ *explore.System, a *explore.Actor[int], c *explore.Channel[int]) {
				explore.Receives(a, c, func(int, int, func(string, int)) {})
			},
			`actor "a" receiving from channel "c": declared twice`,
		},
		"struck twice": {
			func(s *explore.System, a *explore.Actor[int], _ *explore.Channel[int]) {
				f := s.Fault("f", s.Budget("b", 1))
				explore.Strikes(f, a, func(l int) (int, bool) { return l, true })
				explore.Strikes(f, a, func(l int) (int, bool) { return l, true })
			},
			`fault "f" striking actor "a": declared twice`,
		},
		"fault without budget": {
			func(s *explore.System, _ *explore.Actor[int], c *explore.Channel[int]) {
				s.Fault("f", explore.Budget{}, c)
			},
			`fault "f": the zero Budget: make one with System.Budget`,
		},
		"two faults": {
			func(s *explore.System, _ *explore.Actor[int], c *explore.Channel[int]) {
				b := s.Budget("b", 1)
				s.Fault("f", b, c)
				s.Fault("f", b, c)
			},
			`fault "f": declared twice`,
		},
		"negative budget": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) { s.Budget("b", -1) },
			`budget "b": -1 is not between 0 and 65535`,
		},
		"two budgets": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				s.Budget("b", 1)
				s.Budget("b", 1)
			},
			`budget "b": declared twice`,
		},
		"budget of another system": {
			func(s *explore.System, _ *explore.Actor[int], c *explore.Channel[int]) {
				s.Fault("f", explore.New("other").Budget("b", 1), c)
			},
			`fault "f" and its budget: the two belong to different systems`,
		},
		"channel's budget of another system": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				explore.NewChannel[int](s, "d", explore.ChannelSpec{Capacity: 1, Lose: explore.New("other").Budget("b", 1)})
			},
			`channel "d" and its budget: the two belong to different systems`,
		},
		"channel of another system": {
			func(s *explore.System, a *explore.Actor[int], _ *explore.Channel[int]) {
				_, _, other := sound()
				explore.Sends(a, other, func(int, func(string, int, int)) {})
			},
			`actor "a" sending into channel "c": the two belong to different systems`,
		},
		"two invariants": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) { s.Always("fine", fine) },
			`invariant "fine": declared twice`,
		},
		"two properties": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				s.LeadsTo("ends", fits, fits)
				s.LeadsTo("ends", fits, fits)
			},
			`property "ends": declared twice`,
		},
		"property without a name": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) { s.LeadsTo("", fits, fits) },
			`property "": no name`,
		},
		"resting states twice": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int]) {
				s.Rests(func(*explore.View) bool { return true })
				s.Rests(func(*explore.View) bool { return true })
			},
			`resting states: declared twice`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sys, a, c := sound()
			test.make(sys, a, c)
			v, err := sys.Explore(context.Background(), nil)
			require.Nil(t, v)
			require.ErrorIs(t, err, explore.ErrModel)
			require.ErrorContains(t, err, test.want)
			require.True(t, strings.HasPrefix(err.Error(), `explore: bad model: system "s": `))
		})
	}
	sys, _, _ := sound()
	v := explored(t, sys, nil)
	require.NoError(t, v.Err(), "the rest of it is sound")
}

func TestAllMistakesAreReported(t *testing.T) {
	sys := explore.New("s")
	sys.Budget("b", -1)
	sys.Always("", func(*explore.View) error { return nil })
	_, err := sys.Explore(context.Background(), nil)
	require.EqualError(t, err, "explore: bad model: system \"s\": budget \"b\": -1 is not between 0 and 65535\n"+
		"explore: bad model: system \"s\": invariant \"\": no name\n"+
		"explore: bad model: system \"s\": no actor")
}

func TestBadModels(t *testing.T) {
	next := func(int, func(string, bool, int)) {}
	for name, c := range map[string]struct {
		model explore.Model[int]
		want  string
	}{
		"no initial state": {explore.Model[int]{Next: next}, `actor "state": no initial state`},
		"no steps":         {explore.Model[int]{Initial: []int{1}}, `Next in 1: panic: runtime error`},
		"no invariant": {
			explore.Model[int]{Initial: []int{1}, Next: next, Always: map[string]func(int) error{"i": nil}},
			`invariant "i" in state 1: panic: `,
		},
		"invariant without a name": {
			explore.Model[int]{Initial: []int{1}, Next: next, Always: map[string]func(int) error{"": nil}},
			`invariant "": no name`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := c.model.Explore(context.Background(), nil)
			require.Nil(t, v)
			require.ErrorIs(t, err, explore.ErrModel)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A function that panics gives an error with its part, the panic and its stack. A missing
// function is one that panics.
func TestPanics(t *testing.T) {
	broken := errors.New("broken")
	tests := map[string]struct {
		make func(*explore.System, *explore.Actor[int], *explore.Channel[int], func())
		want string
	}{
		"action": {
			func(_ *explore.System, a *explore.Actor[int], _ *explore.Channel[int], panics func()) {
				a.Acts(func(int, func(string, int)) {})
				a.Acts(func(int, func(string, int)) { panics() })
			},
			`actor "a" in action 2 in 0: panic: broken`,
		},
		"sender": {
			func(_ *explore.System, a *explore.Actor[int], c *explore.Channel[int], panics func()) {
				explore.Sends(a, c, func(int, func(string, int, int)) { panics() })
			},
			`actor "a" sending into channel "c" in 0: panic: broken`,
		},
		"receiver": {
			func(s *explore.System, _ *explore.Actor[int], c *explore.Channel[int], panics func()) {
				b := explore.NewActor(s, "b", 7)
				explore.Receives(b, c, func(_, m int, _ func(string, int)) {
					if m == 1 {
						panics()
					}
				})
			},
			`actor "b" receiving from channel "c" in 7, message 1: panic: broken`,
		},
		"strike": {
			func(s *explore.System, a *explore.Actor[int], _ *explore.Channel[int], panics func()) {
				explore.Strikes(s.Fault("f", s.Budget("b", 1)), a, func(int) (int, bool) { panics(); return 0, true })
			},
			`fault "f" striking actor "a" in 0: panic: broken`,
		},
		"invariant": {
			func(s *explore.System, _ *explore.Actor[int], c *explore.Channel[int], panics func()) {
				s.Budget("b", 3)
				s.Always("breaks", func(v *explore.View) error {
					if len(c.In(v)) > 0 {
						panics()
					}
					return nil
				})
			},
			`invariant "breaks" in a 0; c [1]; b 3: panic: broken`,
		},
		"resting states": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int], panics func()) {
				s.Rests(func(*explore.View) bool { panics(); return true })
			},
			`resting states in a 0; c []: panic: broken`,
		},
		"property": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int], panics func()) {
				s.LeadsTo("ends", func(*explore.View) bool { panics(); return true }, func(*explore.View) bool { return false })
			},
			`property "ends" in a 0; c []: panic: broken`,
		},
		"no function": {
			func(_ *explore.System, a *explore.Actor[int], c *explore.Channel[int], _ func()) {
				explore.Sends(a, c, nil)
			},
			`actor "a" sending into channel "c" in 0: panic: runtime error`,
		},
		"view of another system": {
			func(s *explore.System, _ *explore.Actor[int], _ *explore.Channel[int], _ func()) {
				_, other, _ := sound()
				s.Always("asks another", func(v *explore.View) error { other.In(v); return nil })
			},
			`invariant "asks another" in a 0; c []: panic: explore: view of another system`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			sys, a, c := sound()
			test.make(sys, a, c, func() { panic(broken) })
			v, err := sys.Explore(context.Background(), nil)
			require.Nil(t, v)
			require.ErrorContains(t, err, `explore: bad model: system "s": `+test.want)
			require.ErrorIs(t, err, explore.ErrModel)
			require.ErrorContains(t, err, "bad_test.go")
			if strings.HasSuffix(test.want, "broken") {
				require.ErrorIs(t, err, broken)
			}
		})
	}
}
