package explore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/explore"
)

// The trace of a fault has the messages that it removes.
func TestTraceOfEmptiedChannels(t *testing.T) {
	sys := explore.New("disconnect")
	a := explore.NewActor(sys, "a", 0)
	b := explore.NewActor(sys, "b", 0)
	c := explore.NewChannel[string](sys, "wire", explore.ChannelSpec{Capacity: 2, Ordered: true})
	quiet := explore.NewChannel(sys, "quiet", explore.ChannelSpec{Capacity: 1}, "")
	explore.Sends(a, c, func(l int, send func(string, string, int)) {
		if l < 2 {
			send("report", string(rune('x'+l)), l+1)
		}
	})
	explore.Receives(b, c, func(int, string, func(string, int)) {})
	explore.Receives(b, quiet, func(int, string, func(string, int)) {})
	cut := sys.Fault("cut", sys.Budget("cuts", 1), c, quiet)
	explore.Strikes(cut, b, func(l int) (int, bool) { return 1, true })
	sys.Always("two reports arrive", func(v *explore.View) error {
		if a.In(v) == 2 && len(c.In(v)) == 0 {
			return errors.New("lost")
		}
		return nil
	})
	v := explored(t, sys, nil)
	require.Equal(t, explore.Violated, v.Outcome)
	last := v.Trace.Steps[len(v.Trace.Steps)-1]
	require.Equal(t, []explore.TraceQueue{{Channel: "wire", Messages: []string{"x", "y"}}, {Channel: "quiet", Messages: []string{""}}}, last.Emptied)
	require.Contains(t, v.Trace.String(), "\n  quiet: \"\"\n")
	require.Contains(t, v.Trace.String(), `cut; wire loses x, y; quiet loses ""; b: 1`)
	roundTrip(t, v.Trace)
}

// The verdict is inconclusive if the context ends while the components of many states are found.
func TestContextEndsInComponents(t *testing.T) {
	const n = 50_000
	m := &explore.Model[int]{
		Name: "ring", Initial: []int{0},
		Next:  func(s int, step func(string, bool, int)) { step("on", false, (s+1)%n) },
		Rests: func(int) bool { return false },
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	v, err := m.Explore(ctx, &explore.Config{Progress: func(what string, _, total int) {
		if strings.HasPrefix(what, "check ") && total == n {
			end()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, explore.Inconclusive, v.Outcome)
	require.ErrorIs(t, v.Reason, context.Canceled)
	require.Nil(t, v.Trace)
}
