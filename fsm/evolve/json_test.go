package evolve_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/evolve"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// Lists without elements are [] in JSON.
func TestJSONHasNoNull(t *testing.T) {
	table, err := tabletest.ParseLines("stable A\nA -go by u-> A")
	require.NoError(t, err)
	report, err := evolve.Diff(table, table, nil)
	require.NoError(t, err)
	text, err := json.Marshal(report)
	require.NoError(t, err)
	require.NotContains(t, string(text), "null")
}
