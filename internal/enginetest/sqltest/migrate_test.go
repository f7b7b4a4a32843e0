package sqltest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

func TestMigrate(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		config := &sqlstore.Config{Prefix: "app_"}
		_, err := sqlstore.Open(t.Context(), db, e.dialect, config)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
		require.ErrorContains(t, err, "there is no table app_schema")

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

		exec(t, db, "UPDATE app_schema SET version = 2")
		_, err = sqlstore.Open(t.Context(), db, e.dialect, config)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
		require.ErrorContains(t, err, "version 2")
		require.ErrorIs(t, sqlstore.Migrate(t.Context(), db, e.dialect, config), sqlstore.ErrSchema)
		exec(t, db, "DELETE FROM app_schema")
		_, err = sqlstore.Open(t.Context(), db, e.dialect, config)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
	})
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
			text := "is it a database of " + wrong.name
			require.ErrorContains(t, sqlstore.Migrate(t.Context(), db, wrong.dialect, nil), text)
			_, err := sqlstore.Open(t.Context(), db, wrong.dialect, nil)
			require.ErrorContains(t, err, text)
			_, err = sqlstore.ExistingTable{Machine: "m", Table: "t", Columns: sqlstore.ColumnMap{ID: "id", State: "s", Revision: "r"}}.Open(t.Context(), db, wrong.dialect, nil)
			require.ErrorContains(t, err, text)
		}
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	})
}

// Open refuses tables that were changed, and names them.
func TestChangedTables(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		for _, x := range []struct{ change, text string }{
			{"ALTER TABLE interlock_messages RENAME COLUMN topic TO subjects", "table interlock_messages lacks topic"},
			{"DROP TABLE interlock_history", "there is no table interlock_history"},
			{"ALTER TABLE interlock_objects DROP COLUMN saved", "table interlock_objects lacks saved"},
		} {
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
	onEach(t, func(t *testing.T, e engine) {
		if e.name != "mysql" {
			t.Skip("skipped: the engine makes all tables or none")
		}
		db := pool(t, e.open(t))
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		exec(t, db, "DELETE FROM interlock_schema")
		exec(t, db, "DROP TABLE interlock_messages, interlock_history")
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		store, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
		require.NoError(t, err)
		require.NoError(t, store.Close())
	})
}

// Schema returns the statements that Migrate runs.
func TestSchema(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		text, err := e.dialect.Schema("own_", sqlstore.Version)
		require.NoError(t, err)
		for _, statement := range strings.Split(text, ";\n") {
			if strings.TrimSpace(statement) != "" {
				exec(t, db, statement)
			}
		}
		store, err := sqlstore.Open(t.Context(), db, e.dialect, &sqlstore.Config{Prefix: "own_"})
		require.NoError(t, err)
		_, err = manage(store).Create(t.Context(), "a", place, customer, "one")
		require.NoError(t, err)
		require.NoError(t, store.Close())
		_, err = e.dialect.Schema("", sqlstore.Version+1)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
	})
}

func TestPrefixIsAnIdentifier(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		for _, prefix := range []string{"a b", "1a", "a;b", `a"b`, "a`b", "a.b", "é", "a'", "--", strings.Repeat("a", 41), "a\x00"} {
			config := &sqlstore.Config{Prefix: prefix}
			require.ErrorIs(t, sqlstore.Migrate(t.Context(), db, e.dialect, config), sqlstore.ErrIdentifier, prefix)
			_, err := sqlstore.Open(t.Context(), db, e.dialect, config)
			require.ErrorIs(t, err, sqlstore.ErrIdentifier, prefix)
			_, err = e.dialect.Schema(prefix, 1)
			require.ErrorIs(t, err, sqlstore.ErrIdentifier, prefix)
		}
		longest := &sqlstore.Config{Prefix: strings.Repeat("a", 40)}
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, longest))
	})
}
