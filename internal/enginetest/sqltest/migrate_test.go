package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

func TestMigrate(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		config := &sqlstore.Config{Prefix: "app_"}
		_, err := sqlstore.Open(t.Context(), db, e.dialect, config)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
		require.ErrorContains(t, err, "the user of the connection finds no table app_schema: call Migrate first")

		// Several processes start at once.
		var group errgroup.Group
		for range 4 {
			group.Go(func() error { return sqlstore.Migrate(t.Context(), db, e.dialect, config) })
		}
		require.NoError(t, group.Wait())
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, config))
		store, err := sqlstore.Open(t.Context(), db, e.dialect, config)
		require.NoError(t, err)
		require.NoError(t, store.Close())
		_, err = sqlstore.Open(t.Context(), db, e.dialect, nil)
		require.ErrorIs(t, err, sqlstore.ErrSchema, "tables of another prefix are not ours")

		exec(t, db, "DELETE FROM app_schema")
		_, err = sqlstore.Open(t.Context(), db, e.dialect, config)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
	})
}

// A publication of all tables refuses updates of a table without a primary key, and so do some
// servers of MySQL.
func TestPublication(t *testing.T) {
	e := engines()[1]
	db := pool(t, e.open(t))
	exec(t, db, "CREATE PUBLICATION everything FOR ALL TABLES")
	require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	store, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
	require.NoError(t, err)
	create(t, manage(store), "a")
	_, err = store.Trim(t.Context(), time.Hour, 10)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	require.NoError(t, sqlstore.AfterRestore(t.Context(), db, e.dialect, nil, 0))
}

// Processes that start at once wait for each other, also where the engine does not wait.
func TestMigrateLockedDatabase(t *testing.T) {
	e := onSQLite()
	w := e.open(t).with(t, "_pragma=journal_mode(WAL)&_pragma=busy_timeout(0)")
	var group errgroup.Group
	for range 8 {
		db := pool(t, w)
		group.Go(func() error {
			if err := sqlstore.Migrate(t.Context(), db, e.dialect, nil); err != nil {
				return err
			}
			store, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
			if err != nil {
				return err
			}
			return store.Close()
		})
	}
	require.NoError(t, group.Wait())
}

// A wrong dialect is an error, and the pool can still be used.
func TestWrongDialect(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		db.SetMaxOpenConns(1)
		for _, wrong := range engines() {
			if wrong.name == e.name {
				continue
			}
			require.Error(t, sqlstore.Migrate(t.Context(), db, wrong.dialect, nil))
			_, err := sqlstore.Open(t.Context(), db, wrong.dialect, nil)
			require.Error(t, err)
		}
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	})
}

// Open refuses tables that were changed, and names what is wrong.
func TestChangedTables(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		for _, x := range []struct{ change, text string }{
			{"ALTER TABLE interlock_messages RENAME COLUMN topic TO subjects", "table interlock_messages lacks topic"},
			{"DROP INDEX interlock_history_at", "table interlock_history has no index interlock_history_at on (at)"},
			{"DROP TABLE interlock_history", "the user of the connection finds no table interlock_history"},
			{"DROP INDEX interlock_objects_state", "table interlock_objects has no index interlock_objects_state on (machine, state, id)"},
			{"CREATE INDEX interlock_objects_state ON interlock_objects (state)", "table interlock_objects has no index interlock_objects_state on (machine, state, id)"},
			{"ALTER TABLE interlock_objects DROP COLUMN saved", "table interlock_objects lacks saved"},
			{"ALTER TABLE interlock_schema DROP COLUMN trimmed_to", "table interlock_schema lacks trimmed_to"},
			{"ALTER TABLE interlock_schema DROP COLUMN compatible", "table interlock_schema lacks compatible, trimmed_to"},
		} {
			if e.name == "mysql" && strings.HasPrefix(x.change, "DROP INDEX") {
				x.change += " ON " + x.change[len("DROP INDEX "):strings.LastIndex(x.change, "_")]
			}
			exec(t, db, x.change)
			_, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
			require.ErrorIs(t, err, sqlstore.ErrSchema)
			require.ErrorContains(t, err, x.text)
		}
	})
}

