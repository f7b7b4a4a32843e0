package fsm

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const anybody Actor = "anybody"

// light is a lamp that can be touched without effect, and that blinks between
// two states.
func light(t *testing.T) *Machine[string, string, int] {
	m, err := New[int](Spec[string, string]{
		Name: "light", Initial: "off", Actors: []Actor{anybody},
		States: []State[string]{{Name: "off"}, {Name: "blinking", Kind: Transitional, Manual: "us"}, {Name: "on"}},
		Rows: Rows(
			Move("off", "push", "on"), Move("on", "push", "off"), Move("off", "touch", "off").AlsoFrom("on"),
			Move("on", "blink", "blinking").AlsoFrom("off"), Move("blinking", "blink", "blinking"), Return("blinking", "push")),
	})
	require.NoError(t, err)
	return m
}

// The count of moves shares a word with state and origin. When it wraps, it
// must not spill into them, by whichever way the object moves.
func TestCountWrapsWithinItsBits(t *testing.T) {
	m := light(t)
	for _, event := range []string{"push", "touch", "blink"} {
		for state := range m.States() {
			at := Status[string]{State: state, Origin: state}
			if state == "blinking" {
				at.Origin = "on"
			}
			want, err := m.Next(t.Context(), at, event, anybody, nil)
			if err != nil {
				continue
			}
			for name, fire := range map[string]func(*Instance[string, string, int]) (Step[string], error){
				"Fire": func(in *Instance[string, string, int]) (Step[string], error) {
					return in.Fire(t.Context(), event, anybody, nil)
				},
				"FireForced": func(in *Instance[string, string, int]) (Step[string], error) {
					return in.FireForced(t.Context(), event, anybody, nil)
				},
				"CompareAndSwap": func(in *Instance[string, string, int]) (Step[string], error) {
					move, err := in.Next(t.Context(), event, anybody, nil)
					require.NoError(t, err)
					return in.CompareAndSwap(move)
				},
			} {
				in, err := m.InstanceAt(at)
				require.NoError(t, err)
				in.word.Or(^statusBits)
				require.Equal(t, at, in.Status())
				step, err := fire(&in)
				require.NoError(t, err, name)
				require.Equal(t, want.Status, step.Status, name)
				require.Equal(t, want.Status, in.Status(), name)
				require.Zero(t, in.word.Load()&^statusBits, name)
				// And it goes on from there.
				move, err := in.Next(t.Context(), event, anybody, nil)
				require.NoError(t, err)
				_, err = in.CompareAndSwap(move)
				require.NoError(t, err, name)
			}
		}
	}
}
