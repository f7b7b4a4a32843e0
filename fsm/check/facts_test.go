package check_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/check"
)

func readTable(t testing.TB, file string) *fsm.Table {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	table, err := fsm.ParseTable(data)
	require.NoError(t, err, file)
	return table
}

// What an independent analyser found in the tables of running systems.
func TestFactsOfPublishedTables(t *testing.T) {
	data, err := os.ReadFile("testdata/expected.json")
	require.NoError(t, err)
	var expected map[string]map[string]any
	require.NoError(t, json.Unmarshal(data, &expected))
	files, err := filepath.Glob("testdata/real/*.json")
	require.NoError(t, err)
	require.Len(t, files, len(expected), "every table has its facts")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			want := expected[name]
			require.NotEmpty(t, want)
			delete(want, "file") // of the collection, not of the table
			marshalled, err := json.Marshal(check.Analyze(readTable(t, "real/"+name+".json")))
			require.NoError(t, err)
			var got map[string]any
			require.NoError(t, json.Unmarshal(marshalled, &got))
			require.Empty(t, cmp.Diff(want, got))
		})
	}
}
