package pgqueuetest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

var vm = fsm.Must[string](fsm.Spec[string, string]{
	Name: "vm", Initial: "none", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[string]{
		{Name: "none", Kind: fsm.Absent}, {Name: "stopped"}, {Name: "starting", Kind: fsm.Transitional}, {Name: "running"},
	},
	Rows: fsm.Rows(
		fsm.Move("none", "create", "stopped").By("user"),
		fsm.Move("stopped", "start", "starting").By("user"),
		fsm.Move("starting", "started", "running").By("worker"),
		fsm.Move("starting", "failed", "stopped").By("worker").After(time.Minute),
		fsm.Move("running", "stop", "stopped").By("user"),
	),
})

// The status of a record and its action change in one transaction, at the request and at the
// end.
func TestWithStore(t *testing.T) {
	_, db := database(t)
	require.NoError(t, sqlstore.Migrate(t.Context(), db, sqlstore.Postgres, nil))
	store, err := sqlstore.Open(t.Context(), db, sqlstore.Postgres, nil)
	require.NoError(t, err)
	defer store.Close()
	vms := lifecycle.Must(vm, store, nil)
	_, err = vms.Create(t.Context(), "vm1", "create", "user", "", nil)
	require.NoError(t, err)
	state := func() string {
		r, err := vms.Get(t.Context(), "vm1")
		require.NoError(t, err)
		return r.State
	}
	request := func(end func(*sql.Tx) error) error {
		tx, err := db.Begin()
		require.NoError(t, err)
		defer tx.Rollback()
		if _, err := lifecycle.Must(vm, store.WithTx(tx), nil).Fire(t.Context(), "vm1", "start", "user", nil); err != nil {
			return err
		}
		enqueue(t, tx, pgqueue.Action{Keys: []string{"vm1"}, Name: "start"})
		return end(tx)
	}
	require.NoError(t, request((*sql.Tx).Rollback))
	require.Equal(t, "stopped", state())
	empty(t, db)
	require.NoError(t, request((*sql.Tx).Commit))
	require.Equal(t, "starting", state())
	require.ErrorIs(t, request((*sql.Tx).Commit), fsm.ErrNotAllowed, "a second request")

	e := newEvents()
	run(t, db, map[string]pgqueue.Handler{"start": {
		Run: nothing,
		Settle: func(ctx context.Context, tx *sql.Tx, task *pgqueue.Task, outcome queue.Outcome, _ error) error {
			event := "started"
			if outcome != queue.OK {
				event = "failed"
			}
			_, err := lifecycle.Must(vm, store.WithTx(tx), nil).Fire(ctx, task.Keys[0], event, "worker", nil)
			return err
		},
	}}, &pgqueue.Config{Observer: e.observer()})
	require.NoError(t, next(t, e.finished).Err)
	require.Equal(t, "running", state())
	empty(t, db)
}
