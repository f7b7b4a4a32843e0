package lattice_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

func TestSystemIsTheDiagramOfTheDocument(t *testing.T) {
	conform.Check(t, lattice.System.Table(), "testdata/system.json", "testdata/system.map.txt")
}

func TestDeployConforms(t *testing.T) {
	conform.Check(t, lattice.Deploy.Table(), "testdata/deploy.json", "testdata/deploy.map.txt")
}

func TestTeardownConforms(t *testing.T) {
	conform.Check(t, lattice.Teardown.Table(), "testdata/teardown.json", "testdata/teardown.map.txt")
}

func TestASystemMayBeDeletedFromEveryState(t *testing.T) {
	for s := range lattice.System.States() {
		if s == lattice.DoesNotExist || s == lattice.Deleting {
			continue
		}
		step, err := lattice.System.Next(context.Background(), lattice.System.At(s), lattice.Delete, lattice.User, nil)
		require.NoError(t, err, "in %s", s)
		require.Equal(t, lattice.Deleting, step.State)
		row := lattice.System.Table().Rows[step.Row]
		require.Equal(t, lattice.System.Kind(s) == fsm.Transitional, row.Supersede,
			"in %s: a delete begins an operation of its own exactly where another may be under way", s)
	}
}

// Whatever the services come to, the system gets there from any other derived
// state, and from no other state.
func TestDerivedStatesFollowTheServices(t *testing.T) {
	derived := []lattice.State{lattice.Stable, lattice.Updating, lattice.Scaling, lattice.Degraded}
	for from := range lattice.System.States() {
		for _, to := range derived {
			step, err := lattice.System.NextTo(context.Background(), lattice.System.At(from), to, lattice.Aggregator, nil)
			if from == to || !slices.Contains(derived, from) {
				require.Error(t, err, "%s to %s", from, to)
				continue
			}
			require.NoError(t, err, "%s to %s", from, to)
			require.Equal(t, to, step.State)
		}
	}
}
