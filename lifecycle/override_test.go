package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestOverride: record and history have actor and reason, and every earlier
// operation is stale. The table does not have the actor.
func TestOverride(t *testing.T) {
	cases := map[string]struct {
		to       state
		origin   state
		deadline bool
	}{
		"rest":        {to: "Ready", origin: "Ready"},
		"failed":      {to: "Failed", origin: "Failed"},
		"transition":  {to: "Deleting", origin: "Ready", deadline: true},
		"same":        {to: "Updating", origin: "Ready", deadline: true},
		"to be there": {to: "Creating", origin: "Ready", deadline: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			m, store := vms(t)
			updating(t, m, "a")
			rec := override(t, m, "a", c.to, "Zoë", "ticket 7", nil)
			require.Equal(t, rec, get(t, m, "a"))
			require.Equal(t, c.to, rec.State)
			require.Equal(t, c.origin, rec.Origin)
			require.Equal(t, fsm.Actor("Zoë"), rec.Actor)
			require.Equal(t, "ticket 7", rec.Reason)
			require.Equal(t, lifecycle.Overridden, rec.Event)
			require.EqualValues(t, 3, rec.Operation)
			require.Equal(t, c.deadline, !rec.Deadline.IsZero())
			require.Equal(t, size{N: 2}, rec.Payload)
			rows := rowsOf(t, m, "a", 3, 0)
			row := rows[0]
			require.Equal(t, `vm "a" #4 operation 3: Updating -(override)-> `+string(c.to)+` by Zoë: ticket 7`, row.String())
			before := all(t, store.MemoryStore, "vm", "a")
			for _, e := range []event{"done", "fail", "progress"} {
				require.Equal(t, lifecycle.Stale, report(t, m, "a", 2, e, agent, ""))
			}
			require.Equal(t, before, all(t, store.MemoryStore, "vm", "a"))
		})
	}
}

// TestOverrideAway: an absent state removes the object. The result has its last payload, and
// its numbers go on.
func TestOverrideAway(t *testing.T) {
	m, _ := vms(t)
	updating(t, m, "a")
	require.Equal(t, size{N: 2}, override(t, m, "a", "None", "ann", "it never was", nil).Payload)
	absent(t, m, "a")
	require.Equal(t, lifecycle.Stale, report(t, m, "a", 2, "done", agent, ""))
	require.EqualValues(t, 4, create(t, m, "a", "create", user, size{}).Operation)
}

// TestOverrideOutOfFinal: the table has a forced row at most; an override needs
// none.
func TestOverrideOutOfFinal(t *testing.T) {
	leases := lifecycle.Must(lease, lifecycle.NewMemoryStore(), nil)
	add(t, leases, "l", user, size{})
	override(t, leases, "l", "Over", "ann", "paid back", nil)
	_, err := leases.Fire(t.Context(), "l", "touch", user, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	rec := override(t, leases, "l", "Active", "ann", "not quite", nil)
	require.False(t, rec.Deadline.IsZero(), "the deadline of the state holds as ever")
}

// TestOverrideUndo: what an undo brings back after an override is what it would
// have brought back after an event.
func TestOverrideUndo(t *testing.T) {
	t.Run("the edit of the operation", func(t *testing.T) {
		m, _ := vms(t)
		updating(t, m, "a") // from 1 to 2
		override(t, m, "a", "Failed", "ann", "it hangs", nil)
		require.Equal(t, size{N: 1}, fire(t, m, "a", "undo", user, nil).Payload)
	})
	t.Run("the edit of the override", func(t *testing.T) {
		m, _ := vms(t)
		ready(t, m, "a")
		require.Equal(t, size{N: 9}, override(t, m, "a", "Failed", "ann", "it is really larger", resize(9)).Payload)
		require.Equal(t, size{N: 1}, fire(t, m, "a", "undo", user, nil).Payload)
	})
	t.Run("nothing once all is well", func(t *testing.T) {
		m, _ := vms(t)
		updating(t, m, "a")
		override(t, m, "a", "Ready", "ann", "it is as it should be", nil)
		override(t, m, "a", "Failed", "ann", "or is it", nil)
		require.Equal(t, size{N: 2}, fire(t, m, "a", "undo", user, nil).Payload)
	})
}

// TestOverrideRefused: it skips the table, and nothing else.
func TestOverrideRefused(t *testing.T) {
	m, store := vms(t)
	updating(t, m, "a")
	before := all(t, store.MemoryStore, "vm", "a", "b")
	for name, c := range map[string]struct {
		id     string
		to     state
		actor  fsm.Actor
		reason string
		change *lifecycle.Change[size]
		is     error
	}{
		"no actor":     {"a", "Ready", "", "because", nil, lifecycle.ErrInvalid},
		"no reason":    {"a", "Ready", "ann", "", nil, lifecycle.ErrInvalid},
		"blank":        {"a", "Ready", " ", "because", nil, lifecycle.ErrInvalid},
		"NUL":          {"a", "Ready", "a\x00b", "because", nil, lifecycle.ErrInvalid},
		"not UTF-8":    {"a", "Ready", "a\xffb", "because", nil, lifecycle.ErrInvalid},
		"blank reason": {"a", "Ready", "ann", " \n", nil, lifecycle.ErrInvalid},
		"no state":     {"a", "Nowhere", "ann", "because", nil, fsm.ErrUnknownState},
		"no object":    {"b", "Ready", "ann", "because", nil, lifecycle.ErrNotFound},
		"no id":        {"", "Ready", "ann", "because", nil, lifecycle.ErrInvalid},
		"edit":         {"a", "Ready", "ann", "because", &lifecycle.Change[size]{Edit: func(*size) error { return errBoom }}, errBoom},
		"precondition": {"a", "Ready", "ann", "because", &lifecycle.Change[size]{Require: []lifecycle.Precondition{m.Require("b", "Ready")}}, lifecycle.ErrPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.Override(t.Context(), c.id, c.to, c.actor, c.reason, c.change)
			require.ErrorIs(t, err, c.is)
			require.Equal(t, before, all(t, store.MemoryStore, "vm", "a", "b"))
		})
	}
	store.reset()
	store.afterGet = func(int) {
		fire(t, store.others(), "a", "progress", agent, nil)
	}
	_, err := m.Override(t.Context(), "a", "Ready", "ann", "because", nil)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.Equal(t, "progress", winnerOf(t, m, err).Event)
}

// TestOverrideOfWork: the owner is out of the record, and its outcome is refused.
func TestOverrideOfWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		o := join(t, store, "p", 0)
		m := workers(store, lifecycle.Config[event]{Owner: o})
		other := workers(store, lifecycle.Config[event]{})
		running(t, m, "a")
		end := make(chan struct{})
		work := func(context.Context) error { <-end; return nil }
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(work), nil)
		synctest.Wait() // the turn begins with a commit
		rec := override(t, other, "a", "stopping", "ann", "another process does it", nil)
		require.Empty(t, rec.Owner)
		close(end)
		require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
		require.Equal(t, rec, get(t, m, "a"))
		require.NoError(t, o.Leave(t.Context()))
	})
}
