package sqltest

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/pgnotify"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// wakes receives the keys of a listener.
type wakes chan lifecycle.Key

func (w wakes) Wake(key lifecycle.Key) { w <- key }

// listening returns a store whose commits are notified of, and what a listener receives.
func listening(t *testing.T, config *pgx.ConnConfig, dsn, prefix string) (*sqlstore.Store, *sql.DB, wakes) {
	t.Helper()
	db := pool(t, way{"pgx", dsn})
	tables := &sqlstore.Config{Prefix: prefix}
	require.NoError(t, sqlstore.Migrate(t.Context(), db, sqlstore.Postgres, tables))
	store, err := sqlstore.Open(t.Context(), db, sqlstore.Postgres, tables)
	require.NoError(t, err)
	require.NoError(t, pgnotify.Install(t.Context(), db, prefix))
	require.NoError(t, pgnotify.Install(t.Context(), db, prefix), "again")

	ctx, cancel := context.WithCancel(t.Context())
	received, ended := make(wakes, 100), make(chan error, 1)
	go func() { ended <- pgnotify.Listen(ctx, config, prefix, received) }()
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
	require.Zero(t, <-received, "at the start there may have been any change")
	return store, db, received
}

// put creates an object, or keeps it in its state.
func put(t *testing.T, store lifecycle.Store, id string) {
	t.Helper()
	k := lifecycle.Key{Machine: "crane", ID: id}
	before, err := store.Get(t.Context(), k)
	require.NoError(t, err)
	require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{
		Expect: before.Revision, From: before.State, FromOrigin: before.Origin, To: lifecycle.StoredRecord{Key: k, State: "Idle", Origin: "Idle", Sequence: before.Sequence + 1},
	}}}))
}

func TestNotify(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "it_"} {
		dsn := servers.Postgres(t)
		config, err := pgx.ParseConfig(dsn)
		require.NoError(t, err)
		store, db, received := listening(t, config, dsn, prefix)

		for _, id := range []string{"a", `"quoted" \ and ä`} {
			put(t, store, id)
			require.Equal(t, lifecycle.Key{Machine: "crane", ID: id}, <-received)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		put(t, store.WithTx(tx), "rolled back")
		require.NoError(t, tx.Rollback())
		put(t, store, "b")
		require.Equal(t, lifecycle.Key{Machine: "crane", ID: "b"}, <-received)
	}
}

// After a lost connection the listener wakes for everything.
func TestNotifyAfterALostConnection(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	by, p := way{"pgx", dsn}.through(t)
	config, err := pgx.ParseConfig(by.dsn)
	require.NoError(t, err)
	store, _, received := listening(t, config, dsn, "")
	p.SetDown(true)
	put(t, store, "a")
	p.SetDown(false)
	require.Zero(t, <-received)
	put(t, store, "b")
	require.Equal(t, lifecycle.Key{Machine: "crane", ID: "b"}, <-received)
}

var _ pgnotify.Waker = (*orders)(nil)
