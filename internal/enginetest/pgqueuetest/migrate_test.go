package pgqueuetest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// Migrate of a process that starts does not wait for a slow producer, and holds up no worker: a
// handler of another process keeps its lease.
func TestMigrateDuringSlowCommit(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	release := make(chan struct{})
	running := enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Retries: pgqueue.Retries{Attempts: 1}})
	run(t, db, handler(func(ctx context.Context, _ *pgqueue.Task) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}), &pgqueue.Config{Observer: e.observer(), Lease: 3 * time.Second, Poll: 50 * time.Millisecond})
	next(t, e.started)
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	enqueue(t, tx, pgqueue.Action{Keys: []string{"b"}})
	migrated := make(chan error, 1)
	go func() { migrated <- pgqueue.Migrate(context.Background(), db) }()
	require.NoError(t, next(t, migrated), "it waits for no producer")
	renewed(t, db, running)
	close(release)
	require.Equal(t, queue.OK, next(t, e.finished).Outcome)
	require.NoError(t, tx.Commit())
	idle(t, db)
}

// Migrate makes an index that is missing.
func TestMigrateMakesIndexes(t *testing.T) {
	_, db := database(t)
	for _, index := range []string{"interlock_queue_actions_at", "interlock_queue_actions_delayed"} {
		execute(t, db, "DROP INDEX "+index)
		require.NoError(t, pgqueue.Migrate(t.Context(), db))
		execute(t, db, "DROP INDEX "+index)
		require.NoError(t, pgqueue.Migrate(t.Context(), db))
	}
}

// Migrate does not wait for a transaction that has read the view, and replaces a view of
// another version.
func TestMigrateBesideAReader(t *testing.T) {
	_, db := database(t)
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	_, err = tx.Exec("SELECT * FROM interlock_queue")
	require.NoError(t, err)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	require.NoError(t, pgqueue.Migrate(ctx, db))
	require.NoError(t, tx.Rollback())
	execute(t, db, "CREATE OR REPLACE VIEW interlock_queue AS SELECT 'earlier' AS state, * FROM interlock_queue_actions")
	execute(t, db, "COMMENT ON VIEW interlock_queue IS 'version 0'")
	require.NoError(t, pgqueue.Migrate(ctx, db))
	var view string
	require.NoError(t, db.QueryRow("SELECT pg_get_viewdef('interlock_queue'::regclass)").Scan(&view))
	require.Contains(t, view, "'expired'")
}
