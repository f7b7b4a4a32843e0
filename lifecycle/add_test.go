package lifecycle_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// An object that exists already is added in a state at rest, with the deadline of that
// state, and moves on from there.
func TestAddInAState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		leases := lifecycle.Must(lease, lifecycle.NewMemoryStore(), nil)
		rec, err := leases.Add(ctx, "a", "Active", user, size{N: 3}, nil)
		require.NoError(t, err)
		require.Equal(t, state("Active"), rec.State)
		require.Equal(t, size{N: 3}, rec.Payload)
		require.Zero(t, rec.Operation)
		require.Equal(t, time.Now().Add(24*time.Hour), rec.Deadline.Local())
		rows := rowsOf(t, leases, "a", 0, 0)
		require.Equal(t, []string{lifecycle.Overridden, "added: it exists already"}, []string{rows[0].Event, rows[0].Reason})
		_, err = leases.Add(ctx, "a", "Active", user, size{}, nil)
		require.ErrorIs(t, err, lifecycle.ErrExists)
		fire(t, leases, "a", "end", user, nil)

		rec, err = leases.Add(ctx, "over", "Over", user, size{}, &lifecycle.Change[size]{Reason: "import"})
		require.NoError(t, err)
		require.Equal(t, "import", rec.Reason)
		vms, _ := vms(t)
		_, err = vms.Add(ctx, "failed", "Failed", user, size{}, nil)
		require.NoError(t, err)
		notes := lifecycle.Must(fsm.Must[size](noteTable()), lifecycle.NewMemoryStore(), nil)
		rec, err = notes.Add(ctx, "initial", "Draft", user, size{}, nil)
		require.NoError(t, err)
		require.Empty(t, rec.Event)
	})
}

// A state that is not at rest, or not declared, is refused by its name.
func TestAddInAStateRefusals(t *testing.T) {
	vms, store := vms(t)
	for _, c := range []struct {
		name  string
		state state
		actor fsm.Actor
		want  error
		text  string
	}{
		{"transitional state", "Updating", user, lifecycle.ErrInvalid, `lifecycle: add vm "a" by user: invalid request: state "Updating" is transitional: only an object at rest can be added`},
		{"absent state", "None", user, lifecycle.ErrInvalid, `lifecycle: add vm "a" by user: invalid request: state "None" is absent: only an object at rest can be added`},
		{"unknown state", "Flying", user, fsm.ErrUnknownState, "unknown state: Flying"},
		{"wrong actor", "Ready", "stranger", fsm.ErrWrongActor, "stranger"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := vms.Add(t.Context(), "a", c.state, c.actor, size{}, nil)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
			var tx lifecycle.Tx
			vms.In(&tx).Add("a", c.state, c.actor, size{}, nil)
			require.ErrorIs(t, tx.Commit(t.Context()), c.want)
		})
	}
	require.Zero(t, store.commits)
}
