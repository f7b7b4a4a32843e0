package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// settings are connections as users have them. With INTERLOCK_LONG set, each runs
// the whole conformance suite.
var settings = []struct{ engine, name, query string }{
	{"sqlite", "without waiting", "_pragma=journal_mode(WAL)"},
	{"sqlite", "rollback journal", "_pragma=journal_mode(DELETE)&_pragma=synchronous(OFF)"},
	{"sqlite", "immediate transactions", "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"},
	{"sqlite", "shared cache", "cache=shared&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)"},
	{"postgres", "serializable", "default_transaction_isolation=serializable"},
	{"postgres", "repeatable read", "default_transaction_isolation=repeatable read"},
	{"postgres", "simple protocol", "default_query_exec_mode=simple_protocol"},
	{"postgres", "unnamed statements", "default_query_exec_mode=exec"},
	{"postgres", "time zone", "timezone=Asia/Kathmandu&synchronous_commit=off"},
	{"mysql", "found rows", "clientFoundRows=true"},
	{"mysql", "times and interpolation", "parseTime=true&loc=Asia%2FKathmandu&time_zone=%27%2B05%3A45%27&interpolateParams=true"},
	{"mysql", "latin1", "charset=latin1"},
	{"mysql", "several statements", "multiStatements=true"},
	{"mysql", "quotes", "sql_mode=%27ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES%27&interpolateParams=true"},
	{"mysql", "oracle", "sql_mode=%27ORACLE,STRICT_ALL_TABLES%27"},
	{"mysql", "lax", "sql_mode=%27%27"},
	{"mysql", "serializable", "tx_isolation=%27SERIALIZABLE%27"},
	{"mysql", "read committed", "tx_isolation=%27READ-COMMITTED%27"},
	{"mysql", "snapshot isolation", "innodb_snapshot_isolation=1"},
	{"mysql", "simultaneous assignment", "sql_mode=%27STRICT_TRANS_TABLES,SIMULTANEOUS_ASSIGNMENT%27"},
}

func TestSettings(t *testing.T) {
	for _, s := range settings {
		for _, e := range engines() {
			if e.name != s.engine {
				continue
			}
			t.Run(s.engine+"/"+s.name, func(t *testing.T) {
				inner := e.open
				e.open = func(t testing.TB) way { return inner(t).with(t, s.query) }
				if scale.Full {
					stores := newStores(t, e, sqlstore.Config{})
					storetest.Run(t, stores.new, stores.testConfig())
				}
				w := e.open(t)
				if strings.Contains(s.query, "tx_isolation") || strings.Contains(s.query, "snapshot") || strings.Contains(s.query, "SIMULTANEOUS") || strings.Contains(s.query, "ORACLE") {
					onMariaDB(t, pool(t, inner(t)))
				}
				// The same database by two pools, as two processes have it.
				first := pool(t, w)
				first.SetMaxOpenConns(1)
				hammer(t, []*sqlstore.Store{existing(t, first, e), existing(t, pool(t, w), e)}, lifecycle.Precondition{Key: lifecycle.Key{Machine: "order", ID: "never"}, States: []string{""}})
			})
		}
	}
}

// A store that reads uncommitted rows could find a commit of its own that the server rolls
// back later.
func TestReadUncommittedIsRefused(t *testing.T) {
	w := way{"mysql", servers.MySQL(t)}
	onMariaDB(t, pool(t, w))
	db := pool(t, w.with(t, "tx_isolation=%27READ-UNCOMMITTED%27"))
	require.NoError(t, sqlstore.Migrate(t.Context(), db, sqlstore.MySQL, nil))
	_, err := sqlstore.Open(t.Context(), db, sqlstore.MySQL, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, "READ UNCOMMITTED")
}

// Without autocommit, a read would begin a transaction that nothing ends, and later reads of the
// connection would see old records. So would a COMMIT with completion_type=CHAIN.
func TestNoAutocommitIsRefused(t *testing.T) {
	w := way{"mysql", servers.MySQL(t)}
	require.NoError(t, sqlstore.Migrate(t.Context(), pool(t, w), sqlstore.MySQL, nil))
	for _, setting := range []string{"autocommit=0", "completion_type=1"} {
		t.Run(setting, func(t *testing.T) {
			_, err := sqlstore.Open(t.Context(), pool(t, w.with(t, setting)), sqlstore.MySQL, nil)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			name, _, _ := strings.Cut(setting, "=")
			require.ErrorContains(t, err, name)
		})
	}
}

