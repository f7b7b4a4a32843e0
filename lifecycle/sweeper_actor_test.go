package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestSweeperIsNoCaller: no caller acts as the sweeper, whatever the table permits it.
func TestSweeperIsNoCaller(t *testing.T) {
	machine := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "door", Initial: "shut", Actors: []fsm.Actor{"user", fsm.Sweeper},
		States: []fsm.State[string]{{Name: "gone", Kind: fsm.Absent}, {Name: "shut"}, {Name: "opening", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move("gone", "make", "shut").By("user", fsm.Sweeper),
			fsm.Move("shut", "push", "opening").By("user", fsm.Sweeper),
			fsm.Move("shut", "remove", "gone").By("user"),
			fsm.Move("opening", "late", "shut").By("user").After(1),
		),
	})
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(machine, store, &lifecycle.Config[string]{WorkerActor: "user", Done: []string{"late"}})
	add(t, m, "a", "user", struct{}{})
	before := all(t, store, "door", "a", "b")
	var tx lifecycle.Tx
	m.In(&tx).Fire("a", "push", fsm.Sweeper, nil)
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"fire":     func() error { _, err := m.Fire(ctx, "a", "push", fsm.Sweeper, nil); return err },
		"create":   func() error { _, err := m.Create(ctx, "b", "make", fsm.Sweeper, struct{}{}, nil); return err },
		"add":      func() error { _, err := m.Add(ctx, "b", initial(m), fsm.Sweeper, struct{}{}, nil); return err },
		"override": func() error { _, err := m.Override(ctx, "a", "opening", fsm.Sweeper, "why", nil); return err },
		"report":   func() error { _, err := m.Report(ctx, "a", 1, "late", fsm.Sweeper, nil); return err },
		"do":       func() error { _, err := m.Do(ctx, "a", "push", fsm.Sweeper, lifecycle.Func(fine), nil); return err },
		"tx":       func() error { return tx.Commit(ctx) },
		"reconcile": func() error {
			_, err := lifecycle.Reconcile(ctx, m, fsm.Sweeper, []lifecycle.PeerReport[string]{{ID: "a", Ended: true, Operation: 1, Event: "late"}}, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := call()
			require.ErrorIs(t, err, fsm.ErrWrongActor)
			require.ErrorContains(t, err, "only sweeps act as sweeper")
			require.Equal(t, 403, lifecycle.HTTPStatus(err))
		})
	}
	require.Equal(t, before, all(t, store, "door", "a", "b"))

	_, err := lifecycle.New(machine, store, &lifecycle.Config[string]{WorkerActor: fsm.Sweeper})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// TestReservedNames: a machine whose objects a sweep would take for owners is refused.
func TestReservedNames(t *testing.T) {
	for _, name := range []string{"interlock.owner", "interlock.", "interlock.mine"} {
		spec := noteTable()
		spec.Name = name
		_, err := lifecycle.New(fsm.Must[size](spec), lifecycle.NewMemoryStore(), nil)
		require.ErrorIs(t, err, lifecycle.ErrInvalid, name)
		require.ErrorContains(t, err, "machine names that begin with interlock.")
	}
}
