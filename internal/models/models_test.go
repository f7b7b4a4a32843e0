package models

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/terminal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is set by "make verify". The budgets of the models are then those of the
// documentation. Without it they are smaller.
var long = os.Getenv("INTERLOCK_LONG") != ""

// model is an explore.System or an explore.Model.
type model interface {
	Explore(context.Context, *explore.Config) (*explore.Verdict, error)
}

// explored explores a model and logs the verdict. One goroutine does most of an exploration,
// so the tests named TestVerify run in parallel.
func explored(t *testing.T, m model) *explore.Verdict {
	t.Helper()
	start := time.Now()
	show, clear := terminal.Progress(os.Stdout)
	v, err := m.Explore(t.Context(), &explore.Config{MaxBytes: 4 << 30, Progress: show})
	clear()
	require.NoError(t, err)
	t.Logf("%s: %v: %d states, %d steps, depth %d, %d bytes/state, %v",
		v.System, v.Outcome, v.States, v.Steps, v.Depth, v.Bytes/int64(v.States), time.Since(start).Round(time.Millisecond))
	return v
}

// requireHolds explores a model to its end. The minimum of states detects an exploration
// that ends early. Every step happens except the unused ones.
func requireHolds(t *testing.T, m model, atLeast int, unused ...string) {
	t.Helper()
	v := explored(t, m)
	require.NoError(t, v.Err())
	require.Equal(t, []string{"every operation ends"}, v.Live)
	require.ElementsMatch(t, unused, v.Unused)
	require.GreaterOrEqual(t, v.States, atLeast)
}

// requireTrace compares a counterexample with that in testdata, as text and as a fixture.
func requireTrace(t *testing.T, name string, v *explore.Verdict) {
	t.Helper()
	require.NotNil(t, v.Trace, v)
	fixture, err := v.Trace.Fixture()
	require.NoError(t, err)
	requireGolden(t, name+".txt", v.String())
	requireGolden(t, name+".json", string(fixture))
}

func requireGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(want), got), "UPDATE_DOCS=1 writes %s anew", path)
}
