package sqltest

import (
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// Recent reads the rows since its time, and not the history before.
func TestRecentReadsItsTime(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		way := unhurried(e).open(t)
		db := pool(t, way)
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		old := time.Now().Add(-time.Hour).UnixMicro()
		var rows []string
		for i := range 10_000 {
			rows = append(rows, fmt.Sprintf("('order', 'id %d', 1, 1, 'sixteen bytes ok', 0, '', '', '', '', '', '', '', %d)", i, old))
		}
		insert(t, e, db, "interlock_history", historyColumns, rows)
		o, heard := overhear(t, db, way.dsn)
		store, err := sqlstore.Open(t.Context(), heard, e.dialect, nil)
		require.NoError(t, err)
		defer store.Close()
		for range 3 {
			put(t, store, "a")
			put(t, store, "b")
			recent, err := store.Recent(t.Context(), "crane", 20*time.Second, "", 1000)
			require.NoError(t, err)
			require.Len(t, recent, 2)
			require.Contains(t, plan(t, e, db, o.query, o.args), "history_at")
			require.Less(t, rowsRead(t, e, db, o.query, o.args), 100)
		}
	})
}

// A process sees the commits of another one, also one that becomes visible after a later
// commit, and the sequence numbers of an object in order.
func TestWatchSeesAnotherProcess(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		s := newStores(t, unhurried(e), sqlstore.Config{})
		here := s.new(t)
		there := s.second(t, here).(*sqlstore.Store)
		next, stop := iter.Pull2(lifecycle.Watch(t.Context(), manage(here)))
		defer stop()
		require.Equal(t, "a", placed(t, next, manage(there), "a").ID)
		if !e.networked() {
			return // one transaction at a time
		}
		tx, err := s.made[here].db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = manage(there.WithTx(tx)).Create(t.Context(), "late", place, customer, "", nil)
		require.NoError(t, err)
		require.Equal(t, "b", placed(t, next, manage(there), "b").ID)
		require.NoError(t, tx.Commit())
		changed, err, _ := next()
		require.NoError(t, err)
		require.Equal(t, lifecycle.ChangedObject{ID: "late", Sequence: 1}, changed)
	})
}

// placed creates an order, and returns what a Watch yields then.
func placed(t *testing.T, next func() (lifecycle.ChangedObject, error, bool), there *orders, id string) lifecycle.ChangedObject {
	t.Helper()
	_, err := there.Create(t.Context(), id, place, customer, "", nil)
	require.NoError(t, err)
	changed, err, ok := next()
	require.NoError(t, err)
	require.True(t, ok)
	return changed
}

// A manager is what a listener wakes: its Watch and Await see the commits of another
// process.
func TestNotifyWakesManagers(t *testing.T) {
	t.Parallel()
	dsn := servers.Postgres(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	there, db, received := listening(t, config, dsn, "")
	here := manage(existing(t, db, engines()[1]))
	next, stop := iter.Pull2(lifecycle.Watch(t.Context(), here))
	defer stop()
	_, err = manage(there).Create(t.Context(), "a", place, customer, "", nil)
	require.NoError(t, err)
	key := <-received
	require.Equal(t, orderA, key)
	lifecycle.Wake(key, here)
	changed, err, _ := next()
	require.NoError(t, err)
	require.Equal(t, lifecycle.ChangedObject{ID: "a", Sequence: 1}, changed)
}
