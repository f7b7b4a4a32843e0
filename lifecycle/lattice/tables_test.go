package lattice_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

func TestSystemIsTheDiagramOfTheDocument(t *testing.T) {
	conform.Check(t, lattice.System.Table(), "testdata/system.json", "testdata/system.map.txt")
}

// The document has no diagram of deploys and teardowns. Their rows are: a deploy goes from
// pending to accepted to in progress, and from there to succeeded or failed; pending and
// accepted may fail as well. A teardown goes from pending to in progress, and from there to
// succeeded or failed; pending may fail as well.

func TestDeployIsAsDescribed(t *testing.T) {
	conform.CheckDocument(t, lattice.Deploy.Table(), &conform.Document{
		Name: "deploy", Initial: "pending",
		States: []conform.State{
			{Name: "pending", Kind: fsm.Transitional},
			{Name: "accepted", Kind: fsm.Transitional},
			{Name: "in progress", Kind: fsm.Transitional},
			{Name: "succeeded", Kind: fsm.Final},
			{Name: "failed", Kind: fsm.Final},
		},
		Rows: conform.Rows(
			"pending --accept by backend--> accepted",
			"accepted --begin by backend--> in progress",
			"in progress --succeed by backend--> succeeded",
			"in progress --fail by backend--> failed",
			"pending --fail by backend--> failed",
			"accepted --fail by backend--> failed",
		),
	}, conform.MustMapping(`
additions: a backend that dies leaves the deploy in its state; the document has no row for that
    pending --timed out by sweeper--> failed
    accepted --timed out by sweeper--> failed
    in progress --timed out by sweeper--> failed
`))
}

func TestTeardownIsAsDescribed(t *testing.T) {
	conform.CheckDocument(t, lattice.Teardown.Table(), &conform.Document{
		Name: "teardown", Initial: "pending",
		States: []conform.State{
			{Name: "pending", Kind: fsm.Transitional},
			{Name: "in progress", Kind: fsm.Transitional},
			{Name: "succeeded", Kind: fsm.Final},
			{Name: "failed", Kind: fsm.Final},
		},
		Rows: conform.Rows(
			"pending --begin by backend--> in progress",
			"in progress --succeed by backend--> succeeded",
			"in progress --fail by backend--> failed",
			"pending --fail by backend--> failed",
		),
	}, conform.MustMapping(`
additions: a backend that dies leaves the teardown in its state; the document has no row for that
    pending --timed out by sweeper--> failed
    in progress --timed out by sweeper--> failed
`))
}

func TestEveryRowFiresAndNothingElse(t *testing.T) {
	t.Run("system", func(t *testing.T) { conform.Walk(t, lattice.System, nil) })
	t.Run("deploy", func(t *testing.T) { conform.Walk(t, lattice.Deploy, nil) })
	t.Run("teardown", func(t *testing.T) { conform.Walk(t, lattice.Teardown, nil) })
	t.Run("service", func(t *testing.T) { conform.Walk(t, lattice.Service, nil) })
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

// A system enters a derived state from every other derived state, and from no other state.
func TestDerivedStatesFollowTheServices(t *testing.T) {
	derived := []lattice.State{lattice.Stable, lattice.Updating, lattice.Scaling, lattice.Degraded}
	isDerived := func(s lattice.State) bool {
		for _, d := range derived {
			if d == s {
				return true
			}
		}
		return false
	}
	for from := range lattice.System.States() {
		for _, to := range derived {
			step, err := lattice.System.NextTo(context.Background(), lattice.System.At(from), to, lattice.Aggregator, nil)
			if from == to || !isDerived(from) {
				require.Error(t, err, "%s to %s", from, to)
				continue
			}
			require.NoError(t, err, "%s to %s", from, to)
			require.Equal(t, to, step.State)
		}
	}
}
