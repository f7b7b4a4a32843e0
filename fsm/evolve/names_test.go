package evolve_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/evolve"
)

// A state is removed, and another one gets its name.
func TestNameOfARemovedState(t *testing.T) {
	olds := short(t, "A stable, B stable, C stable", "A go B", "B go C", "C go A")
	news := short(t, "A stable, C stable", "A go C", "C go A")
	news.Name = "shorter"
	report, err := evolve.Diff(olds, news, &evolve.Config{States: map[string]string{"B": "C"}})
	require.NoError(t, err)
	text := report.String()
	require.Contains(t, text, "short -> shorter: ")
	require.Contains(t, text, "state removed: C\n")
	require.NotContains(t, text, "\x00")
}
