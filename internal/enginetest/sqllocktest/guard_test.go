package sqllocktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// guard is what a store finds in [lock.Grant.Driver].
type guard interface {
	GuardStatement() (query string, args []any)
}

// holds runs the guard of a grant in a transaction.
func holds(ctx context.Context, tx *sql.Tx, g *lock.Grant) (bool, error) {
	query, args := g.Driver().(guard).GuardStatement()
	var one int
	err := tx.QueryRowContext(ctx, query, args...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// begin begins a transaction with the guard of a grant.
func begin(t *testing.T, db *sql.DB, g *lock.Grant) (tx *sql.Tx, held bool) {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	held, err = holds(t.Context(), tx, g)
	require.NoError(t, err)
	return tx, held
}

// The guard finds what is held, of one request and of several, and nothing else.
func TestGuard(t *testing.T) {
	d := newDatabase(t)
	l := d.open(t, newTree(), nil)
	one := take(t, l, at(lock.S, "/a"))
	several, err := l.TryLockAll(t.Context(), []lock.Request{at(lock.S, "/"), at(lock.S, "/a"), at(lock.IS, "/b/c")}, nil)
	require.NoError(t, err)
	for _, g := range []*lock.Grant{one, several} {
		tx, held := begin(t, d.db, g)
		require.True(t, held)
		require.NoError(t, tx.Commit())
	}
	before, args := one.Driver().(guard).GuardStatement()
	require.NoError(t, several.Unlock(t.Context()))
	require.NoError(t, one.Upgrade(t.Context(), lock.X))
	require.ErrorIs(t, d.db.QueryRow(before, args...).Scan(new(int)), sql.ErrNoRows, "the token of before the upgrade")
	tx, held := begin(t, d.db, one)
	require.True(t, held)
	require.NoError(t, tx.Commit())
	for _, g := range []*lock.Grant{one, several} {
		require.NoError(t, g.Unlock(t.Context()))
		_, held := begin(t, d.db, g)
		require.False(t, held)
	}
}

// A transaction whose guard found the grant commits before the next holder is granted, and
// the tree serves other requests meanwhile. A transaction that comes later is refused.
func TestGuardAndBreak(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	a, b := d.open(t, tree, nil), d.open(t, tree, nil)
	for _, how := range []string{"break", "unlock", "session", "downgrade"} {
		t.Run(how, func(t *testing.T) {
			held, err := a.TryLockAll(t.Context(), []lock.Request{at(lock.X, "/a"), at(lock.X, "/b")}, nil)
			require.NoError(t, err)
			tx, found := begin(t, d.db, held)
			require.True(t, found)
			next := wait(t, b, at(lock.S, "/b"), "next")
			ended := make(chan error, 1)
			go func() {
				switch how {
				case "break":
					ended <- b.Break(t.Context(), held.Token(), "stuck")
				case "unlock":
					ended <- held.Unlock(t.Context())
				case "downgrade":
					ended <- held.Downgrade(t.Context(), lock.IS)
				case "session":
					err := d.expire(t.Context(), held.Token())
					if err == nil {
						<-held.Lost()
					}
					ended <- err
				}
			}()
			if how != "unlock" && how != "downgrade" {
				<-held.Lost()
			}
			for range 20 { // the tree is not blocked
				require.NoError(t, take(t, b, at(lock.X, "/other")).Unlock(t.Context()))
			}
			require.Empty(t, next)
			require.NoError(t, tx.Commit())
			g := granted(t, next)
			require.NoError(t, <-ended)
			if how != "downgrade" {
				_, found = begin(t, d.db, held)
				require.False(t, found)
			}
			_ = held.Unlock(t.Context())
			require.NoError(t, g.Unlock(t.Context()))
			if how == "session" {
				eventually(t, func() bool {
					g, err := a.TryLock(t.Context(), at(lock.X, "/a"), nil)
					return err == nil && g.Unlock(t.Context()) == nil
				}, "a new session")
			}
		})
	}
}

// The clock of the server, which alone counts, jumps forward: another process is granted the
// lock while the holder cannot know that. The guard refuses the holder's write and admits the
// next one's. A transaction that began before the jump is in [TestGuardAndBreak].
func TestClockStep(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l, _, p := d.through(t, tree, slow, true)
	held := take(t, l, at(lock.X, "/a"))
	p.SetDown(true)
	other := d.open(t, tree, nil)
	_, err := other.TryLock(t.Context(), at(lock.X, "/a"), nil)
	require.ErrorIs(t, err, lock.ErrConflict)
	_, err = d.db.Exec("UPDATE interlock_lock_sessions SET expires = expires - interval '1 hour' WHERE expires > now() + interval '20 seconds'")
	require.NoError(t, err)
	next := take(t, other, at(lock.X, "/a"))
	require.NoError(t, held.Check(), "two holders")
	require.Greater(t, next.Token(), held.Token())
	_, found := begin(t, d.db, held)
	require.False(t, found)
	_, found = begin(t, d.db, next)
	require.True(t, found)
	p.SetDown(false)
	<-held.Lost()
	require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrLost)
	_, err = other.TryLock(t.Context(), at(lock.X, "/a"), nil)
	require.ErrorIs(t, err, lock.ErrConflict, "the next holder keeps it")
}

// The guard refuses every stale write, also if clocks step, sessions end and operators break.
// Without the guard some are written.
func TestNoStaleWrites(t *testing.T) {
	writes := int64(scale.Of(1_000, 10_000))
	d, tree := newDatabase(t), newTree()
	_, err := d.db.Exec("CREATE TABLE resource (name text PRIMARY KEY, token bigint NOT NULL, stale bigint NOT NULL)")
	require.NoError(t, err)
	_, err = d.db.Exec("INSERT INTO resource VALUES ('guarded', 0, 0), ('unguarded', 0, 0)")
	require.NoError(t, err)
	const write = "UPDATE resource SET stale = stale + (token > $2)::int, token = greatest(token, $2) WHERE name = $1"

	var written, refused, losses atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 4 {
		l := d.open(t, tree, &sqllock.Config{TTL: time.Second})
		all.Go(func() {
			for written.Load() < writes && ctx.Err() == nil {
				g, err := l.Lock(ctx, at(lock.X, "/resource"), &lock.Options{Owner: fmt.Sprint(i)})
				if err != nil {
					time.Sleep(10 * time.Millisecond) // between two sessions
					continue
				}
				for range 1 + rand.IntN(20) { // it does not look at Check: the guard is to do it
					tx, err := d.db.BeginTx(ctx, nil)
					if err != nil {
						return
					}
					held, err := holds(ctx, tx, g)
					if err == nil && held {
						_, err = tx.ExecContext(ctx, write, "guarded", int64(g.Token()))
					}
					if err == nil && held && tx.Commit() == nil {
						written.Add(1)
					} else {
						refused.Add(1)
						_ = tx.Rollback()
					}
					_, _ = d.db.ExecContext(ctx, write, "unguarded", int64(g.Token()))
				}
				_ = g.Unlock(ctx)
			}
		})
	}
	all.Go(func() {
		l := d.open(t, tree, nil)
		for written.Load() < writes && ctx.Err() == nil {
			time.Sleep(rand.N(40 * time.Millisecond))
			s, err := l.Snapshot(ctx)
			if err != nil || s.Held == 0 {
				continue
			}
			token := s.Holders[0].Token
			if rand.IntN(2) == 0 {
				_ = l.Break(ctx, token, "chaos")
			} else { // the clock of the engine steps forward
				_ = d.expire(ctx, token)
				if g, err := l.TryLock(ctx, at(lock.X, "/resource"), nil); err == nil { // it sweeps
					_ = g.Unlock(ctx)
				}
			}
			losses.Add(1)
		}
	})
	all.Wait()
	stop()
	var guarded, unguarded int64
	require.NoError(t, d.db.QueryRow("SELECT stale FROM resource WHERE name = 'guarded'").Scan(&guarded))
	require.NoError(t, d.db.QueryRow("SELECT stale FROM resource WHERE name = 'unguarded'").Scan(&unguarded))
	t.Logf("%d guarded writes, %d stale; %d refused; %d losses; %d stale writes without the guard",
		written.Load(), guarded, refused.Load(), losses.Load(), unguarded)
	require.Zero(t, guarded)
	require.Positive(t, unguarded, "the control shows none")
}
