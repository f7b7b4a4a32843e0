package sqllocktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// result is what a waiting call returned.
type result struct {
	grant *lock.Grant
	err   error
}

// call makes an acquisition in a goroutine of its own.
func call(acquire func() (*lock.Grant, error)) chan result {
	done := make(chan result, 1)
	go func() {
		g, err := acquire()
		done <- result{g, err}
	}()
	return done
}

// wait starts a Lock in the place of a process, and returns when it waits and the engine's answer has
// arrived. A Lock whose connection is cut before that ends with an error.
func wait(t *testing.T, l *sqllock.Locker, r lock.Request, owner string) chan result {
	t.Helper()
	o := &lock.Options{Owner: owner, ID: owner}
	done := call(func() (*lock.Grant, error) { return l.Lock(t.Context(), r, o) })
	eventually(t, func() bool {
		s, err := l.Snapshot(t.Context())
		require.NoError(t, err)
		for _, h := range s.Holders {
			if h.Waiting && h.Owner == owner {
				return true
			}
		}
		return false
	}, "%s does not wait", owner)
	_, err := l.TryLock(t.Context(), r, o) // it waits for the answer to the Lock
	require.ErrorIs(t, err, lock.ErrConflict)
	return done
}

func take(t *testing.T, l lock.Locker, r lock.Request) *lock.Grant {
	t.Helper()
	g, err := l.TryLock(t.Context(), r, nil)
	require.NoError(t, err)
	return g
}

func granted(t *testing.T, done chan result) *lock.Grant {
	t.Helper()
	r := <-done
	require.NoError(t, r.err)
	return r.grant
}

// Requests of two processes are granted in the order of their arrival, with growing tokens.
func TestOrderAcrossProcesses(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	ls := []*sqllock.Locker{d.open(t, tree, nil), d.open(t, tree, nil)}
	last := take(t, ls[0], at(lock.X, "/a"))
	var queue []chan result
	for i := range 10 {
		queue = append(queue, wait(t, ls[i%2], at(lock.X, "/a"), fmt.Sprint(i)))
	}
	for _, done := range queue {
		require.Empty(t, done)
		require.NoError(t, last.Unlock(t.Context()))
		next := granted(t, done)
		require.Greater(t, next.Token(), last.Token())
		last = next
	}
	require.NoError(t, last.Unlock(t.Context()))
}

// A holder in another process is notified of a revocation, and of a Break before Break returns
// and before a waiting request is granted.
func TestBreakAcrossProcesses(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	a, b := d.open(t, tree, nil), d.open(t, tree, nil)
	for range 20 {
		held := take(t, a, at(lock.X, "/a"))
		work, cancel := held.Context(t.Context())
		next := wait(t, b, at(lock.X, "/"), "next")
		require.NoError(t, b.Revoke(t.Context(), held.Token(), "maintenance"))
		<-work.Done()
		require.ErrorIs(t, held.Check(), lock.ErrRevoked)
		require.Empty(t, next)
		lost := make(chan error, 1)
		go func() {
			r := <-next
			lost <- held.Check()
			next <- r
		}()
		require.NoError(t, b.Break(t.Context(), held.Token(), "stuck"))
		require.ErrorIs(t, held.Check(), lock.ErrLost)
		require.ErrorIs(t, <-lost, lock.ErrLost)
		require.ErrorIs(t, b.Break(t.Context(), held.Token(), "again"), lock.ErrNotHeld)
		require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrLost)
		require.NoError(t, granted(t, next).Unlock(t.Context()))
		cancel()
	}
}

// An id belongs to one locker. Another one waits for its end, and the error of a wait that ends
// earlier names its holder.
func TestIDsAcrossProcesses(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	a, b := d.open(t, tree, nil), d.open(t, tree, nil)
	held, err := a.TryLock(t.Context(), at(lock.S, "/a"), deploy)
	require.NoError(t, err)
	_, err = b.TryLock(t.Context(), at(lock.S, "/b"), deploy)
	require.ErrorIs(t, err, lock.ErrConflict)
	short, cancel := context.WithCancel(t.Context())
	defer cancel()
	ends := call(func() (*lock.Grant, error) { return b.Lock(short, at(lock.S, "/a"), deploy) })
	waits := func() bool { s, err := a.Snapshot(t.Context()); return err == nil && s.Waiting == 1 }
	eventually(t, waits, "the id waits")
	_, err = b.TryLock(t.Context(), at(lock.S, "/a"), deploy) // it waits for the answer to the Lock
	require.ErrorIs(t, err, lock.ErrConflict)
	cancel()
	err = (<-ends).err
	require.ErrorIs(t, err, context.Canceled)
	conflict, is := errors.AsType[*lock.ConflictError](err)
	require.True(t, is, "%v", err)
	require.Len(t, conflict.Holders, 1)
	require.Equal(t, held.Token(), conflict.Holders[0].Token)
	next := call(func() (*lock.Grant, error) { return b.Lock(t.Context(), at(lock.S, "/a"), deploy) })
	eventually(t, waits, "the id waits")
	require.NoError(t, held.Unlock(t.Context()))
	require.NoError(t, granted(t, next).Unlock(t.Context()))
}

