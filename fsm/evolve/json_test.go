package evolve_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/evolve"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// Lists without elements are [] in JSON.
func TestJSONHasNoNull(t *testing.T) {
	table, err := tabletest.ParseLines("stable A\nA -go by u-> A")
	require.NoError(t, err)
	for _, same := range []*fsm.Table{table, {Name: "empty", Initial: -1}} {
		report, err := evolve.Diff(same, same, nil)
		require.NoError(t, err)
		text, err := json.Marshal(report)
		require.NoError(t, err)
		require.NotContains(t, string(text), "null")
	}
}
