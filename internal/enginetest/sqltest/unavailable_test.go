package sqltest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/suitetest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// A client gets 503 for a database that does not answer, and reads nothing about the
// connection.
func TestUnavailableServer(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !e.networked() {
			return // it runs in this process
		}
		e, server := durable(t, e)
		s := newStores(t, e, sqlstore.Config{RetryFor: time.Millisecond})
		store := s.new(t)
		key := lifecycle.Key{Machine: kind, ID: "a"}
		require.NoError(t, store.Commit(t.Context(), next(lifecycle.StoredRecord{Key: key, Revision: "0"}, 0)))
		now := get(t, store, key)
		require.NoError(t, server.Kill())
		_, err := store.Get(t.Context(), key)
		unavailable(t, err, server.Addr())
		_, err = store.List(t.Context(), lifecycle.Query{Machine: kind, Limit: 1})
		unavailable(t, err, server.Addr())
		unavailable(t, store.Commit(t.Context(), next(now, 0)), server.Addr())
	})
}

// A lock that is not released in time, and a full database.
func TestUnavailableRows(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		s := newStores(t, e, sqlstore.Config{RetryFor: time.Millisecond})
		w := s.way
		switch e.name {
		case "postgres":
			w = w.with(t, "lock_timeout=50")
		case "mysql":
			w = w.with(t, "innodb_lock_wait_timeout=1")
		}
		store := s.by(t, w)
		key := lifecycle.Key{Machine: kind, ID: "a"}
		require.NoError(t, store.Commit(t.Context(), next(lifecycle.StoredRecord{Key: key, Revision: "0"}, 0)))
		now := get(t, store, key)
		tx, err := s.made[store].db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		exec(t, tx, "UPDATE "+s.made[store].prefix+"objects SET actor = 'another'")
		unavailable(t, store.Commit(t.Context(), next(now, 0)), "")
		require.NoError(t, tx.Rollback())
		require.NoError(t, store.Commit(t.Context(), next(now, 0)))
	})
	s := newStores(t, onSQLite(), sqlstore.Config{}) // a full disk of a server needs a disk of its own
	store := s.by(t, s.way.with(t, "_pragma=max_page_count(100)"))
	c := next(get(t, store, orderA), 0)
	c.Changes[0].To.Payload = make([]byte, 1<<20)
	unavailable(t, store.Commit(t.Context(), c), "")
}

// A server that has lost its cluster (1047) takes no statement. One whose group certifies the
// writes of another member first (3101) rolls back, and the commit is sent again.
func TestErrorsOfAClusterOfMySQL(t *testing.T) {
	s := newStores(t, engines()[2], sqlstore.Config{RetryFor: time.Second})
	store := s.new(t)
	m := s.made[store]
	key := lifecycle.Key{Machine: kind, ID: "a"}
	require.NoError(t, store.Commit(t.Context(), next(get(t, store, key), 0)))
	now := get(t, store, key)
	// The rollback of a commit leaves the rows of this engine as they are.
	exec(t, m.db, "CREATE TABLE answers (code int NOT NULL, given int NOT NULL) ENGINE=MyISAM")
	exec(t, m.db, "CREATE TRIGGER "+m.prefix+"cluster BEFORE UPDATE ON "+m.prefix+"objects FOR EACH ROW BEGIN"+
		" UPDATE answers SET given = given + 1;"+
		" IF EXISTS (SELECT 1 FROM answers WHERE code = 1047) THEN SIGNAL SQLSTATE '08S01' SET MYSQL_ERRNO = 1047; END IF;"+
		" IF EXISTS (SELECT 1 FROM answers WHERE code = 3101) THEN SIGNAL SQLSTATE '40000' SET MYSQL_ERRNO = 3101; END IF; END")
	exec(t, m.db, "INSERT INTO answers VALUES (1047, 0)")
	unavailable(t, store.Commit(t.Context(), next(now, 0)), "")
	exec(t, m.db, "UPDATE answers SET code = 3101, given = 0")
	unavailable(t, store.Commit(t.Context(), next(now, 0)), "")
	exec(t, m.db, "UPDATE answers SET given = 0")
	s.config.RetryFor = time.Minute // until the answers are deleted
	patient := s.over(t, m)
	sent := make(chan error, 1)
	go func() { sent <- patient.Commit(t.Context(), next(now, 0)) }()
	require.Eventually(t, func() bool {
		given := 0
		err := m.db.QueryRowContext(t.Context(), "SELECT given FROM answers").Scan(&given)
		return err == nil && given > 0
	}, 30*time.Second, time.Millisecond)
	exec(t, m.db, "DELETE FROM answers")
	require.NoError(t, <-sent)
}

// PostgreSQL does not support what a table with a rule is to do. That does not end by itself.
func TestRule(t *testing.T) {
	e := engines()[1]
	db := pool(t, e.open(t))
	table := fourColumns(t, db, "ruled", "")
	exec(t, db, "INSERT INTO ruled (id, state, rev, seq) VALUES ('a', 'open', 1, 1)")
	exec(t, db, "CREATE RULE audit AS ON UPDATE TO ruled DO ALSO NOTIFY ruled")
	store := existing(t, db, e, table)
	c := next(get(t, store, orderA), 0)
	err := store.Commit(t.Context(), c)
	require.Error(t, err)
	require.NotErrorIs(t, err, lifecycle.ErrUnavailable)
	require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome)
	require.ErrorContains(t, err, "(SQLSTATE 0A000)")

	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback()
	err = store.WithTx(tx).Commit(t.Context(), c)
	require.Error(t, err)
	require.NotErrorIs(t, err, sqlstore.ErrRollback)
}

// A file that cannot be opened now, and one that takes no writes now.
func TestUnavailableFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mounted")
	require.NoError(t, os.Mkdir(dir, 0o700))
	s := newStores(t, onSQLite(), sqlstore.Config{})
	w := way{"sqlite", "file:" + filepath.ToSlash(dir) + "/orders.db"}
	store := s.by(t, w)
	key := lifecycle.Key{Machine: kind, ID: "a"}
	now := get(t, store, key)
	s.made[store].db.SetMaxIdleConns(0)
	require.NoError(t, os.Rename(dir, dir+" elsewhere"))
	_, err := store.Get(t.Context(), key)
	unavailable(t, err, "")
	unavailable(t, store.Commit(t.Context(), next(now, 0)), "")
	require.NoError(t, os.Rename(dir+" elsewhere", dir))

	m := s.made[store]
	m.db = pool(t, w.with(t, "_pragma=query_only(1)"))
	unavailable(t, s.over(t, m).Commit(t.Context(), next(now, 0)), "")
	require.NoError(t, store.Commit(t.Context(), next(now, 0)))
}

// Open returns the cause of a context that ends at any of its steps.
func TestOpenEnds(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		_, db := fresh(t, e)
		cause := errors.New("the program ends")
		for n, more := 1, true; more; n++ {
			ctx, reached := suitetest.EndWhenExamined(t.Context(), n, cause)
			store, err := sqlstore.Open(ctx, db, e.dialect, nil)
			if more = reached(); err != nil {
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, cause, "at step %d", n)
				continue
			}
			require.NoError(t, store.Close())
		}
	})
}

func unavailable(t testing.TB, err error, address string) {
	t.Helper()
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
	p := lifecycle.Problem(&lifecycle.Error{Verb: "fire", Machine: kind, ID: "a", Err: err})
	require.Equal(t, "unavailable", p.Code)
	require.Equal(t, 503, p.Status)
	require.Equal(t, "store is unavailable", p.Detail)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	if address != "" {
		require.NotContains(t, string(text), address)
	}
}
