package sqltest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// A migration that has waited for another one sees what that one has made, whatever the
// default isolation level of its connection.
func TestMigrateWaitsAtEveryIsolation(t *testing.T) {
	t.Parallel()
	e := engines()[1] // the lock of the others comes before what the migration reads
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		for before := range sqlstore.Version {
			w := e.open(t)
			db := pool(t, w)
			for version := 1; version <= before; version++ {
				runSchema(t, e, db, "", version)
			}
			gate, err := db.Begin()
			require.NoError(t, err)
			_, err = gate.Exec("SELECT pg_advisory_xact_lock(6001973320)")
			require.NoError(t, err)
			var group errgroup.Group
			for range 2 {
				own := pool(t, w.with(t, "default_transaction_isolation="+level))
				group.Go(func() error { return sqlstore.Migrate(t.Context(), own, e.dialect, nil) })
			}
			require.Eventually(t, func() bool {
				n := 0
				err := db.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted" +
					" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&n)
				return err == nil && n == 2
			}, time.Minute, 10*time.Millisecond, "both migrations wait")
			require.NoError(t, gate.Rollback())
			require.NoError(t, group.Wait(), "%s, from version %d", level, before)
		}
	}
}

// The context of a migration ends between two statements, and the engine does not answer any
// more. Migrate returns, and the engine undoes the migration when the connection ends.
func TestMigrateIsCutOff(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !e.networked() {
			t.Skip("skipped: the engine is in this process")
		}
		w := e.open(t)
		by, p := w.through(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		release := make(chan struct{})
		defer close(release)
		config := &sqlstore.Config{Progress: func(string, int, int) {
			cancel()
			p.Hold(storetest.BeforeRequest, 1, func() { <-release })
		}}
		ended := make(chan error, 1)
		db := pool(t, by)
		go func() { ended <- sqlstore.Migrate(ctx, db, e.dialect, config) }()
		select {
		case err := <-ended:
			require.ErrorIs(t, err, context.Canceled)
		case <-time.After(30 * time.Second):
			require.Fail(t, "Migrate waits for the engine")
		}
		p.SetDown(true)
		require.NoError(t, sqlstore.Migrate(t.Context(), pool(t, w), e.dialect, nil))
	})
}

// MariaDB ends the wait for a lock without an error when the time of a statement is over. A
// migration that has not got the lock changes nothing.
func TestMigrateWithoutTheLock(t *testing.T) {
	w := engines()[2].open(t)
	db := pool(t, w)
	gate, err := db.Conn(t.Context())
	require.NoError(t, err)
	defer gate.Close()
	got := 0
	require.NoError(t, gate.QueryRowContext(t.Context(), "SELECT GET_LOCK('interlock schema', 60)").Scan(&got))
	require.Equal(t, 1, got)
	defer func() { _, _ = gate.ExecContext(t.Context(), "DO RELEASE_LOCK('interlock schema')") }()
	onMariaDB(t, db) // MySQL has no max_statement_time
	err = sqlstore.Migrate(t.Context(), pool(t, w.with(t, "max_statement_time=0.1")), sqlstore.MySQL, nil)
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
	require.ErrorContains(t, err, "another migration holds the lock")
	tables := 0
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE()").Scan(&tables))
	require.Zero(t, tables)
}

// Open refuses tables of which the version is there twice, as after a restore into tables that
// were migrated already, and tables without their primary key.
func TestOpenAfterAFaultyImport(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		exec(t, db, "INSERT INTO interlock_schema (version) VALUES (1)")
		_, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
		require.ErrorContains(t, err, "table interlock_schema has 2 rows, not one")
		require.ErrorIs(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil), sqlstore.ErrSchema)
		exec(t, db, "DELETE FROM interlock_schema WHERE version = 1")
		drop := map[string]string{
			"postgres": "ALTER TABLE interlock_history DROP CONSTRAINT interlock_history_pkey", "mysql": "ALTER TABLE interlock_history DROP PRIMARY KEY",
		}[e.name]
		if drop == "" { // SQLite keeps the primary key of a table
			return
		}
		exec(t, db, drop)
		_, err = sqlstore.Open(t.Context(), db, e.dialect, nil)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
		require.ErrorContains(t, err, "table interlock_history has no unique index on (id, machine, sequence)")
	})
}