// Close returns the waits and gives the locks to other processes at once.
func TestClose(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	a, b := d.open(t, tree, nil), d.open(t, tree, nil)
	held := take(t, a, at(lock.X, "/a"))
	waits := wait(t, a, at(lock.X, "/a/b"), "own")
	next := wait(t, b, at(lock.X, "/a"), "next")
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.ErrorIs(t, held.Check(), lock.ErrLost)
	require.ErrorIs(t, (<-waits).err, lock.ErrLost)
	_, err := a.TryLock(t.Context(), at(lock.X, "/z"), nil)
	require.ErrorIs(t, err, sqllock.ErrClosed)
	require.NoError(t, granted(t, next).Unlock(t.Context()))
}

// Cancelled waits leave no goroutine and no row.
func TestCancelledWaitsLeaveNothing(t *testing.T) {
	d := newDatabase(t)
	l := d.open(t, newTree(), nil)
	held := take(t, l, at(lock.X, "/a"))
	before := runtime.NumGoroutine()
	waits := scale.Of(200, 1000)
	var returned atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	for range waits {
		go func() {
			_, err := l.Lock(ctx, at(lock.X, "/a"), nil)
			if err != nil {
				returned.Add(1)
			}
		}()
	}
	eventually(t, func() bool { s, err := l.Snapshot(t.Context()); return err == nil && s.Waiting == waits }, "all wait")
	cancel()
	eventually(t, func() bool { return returned.Load() == int64(waits) }, "all return")
	require.NoError(t, held.Unlock(t.Context()))
	eventually(t, func() bool { s, err := l.Snapshot(t.Context()); return err == nil && s.Nodes == 0 }, "no rows")
	eventually(t, func() bool { return runtime.NumGoroutine() <= before+16 }, "no goroutines") // those of the pool
}

// Sessions of another isolation level are refused: their snapshot may be older than the latch.
func TestIsolation(t *testing.T) {
	d := newDatabase(t)
	strict := pool(t, d.dsn+"&default_transaction_isolation=repeatable%20read")
	_, err := sqllock.Open(t.Context(), strict, configOf(t, d.dsn), newTree(), nil)
	require.ErrorContains(t, err, "sqllock requires transactions that are READ COMMITTED")
}

func TestBadSettings(t *testing.T) {
	d := newDatabase(t)
	for name, c := range map[string]struct {
		tree   string
		config sqllock.Config
	}{
		"a short TTL":         {"tree", sqllock.Config{TTL: time.Millisecond}},
		"a TTL of years":      {"tree", sqllock.Config{TTL: 50 * 365 * 24 * time.Hour}},
		"negative waiters":    {"tree", sqllock.Config{MaxWaiters: -1}},
		"negative holders":    {"tree", sqllock.Config{MaxHolders: -1}},
		"a tree of no name":   {"", sqllock.Config{}},
		"a tree not in UTF-8": {"\xff", sqllock.Config{}},
		"a tree with NUL":     {"a\x00b", sqllock.Config{}},
		"a long tree":         {fmt.Sprintf("%0201d", 0), sqllock.Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sqllock.Open(t.Context(), d.db, configOf(t, d.dsn), c.tree, &c.config)
			require.ErrorIs(t, err, lock.ErrInvalid)
		})
	}
	require.NoError(t, sqllock.Migrate(t.Context(), d.db), "again")
	_, err := d.db.Exec("DROP FUNCTION interlock_lock_begin")
	require.NoError(t, err)
	_, err = sqllock.Open(t.Context(), d.db, configOf(t, d.dsn), "tree", nil)
	require.ErrorContains(t, err, "call Migrate first")
}

// Conversions of one grant at the same time are made one after the other: none raises what
// another one has lowered.
func TestConversionsAtOnce(t *testing.T) {
	d := newDatabase(t)
	l := d.open(t, newTree(), nil)
	for range 20 {
		g := take(t, l, at(lock.X, "/a"))
		var both errgroup.Group
		for _, m := range []lock.Mode{lock.S, lock.IS} {
			both.Go(func() error {
				if err := g.Downgrade(t.Context(), m); !errors.Is(err, lock.ErrInvalid) {
					return err
				}
				return nil
			})
		}
		require.NoError(t, both.Wait())
		require.Equal(t, []lock.Request{at(lock.IS, "/a")}, g.Requests())
		other := take(t, l, at(lock.IX, "/a"))
		require.NoError(t, other.Unlock(t.Context()))
		require.NoError(t, g.Unlock(t.Context()))
	}
}

// A session that the engine has ended, here because its clock stepped, is lost at the next
// look, and another one begins.
func TestEndedSession(t *testing.T) {
	d := newDatabase(t)
	l := d.open(t, newTree(), &sqllock.Config{TTL: 3 * time.Second})
	held := take(t, l, at(lock.X, "/a"))
	_, err := d.db.Exec("UPDATE interlock_lock_sessions SET expires = now() - interval '1 hour'")
	require.NoError(t, err)
	<-held.Lost()
	var lost *lock.LostError
	require.ErrorAs(t, held.Check(), &lost)
	require.Equal(t, "the engine has ended the session", lost.Reason)
	eventually(t, func() bool {
		g, err := l.TryLock(t.Context(), at(lock.X, "/"), nil)
		return err == nil && g.Unlock(t.Context()) == nil
	}, "it works again")
}
