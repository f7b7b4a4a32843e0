package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The count of moves shares a word with state and origin. When it wraps, it must not
// change them.
func TestCountWrapsWithinItsBits(t *testing.T) {
	const operator Actor = "operator"
	m, err := New[int](Spec[string, string]{
		Name: "light", Initial: "off", Actors: []Actor{operator},
		States: []State[string]{{Name: "off"}, {Name: "blinking", Kind: Transitional, Manual: "operator"}, {Name: "on"}},
		Rows: Rows(
			Move("off", "push", "on"), Move("on", "push", "off"), Move("off", "touch", "off").AlsoFrom("on"),
			Move("on", "blink", "blinking"), Move("blinking", "blink", "blinking"), Return("blinking", "push")),
	})
	require.NoError(t, err)
	for _, c := range []struct {
		event    string
		from, to Status[string]
	}{
		{"push", m.At("off"), m.At("on")},
		{"touch", m.At("on"), m.At("off")},
		{"blink", m.At("on"), Status[string]{"blinking", "on"}},
		{"blink", Status[string]{"blinking", "off"}, Status[string]{"blinking", "off"}},
		{"push", Status[string]{"blinking", "on"}, m.At("on")},
	} {
		t.Run(fmt.Sprintf("%s in %v", c.event, c.from), func(t *testing.T) {
			in, err := m.InstanceAt(c.from)
			require.NoError(t, err)
			in.word.Or(^statusBits)
			require.Equal(t, c.from, in.Status())
			step, err := in.Fire(t.Context(), c.event, operator, nil)
			require.NoError(t, err)
			require.Equal(t, c.to, step.Status)
			require.Equal(t, c.to, in.Status())
			require.Zero(t, in.word.Load()&^statusBits)
		})
	}
}