// With standard_conforming_strings=off, PostgreSQL takes a backslash in a text for an escape.
func TestEscapesInTexts(t *testing.T) {
	w := way{"pgx", servers.Postgres(t)}
	e := engines()[1]
	db := pool(t, w.with(t, "standard_conforming_strings=off"))
	table := fourColumns(t, db, "plain", ", token bytea")
	table.Columns.Token = "token"
	store := existing(t, db, e, table)
	for range 2 { // a creation and an update
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, orderA), 0)))
	}
}

// With sql_safe_updates=1, MySQL refuses a statement that writes all rows of a table.
func TestSafeUpdates(t *testing.T) {
	w := way{"mysql", servers.MySQL(t)}
	db := pool(t, w.with(t, "sql_safe_updates=1"))
	refused := func(err error) {
		t.Helper()
		require.ErrorContains(t, err, "1175")
	}
	refused(sqlstore.Migrate(t.Context(), db, sqlstore.MySQL, nil))
	require.NoError(t, sqlstore.Migrate(t.Context(), pool(t, w), sqlstore.MySQL, nil))
	table := fourColumns(t, db, "plain", "")
	store := existing(t, db, engines()[2], table)
	for _, key := range []lifecycle.Key{orderA, {Machine: "crane", ID: "a"}} {
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, key), 1)))
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, key), 0)))
	}
	list, err := store.Messages(t.Context(), 1)
	require.NoError(t, err)
	require.NoError(t, store.Discard(t.Context(), list[0].Number))
	_, err = store.Trim(t.Context(), time.Hour, 0)
	refused(err)
	refused(sqlstore.AfterRestore(t.Context(), db, sqlstore.MySQL, &sqlstore.Config{Tables: []sqlstore.ExistingTable{table}}, 0))
}

// onMariaDB skips a setting that MySQL does not have.
func onMariaDB(t testing.TB, db *sql.DB) {
	if !isMariaDB(t, db) {
		t.Skip("skipped: a setting of MariaDB, and this is MySQL")
	}
}

func isMariaDB(t testing.TB, db *sql.DB) bool {
	var version string
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT version()").Scan(&version))
	return strings.Contains(version, "MariaDB")
}

// hammer lets many writers move two objects, alone and together, through two stores, some
// of them with a precondition that holds. Every acknowledged commit is in the history, and
// the only error is a conflict.
func hammer(t *testing.T, stores []*sqlstore.Store, holds lifecycle.Precondition) {
	t.Helper()
	const writers, each = 8, 15
	a, b := orderA, lifecycle.Key{Machine: "order", ID: "b"}
	require.NoError(t, stores[0].Commit(t.Context(), next(get(t, stores[0], a), 0)))
	require.NoError(t, stores[1].Commit(t.Context(), next(get(t, stores[1], b), 0)))
	var mu sync.Mutex
	won := map[lifecycle.Key]uint64{a: 1, b: 1}
	messages := 0
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			store := stores[w%len(stores)]
			for i := range each {
				ra, err := store.Get(t.Context(), a)
				if err != nil {
					return fmt.Errorf("Get: %w", err)
				}
				rb, err := store.Get(t.Context(), b)
				if err != nil {
					return fmt.Errorf("Get: %w", err)
				}
				c := next(ra, i%2)
				switch w % 4 {
				case 1:
					c = next(rb, 0)
				case 2:
					c.Changes = append(c.Changes, next(rb, 0).Changes...)
				case 3:
					c.Changes = append(next(rb, 0).Changes, c.Changes...)
					c.Require = []lifecycle.Precondition{holds}
				}
				err = store.Commit(t.Context(), c)
				mu.Lock()
				if err == nil {
					for _, ch := range c.Changes {
						won[ch.To.Key]++
					}
					messages += len(c.Messages)
				}
				mu.Unlock()
				if err != nil && !errors.Is(err, lifecycle.ErrConflict) {
					return fmt.Errorf("Commit: %w", err)
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	for key, n := range won {
		now := get(t, stores[0], key)
		require.Equal(t, n, now.Sequence)
		require.WithinDuration(t, time.Now(), now.ChangedAt, time.Minute)
		rows, err := stores[1].History(t.Context(), key, 0, 1000)
		require.NoError(t, err)
		require.Len(t, rows, int(n))
	}
	list, err := stores[0].Messages(t.Context(), 1000)
	require.NoError(t, err)
	require.Len(t, list, messages)
	require.Greater(t, won[a], uint64(writers), "too few commits to show anything")
}
