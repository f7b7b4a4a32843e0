package timeouts_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/timeouts"
)

func spec() fsm.Spec[string, string] {
	return fsm.Spec[string, string]{
		Name: "door", Initial: "open",
		States: []fsm.State[string]{
			{Name: "open"}, {Name: "opening", Kind: fsm.Transitional}, {Name: "closing", Kind: fsm.Transitional},
		},
		Rows: fsm.Rows(
			fsm.Move("open", "close", "closing"),
			fsm.Move("open", "reopen", "opening"),
			fsm.Move("opening", "late", "open").AlsoFrom("closing").After(time.Minute),
		),
	}
}

func TestSet(t *testing.T) {
	changed, err := timeouts.Set(spec(), map[string]time.Duration{"closing": time.Hour})
	require.NoError(t, err)
	table := fsm.Must[struct{}](changed).Table()
	for name, want := range map[string]time.Duration{"opening": time.Minute, "closing": time.Hour} {
		t.Run(name, func(t *testing.T) {
			state, _ := table.StateIndex(name)
			got, _ := table.Timeout(state, 0)
			require.Equal(t, want, got)
		})
	}
	for state, timeout := range map[string]time.Duration{"open": time.Hour, "closing": 0, "ajar": time.Hour} {
		t.Run(state, func(t *testing.T) {
			_, err := timeouts.Set(spec(), map[string]time.Duration{state: timeout})
			require.ErrorContains(t, err, state)
		})
	}
}
