package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/pgnotify"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// listening returns a store whose commits are notified of, and what a listener receives.
func listening(t *testing.T, config *pgx.ConnConfig, dsn, prefix string) (*sqlstore.Store, *sql.DB, <-chan lifecycle.Key) {
	t.Helper()
	db := pool(t, way{"pgx", dsn})
	tables := &sqlstore.Config{Prefix: prefix}
	require.NoError(t, sqlstore.Migrate(t.Context(), db, sqlstore.Postgres, tables))
	store, err := sqlstore.Open(t.Context(), db, sqlstore.Postgres, tables)
	require.NoError(t, err)
	require.NoError(t, pgnotify.Install(t.Context(), db, prefix))
	require.NoError(t, pgnotify.Install(t.Context(), db, prefix), "again")

	ctx, cancel := context.WithCancel(t.Context())
	received := make(chan lifecycle.Key, 100)
	var listener errgroup.Group
	listener.Go(func() error {
		return pgnotify.Listen(ctx, config, prefix, func(changed lifecycle.Key) { received <- changed })
	})
	t.Cleanup(func() {
		cancel()
		require.ErrorIs(t, listener.Wait(), context.Canceled)
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

// Install covers the history of existing tables too, with any types of their columns.
func TestNotifyOfAnExistingHistory(t *testing.T) {
	t.Parallel()
	e := engines()[1]
	dsn := servers.Postgres(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	_, db, received := listening(t, config, dsn, "")
	things := users(t, db, e, "public.") // with a column for the machine
	tables := []sqlstore.ExistingTable{things, typedTable(t, db, e, sqlstore.Integer, vmCodes), {Machine: "plain"}}
	for range 2 {
		require.NoError(t, pgnotify.Install(t.Context(), db, "", tables...))
	}
	store := existing(t, db, e, tables[:2]...)
	_, err = lifecycle.Must(vms, store, nil).Create(t.Context(), "9", place, customer, vmSpec{}, nil)
	require.NoError(t, err)
	require.Equal(t, lifecycle.Key{Machine: "vm", ID: "9"}, <-received)
	c := next(get(t, store, lifecycle.Key{Machine: things.Machine, ID: "a"}), 0)
	require.NoError(t, store.Commit(t.Context(), c))
	require.Equal(t, lifecycle.Key{Machine: things.Machine, ID: "a"}, <-received)
	put(t, store, "in the store's own tables")
	require.Equal(t, "in the store's own tables", (<-received).ID)
}

// Install only reads what exists, also where two machines have one history.
func TestNotifyOfASharedHistory(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	_, db, received := listening(t, config, dsn, "")
	e := engines()[1]
	one, two := users(t, db, e, "one_"), users(t, db, e, "two_")
	two.Machine, two.ExistingHistory = "other", one.ExistingHistory
	var made [2]int
	for i := range made {
		require.NoError(t, pgnotify.Install(t.Context(), db, "", one, two))
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT max(oid::bigint) FROM pg_trigger").Scan(&made[i]))
	}
	require.Equal(t, made[0], made[1], "the trigger is another one")
	store := existing(t, db, e, one, two)
	for _, machine := range []string{kind, "other"} {
		key := lifecycle.Key{Machine: machine, ID: "a"}
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, key), 0)))
		require.Equal(t, key, <-received)
	}
}

// A process that starts and installs does not wait for a slow transaction, which all other
// commits would then wait for too.
func TestInstallDuringASlowCommit(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	store, db, _ := listening(t, config, dsn, "")
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	put(t, store.WithTx(tx), "slow")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, pgnotify.Install(ctx, db, ""))
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

// A configuration that the server refuses is not an outage: Listen ends.
func TestNotifyRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*pgx.ConnConfig)
		code   string
	}{
		"no such database": {func(c *pgx.ConnConfig) { c.Database = "nothing" }, "3D000"},
		"no such user":     {func(c *pgx.ConnConfig) { c.User = "nobody at all" }, "28"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := pgx.ParseConfig(servers.Postgres(t))
			require.NoError(t, err)
			test.change(config)
			err = pgnotify.Listen(t.Context(), config, "", nil)
			server, is := errors.AsType[*pgconn.PgError](err)
			require.True(t, is, "%v", err)
			require.Contains(t, server.Code, test.code)
		})
	}
}

// A notification that is cut, because the names in it are too long, wakes for all objects, and so
// does one of another program.
func TestNotifyOfWhatIsNoKey(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	store, db, received := listening(t, config, dsn, "")
	put(t, store, strings.Repeat("é", 127))
	require.Equal(t, strings.Repeat("é", 127), (<-received).ID)
	for _, hostile := range []string{strings.Repeat("\x01", 255), strings.Repeat("\"", 255)} {
		long := lifecycle.Key{Machine: strings.Repeat("\x02", 255), ID: hostile}
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, long), 0)))
		require.Zero(t, <-received)
	}
	for _, payload := range []string{"", "x", "[]", `{"machine": "crane", "id": 7}`} {
		exec(t, db, "SELECT pg_notify('interlock_notify', $1)", payload)
		require.Zero(t, <-received, payload)
	}
	put(t, store, "a")
	require.Equal(t, lifecycle.Key{Machine: "crane", ID: "a"}, <-received)
}
