package sqllocktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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

// waiting waits until so many server processes wait for an event.
func (d *database) waiting(t *testing.T, count int, event string) {
	t.Helper()
	eventually(t, func() bool {
		var waiting int
		require.NoError(t, d.db.QueryRow("SELECT count(*) FROM pg_stat_activity"+
			" WHERE datname = current_database() AND wait_event = $1", event).Scan(&waiting))
		return waiting == count
	}, "%d do not wait for: %s", count, event)
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
	var ends errgroup.Group
	for name, call := range calls {
		ends.Go(func() error {
			if err := call(); !errors.Is(err, lock.ErrLost) {
				return fmt.Errorf("%s ends with: %v", name, err)
			}
			return nil
		})
	}
	d.waiting(t, len(calls), "advisory")
	done := make(chan struct{})
	var closed, called error
	go func() {
		defer close(done)
		closed = l.Close()
		called = ends.Wait()
	}()
	select {
	case <-done:
		require.ErrorIs(t, closed, context.DeadlineExceeded, "the engine still holds the locks")
		require.NoError(t, called)
	case <-time.After(30 * time.Second):
		require.Fail(t, "a call hangs")
	}
	free()
}

// The context of a request ends while the engine does not answer. The call waits for the removal
// of its request once, for two seconds. A busy machine may add to that, but not in each attempt.
func TestCancelWhileTheEngineDoesNotAnswer(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l := d.open(t, tree, &sqllock.Config{TTL: slow})
	free := d.hold(t, tree)
	for name, call := range map[string]func(context.Context, lock.Request, *lock.Options) (*lock.Grant, error){
		"TryLock": l.TryLock, "Lock": l.Lock,
	} {
		t.Run(name, func(t *testing.T) {
			shortest := time.Hour
			for range 5 {
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				began := time.Now()
				_, err := call(ctx, at(lock.X, "/a"), nil)
				cancel()
				require.ErrorIs(t, err, context.DeadlineExceeded)
				if shortest = min(shortest, time.Since(began)); shortest < 3500*time.Millisecond {
					break
				}
			}
			require.Less(t, shortest, 3500*time.Millisecond)
		})
	}
	free()
	g, err := l.Lock(t.Context(), at(lock.X, "/a"), nil)
	require.NoError(t, err)
	require.NoError(t, g.Unlock(t.Context()))
}

// A request is repeated, with its id, while the engine has not answered the first call, and its
// context ends. The first call gets its grant.
func TestCancelOfARepeatedRequest(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l := d.open(t, tree, &sqllock.Config{TTL: slow})
	free := d.hold(t, tree)
	o := &lock.Options{ID: "deploy"}
	first := call(func() (*lock.Grant, error) { return l.TryLock(t.Context(), at(lock.X, "/a"), o) })
	d.waiting(t, 1, "advisory")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := l.TryLock(ctx, at(lock.X, "/a"), o)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	free()
	g := granted(t, first)
	require.NoError(t, g.Check())
	again, err := l.TryLock(t.Context(), at(lock.X, "/a"), o)
	require.NoError(t, err)
	require.Equal(t, g.Token(), again.Token())
	require.NoError(t, g.Unlock(t.Context()))
}

// The context of a Break ends while a transaction guards the grant. The grant is broken anyway.
func TestCancelOfABreak(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l, operator := d.open(t, tree, nil), d.open(t, tree, nil)
	held := take(t, l, at(lock.X, "/a"))
	tx, found := begin(t, d.db, held)
	require.True(t, found)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	broken := make(chan error, 1)
	go func() { broken <- operator.Break(ctx, held.Token(), "stuck") }()
	<-held.Lost()
	cancel()
	require.ErrorIs(t, <-broken, context.Canceled)
	require.ErrorIs(t, operator.Break(ctx, held.Token(), "stuck"), context.Canceled, "it has ended before")
	require.ErrorIs(t, held.Check(), lock.ErrLost)
	require.NoError(t, tx.Commit())
	next, err := operator.Lock(t.Context(), at(lock.X, "/a"), nil)
	require.NoError(t, err)
	require.NoError(t, next.Unlock(t.Context()))
	require.ErrorIs(t, operator.Break(t.Context(), held.Token(), "stuck"), lock.ErrNotHeld)
}

// Close meets a renewal for which the locker does not wait any more, and which the engine has not
// finished. The session ends all the same.
func TestCloseDuringARenewal(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	long := &sqllock.Config{TTL: time.Hour}
	a := d.open(t, tree, long)
	take(t, a, at(lock.X, "/a"))
	renewal, err := d.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = renewal.Rollback() })
	_, err = renewal.Exec("SELECT interlock_lock_tick(tree, id, true, '{}', '{}') FROM interlock_lock_sessions WHERE tree = $1", tree)
	require.NoError(t, err)
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	d.waiting(t, 1, "transactionid")
	require.NoError(t, renewal.Commit())
	require.NoError(t, <-closed)
	require.NoError(t, take(t, d.open(t, tree, long), at(lock.X, "/a")).Unlock(t.Context()))
}