// Migrate waits for another migration as long as its context allows, and the pool can
// still be used.
func TestMigrateWaits(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !e.networked() {
			t.Skip("skipped: the driver waits by its busy_timeout, and looks at no context")
		}
		w := e.open(t)
		other, err := pool(t, w).Conn(t.Context())
		require.NoError(t, err)
		defer other.Close()
		perform := func(text string) {
			_, err := other.ExecContext(t.Context(), text)
			require.NoError(t, err)
		}
		db := pool(t, w)
		db.SetMaxOpenConns(1)
		if e.name == "postgres" {
			perform("SELECT pg_advisory_lock(6001973320)")
		} else {
			perform("SELECT GET_LOCK('interlock schema', 60)")
		}
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		require.ErrorIs(t, sqlstore.Migrate(ctx, db, e.dialect, nil), context.DeadlineExceeded)
		if e.name == "postgres" {
			perform("SELECT pg_advisory_unlock(6001973320)")
		} else {
			perform("SELECT RELEASE_LOCK('interlock schema')")
		}
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	})
}

// Where tables are created one by one without a transaction, Migrate continues a migration
// that was interrupted.
func TestMigrateAfterAnEndHalfWay(t *testing.T) {
	t.Parallel()
	e := engines()[2] // the others make all tables or none
	db := pool(t, e.open(t))
	require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	exec(t, db, "DELETE FROM interlock_schema")
	exec(t, db, "DROP TABLE interlock_messages, interlock_history")
	existing(t, db, e)
}

// runSchema runs the statements of one version as a migration tool of the user would.
func runSchema(t testing.TB, e engine, db *sql.DB, prefix string, version int) {
	t.Helper()
	text, err := e.dialect.Schema(prefix, version)
	require.NoError(t, err)
	execAll(t, db, text)
}

// Schema returns complete migrations, which need nothing else.
func TestSchema(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		config := &sqlstore.Config{Prefix: "own_"}
		for version := 1; version <= sqlstore.Version; version++ {
			runSchema(t, e, db, config.Prefix, version)
			store, err := sqlstore.Open(t.Context(), db, e.dialect, config)
			require.NoError(t, err)
			_, err = manage(store).Create(t.Context(), fmt.Sprint("a", version), place, customer, "one", nil)
			require.NoError(t, err)
			require.NoError(t, store.Close())
		}
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, config), "nothing is left to do")
		_, err := e.dialect.Schema("", sqlstore.Version+1)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
	})
}

// Stores of adjacent versions use the same tables: one that was opened before a
// migration goes on during and after it, beside one that was opened after it.
func TestAdjacentVersions(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		e = unhurried(e)
		way := e.open(t)
		db := pool(t, way)
		runSchema(t, e, db, "", 1)
		open := func() *sqlstore.Store {
			store, err := sqlstore.Open(t.Context(), pool(t, way), e.dialect, nil)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, store.Close()) })
			return store
		}
		older := open()
		var commits atomic.Int64
		enough := func(n int64) {
			for commits.Load() < n && !t.Failed() {
				time.Sleep(time.Millisecond)
			}
		}
		done := make(chan struct{})
		var writers sync.WaitGroup
		write := func(store lifecycle.Store) {
			writers.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					r, err := store.Get(t.Context(), orderA)
					if err == nil {
						err = store.Commit(t.Context(), next(r, 0))
					}
					switch {
					case err == nil:
						commits.Add(1)
					case !errors.Is(err, lifecycle.ErrConflict):
						t.Errorf("a store beside another version: %v", err)
						return
					}
				}
			})
		}
		write(older)
		write(older)
		enough(20)
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		newer := open()
		write(newer)
		enough(commits.Load() + 100)
		close(done)
		writers.Wait()
		rows, err := newer.History(t.Context(), orderA, 0, 100_000)
		require.NoError(t, err)
		require.Len(t, rows, int(commits.Load()), "every commit once")
		require.Equal(t, get(t, older, orderA), get(t, newer, orderA))

		// The older store has no column for a fence: it refuses one, and keeps the newer store's.
		fenced := next(get(t, newer, orderA), 0)
		fenced.Changes[0].To.Fence = 7
		require.ErrorIs(t, older.Commit(t.Context(), fenced), errors.ErrUnsupported)
		require.NoError(t, newer.Commit(t.Context(), fenced))
		read := get(t, older, orderA)
		require.Zero(t, read.Fence)
		require.NoError(t, older.Commit(t.Context(), next(read, 0)))
		require.EqualValues(t, 7, get(t, newer, orderA).Fence)

		// A later migration that adds is compatible with this version.
		exec(t, db, "ALTER TABLE interlock_objects ADD COLUMN weight bigint")
		exec(t, db, fmt.Sprint("UPDATE interlock_schema SET version = ", sqlstore.Version+1))
		require.NoError(t, newer.Commit(t.Context(), next(get(t, newer, orderA), 0)))
		require.NoError(t, open().Commit(t.Context(), next(get(t, newer, orderA), 0)))
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil), "an older process starts")

		// One that changes is not: stores stop.
		before, seen := get(t, newer, orderA), get(t, older, orderA)
		exec(t, db, "ALTER TABLE interlock_objects RENAME COLUMN revision TO revisions")
		exec(t, db, fmt.Sprint("UPDATE interlock_schema SET compatible = ", sqlstore.Version+1))
		for _, err := range []error{
			newer.Commit(t.Context(), next(before, 0)),
			older.Commit(t.Context(), next(seen, 0)),
			func() error { _, err := newer.Get(t.Context(), orderA); return err }(),
			func() error { _, err := sqlstore.Open(t.Context(), db, e.dialect, nil); return err }(),
			sqlstore.Migrate(t.Context(), db, e.dialect, nil),
		} {
			require.ErrorIs(t, err, sqlstore.ErrSchema)
			require.ErrorContains(t, err, fmt.Sprintf("for stores of version %d and later; this one is of version %d", sqlstore.Version+1, sqlstore.Version))
		}
	})
}

