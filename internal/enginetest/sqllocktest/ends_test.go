package sqllocktest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// hold keeps the latch of a tree until the function that it returns is called: all decisions
// wait, and renewals do not.
func (d *database) hold(t *testing.T, tree string) (free func()) {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("SELECT interlock_lock_latch($1)", tree)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return func() { require.NoError(t, tx.Rollback()) }
}

// The end of a session ends its calls that wait for an answer of the engine: the session of
// such a request is over, so it cannot be granted any more.
func TestCloseWhileTheEngineDoesNotAnswer(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l, err := sqllock.Open(t.Context(), d.db, configOf(t, d.dsn), tree, &sqllock.Config{TTL: time.Hour})
	require.NoError(t, err)
	held, converted := take(t, l, at(lock.X, "/a")), take(t, l, at(lock.S, "/b"))
	free := d.hold(t, tree)
	calls := map[string]func() error{
		"lock": func() error {
			_, err := l.Lock(context.Background(), at(lock.X, "/c"), nil)
			return err
		},
		"unlock":  func() error { return held.Unlock(context.Background()) },
		"upgrade": func() error { return converted.Upgrade(context.Background(), lock.X) },
	}
	type end struct {
		call string
		err  error
	}
	ends := make(chan end, len(calls)+1)
	for name, call := range calls {
		go func() { ends <- end{name, call()} }()
	}
	eventually(t, func() bool {
		var waiting int
		require.NoError(t, d.db.QueryRow("SELECT count(*) FROM pg_stat_activity"+
			" WHERE datname = current_database() AND wait_event = 'advisory'").Scan(&waiting))
		return waiting == len(calls)
	}, "the calls do not wait")
	require.Empty(t, ends)
	go func() { ends <- end{"close", l.Close()} }()
	late := time.After(20 * time.Second)
	for range len(calls) + 1 {
		select {
		case e := <-ends:
			if e.call == "close" {
				require.ErrorIs(t, e.err, context.DeadlineExceeded, "the engine still holds the locks")
			} else {
				require.ErrorIs(t, e.err, lock.ErrLost, e.call)
			}
			delete(calls, e.call)
		case <-late:
			require.Fail(t, "a call hangs", "%v", calls)
		}
	}
	free()
}
