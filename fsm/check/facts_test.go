package check_test

import (
	"encoding/json"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm/check"
	"github.com/interlock-go/interlock/fsm/internal/tabletest"
)

// What an independent analyser found in the tables of running systems.
func TestFactsOfPublishedTables(t *testing.T) {
	data, err := os.ReadFile("testdata/expected.json")
	require.NoError(t, err)
	var expected map[string]map[string]any
	require.NoError(t, json.Unmarshal(data, &expected))
	files := tabletest.Files(t, "real")
	require.Len(t, files, len(expected), "every table has its facts")
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			want := expected[name]
			require.NotEmpty(t, want)
			delete(want, "file") // of the collection, not of the table
			marshalled, err := json.Marshal(check.Analyze(tabletest.Read(t, "real/"+name+".json")))
			require.NoError(t, err)
			var got map[string]any
			require.NoError(t, json.Unmarshal(marshalled, &got))
			require.Empty(t, cmp.Diff(want, got))
		})
	}
}