// PostgreSQL: a schema that comes earlier in search_path gets no second set of tables.
func TestTablesInAnotherSchema(t *testing.T) {
	t.Parallel()
	e := engines()[1]
	way := e.open(t)
	db := pool(t, way)
	create(t, manage(existing(t, db, e)), "a")

	exec(t, db, "CREATE SCHEMA app")
	later := pool(t, way.with(t, "search_path=app,public"))
	err := sqlstore.Migrate(t.Context(), later, e.dialect, nil)
	require.ErrorIs(t, err, sqlstore.ErrSchema)
	require.ErrorContains(t, err, `in schema "public"`)
	require.ErrorContains(t, err, `in schema "app"`)
	store, err := sqlstore.Open(t.Context(), later, e.dialect, nil)
	require.NoError(t, err, "the tables that statements use")
	_, err = manage(store).Get(t.Context(), "a")
	require.NoError(t, err)
	require.NoError(t, store.Close())

	// Open verifies the table that it reads, not another one of the name.
	exec(t, db, "CREATE TABLE app.interlock_objects (machine text)")
	_, err = sqlstore.Open(t.Context(), later, e.dialect, nil)
	require.ErrorIs(t, err, sqlstore.ErrSchema)
	exec(t, db, "DROP TABLE app.interlock_objects")

	own := pool(t, way.with(t, "search_path=app"))
	require.NoError(t, sqlstore.Migrate(t.Context(), own, e.dialect, nil), "public is not in the path")
	require.NoError(t, sqlstore.Migrate(t.Context(), later, e.dialect, nil), "app comes first")
}

func TestPrefixIsAnIdentifier(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		for _, prefix := range []string{"a b", "1a", "a;b", `a"b`, "a`b", "a.b", "é", "a'", "--", strings.Repeat("a", 41), "a\x00"} {
			config := &sqlstore.Config{Prefix: prefix}
			require.ErrorIs(t, sqlstore.Migrate(t.Context(), db, e.dialect, config), lifecycle.ErrInvalid, prefix)
			_, err := sqlstore.Open(t.Context(), db, e.dialect, config)
			require.ErrorIs(t, err, lifecycle.ErrInvalid, prefix)
			_, err = e.dialect.Schema(prefix, 1)
			require.ErrorIs(t, err, lifecycle.ErrInvalid, prefix)
		}
		longest := &sqlstore.Config{Prefix: strings.Repeat("a", 40)}
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, longest))
	})
}

// A prefix with capital letters names the tables as any other, also where the engine would
// fold a name without quotes.
func TestPrefixWithCapitals(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db, config := pool(t, e.open(t)), &sqlstore.Config{Prefix: "It_"}
		for range 2 {
			require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, config))
		}
		store, err := sqlstore.Open(t.Context(), db, e.dialect, config)
		require.NoError(t, err)
		message := lifecycle.Message{Topic: "placed", Key: "a"}
		_, err = manage(store).Create(t.Context(), "a", place, customer, "one", &lifecycle.Change[string]{Messages: []lifecycle.Message{message}})
		require.NoError(t, err)
		_, err = store.Trim(t.Context(), time.Hour, 0)
		require.NoError(t, err)
		require.NoError(t, store.Close())
		require.NoError(t, sqlstore.AfterRestore(t.Context(), db, e.dialect, config, 0))
	})
}