// A session ends while a transaction guards its grant. What waits for the grant is granted soon
// after the end of the transaction, and not at the next renewal, which may be hours later.
func TestCloseOfAGuardedGrant(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	long := &sqllock.Config{TTL: time.Hour}
	a, b := d.open(t, tree, long), d.open(t, tree, long)
	tx, found := begin(t, d.db, take(t, a, at(lock.X, "/a")))
	require.True(t, found)
	next := wait(t, b, at(lock.X, "/a"), "next")
	require.NoError(t, a.Close())
	require.NoError(t, take(t, b, at(lock.X, "/other")).Unlock(t.Context()), "the tree is not blocked")
	time.Sleep(3 * time.Second) // b has looked by now
	require.Empty(t, next)
	require.NoError(t, tx.Commit())
	select {
	case r := <-next:
		require.NoError(t, r.err)
		require.NoError(t, r.grant.Unlock(t.Context()))
	case <-time.After(30 * time.Second):
		require.Fail(t, "it is not granted")
	}
}

// Break ends an expired session itself: there may be no locker of the tree that does.
func TestBreakWithoutASession(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l := d.open(t, tree, nil)
	require.NoError(t, l.Close())
	_, err := d.db.Exec(`INSERT INTO interlock_lock_sessions (tree, id, ttl, expires) VALUES ($1, -1, '1 second', now() + interval '1 second')`, tree)
	require.NoError(t, err)
	_, err = d.db.Exec(`INSERT INTO interlock_lock_requests (tree, path, number, mode, token, session, attempt, id, owner, reason, since)
		VALUES ($1, '/a', 1, 5, 1, -1, 1, '', '', '', now())`, tree)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	require.NoError(t, l.Break(ctx, 1, "its process is dead"))
}

// A renewal comes while its session is ended, and the session has a grant that a transaction
// guards. The renewal, which then waits for the latch, and a sweep, which has it, do not wait
// for each other.
func TestRenewalOfAnEndedSession(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	transaction := func() *sql.Tx {
		tx, err := d.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		t.Cleanup(func() { _ = tx.Rollback() })
		return tx
	}
	_, err := d.db.Exec(`INSERT INTO interlock_lock_sessions (tree, id, ttl, expires) VALUES ($1, -1, '1 hour', now() + interval '1 hour')`, tree)
	require.NoError(t, err)
	_, err = d.db.Exec(`INSERT INTO interlock_lock_requests (tree, path, number, mode, token, session, attempt, id, owner, reason, since)
		VALUES ($1, '/a', 1, 5, 1, -1, 1, '', '', '', now())`, tree)
	require.NoError(t, err)
	guard, end, later := transaction(), transaction(), transaction()
	_, err = guard.Exec("SELECT FROM interlock_lock_requests WHERE tree = $1 FOR KEY SHARE", tree)
	require.NoError(t, err)
	_, err = end.Exec("SELECT interlock_lock_sweep($1, -1)", tree)
	require.NoError(t, err)
	latched, renewed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := later.Exec("SELECT interlock_lock_latch($1)", tree)
		latched <- err
	}()
	d.waiting(t, 1, "advisory")
	go func() {
		_, err := d.db.Exec("SELECT interlock_lock_tick($1, -1, true, '{}', '{}')", tree)
		renewed <- err
	}()
	d.waiting(t, 1, "transactionid")
	require.NoError(t, end.Commit())
	require.NoError(t, <-latched)
	d.waiting(t, 1, "advisory")
	require.NoError(t, guard.Commit())
	_, err = later.Exec("SELECT interlock_lock_sweep($1, 0)", tree)
	require.NoError(t, err)
	require.NoError(t, later.Commit())
	require.NoError(t, <-renewed)
	var left int
	require.NoError(t, d.db.QueryRow("SELECT count(*) FROM interlock_lock_sessions WHERE tree = $1", tree).Scan(&left))
	require.Zero(t, left, "the renewal has swept")
}

// A renewal has locked the row of its session, and its sweep waits for the latch, which the removal
// of a wait has. The removal ends at once, and its locker repeats it: the two do not wait for each
// other.
func TestRenewalDuringARemoval(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	_, err := d.db.Exec(`INSERT INTO interlock_lock_sessions (tree, id, ttl, expires) VALUES
		($1, -1, '1 hour', now() + interval '1 hour'), ($1, -2, '1 hour', now() - interval '1 hour')`, tree)
	require.NoError(t, err)
	free := d.hold(t, tree)
	removed, renewed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := d.db.Exec("SELECT interlock_lock_release($1, -1, 1, 1, 0, '{/a}')", tree)
		removed <- err
	}()
	d.waiting(t, 1, "advisory")
	go func() {
		_, err := d.db.Exec("SELECT interlock_lock_tick($1, -1, true, '{}', '{}')", tree)
		renewed <- err
	}()
	d.waiting(t, 2, "advisory")
	free()
	var refused *pgconn.PgError
	require.ErrorAs(t, <-removed, &refused)
	require.Equal(t, "55P03", refused.Code, "lock_not_available")
	require.NoError(t, <-renewed)
}

// A path may be as long as an index of the engine permits.
func TestLongestPath(t *testing.T) {
	d := newDatabase(t)
	l := d.open(t, newTree(), nil)
	longest := strings.Repeat("/"+strings.Repeat("a", 199), 10)
	require.NoError(t, take(t, l, at(lock.X, longest)).Unlock(t.Context()))
	for _, mode := range []lock.Mode{lock.IS, lock.X} {
		_, err := l.TryLock(t.Context(), at(mode, longest+"a"), nil)
		require.ErrorIs(t, err, lock.ErrInvalid)
		require.ErrorContains(t, err, "is longer than 2000 bytes")
	}
	s, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Zero(t, s.Nodes)
}
