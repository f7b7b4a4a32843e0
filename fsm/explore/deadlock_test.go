package explore_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// Without resting states, a state without a step is a deadlock. A fault is not a way out.
func TestDeadlockWithoutRestingStates(t *testing.T) {
	m := &explore.Model[int]{
		Name: "line", Initial: []int{0},
		Next: func(s int, step func(string, bool, int)) {
			switch s {
			case 0, 1:
				step("on", false, s+1)
			case 2:
				step("repair", true, 0)
			}
		},
		Always: map[string]func(int) error{"small": func(s int) error {
			if s > 2 {
				return errors.New("large")
			}
			return nil
		}},
	}
	v, err := m.Explore(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, explore.Stuck, v.Outcome, v)
	require.Len(t, v.Trace.Steps, 2)

	m.Rests = func(s int) bool { return s == 2 }
	v, err = m.Explore(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, v.Err())
}
