package sqllocktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// silent opens a locker that no notification reaches. Its session renews after 20 s.
func (d *database) silent(t testing.TB, tree string) *sqllock.Locker {
	t.Helper()
	c := configOf(t, d.dsn)
	c.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no connection") }
	l, err := sqllock.Open(t.Context(), d.db, c, tree, &sqllock.Config{TTL: slow})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// A grant is broken through its own locker before the locker has read that the engine has
// granted it. The Lock that waits for it returns.
func TestBreakOfAnUnknownGrant(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	first := d.open(t, tree, nil)
	second := d.silent(t, tree)
	held := take(t, first, at(lock.X, "/a"))
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	waits := call(func() (*lock.Grant, error) { return second.Lock(ctx, at(lock.X, "/a"), nil) })
	snapshot := func() lock.Snapshot {
		s, err := first.Snapshot(t.Context())
		require.NoError(t, err)
		return s
	}
	eventually(t, func() bool { return snapshot().Waiting == 1 }, "the Lock does not wait")
	require.NoError(t, held.Unlock(t.Context()))
	require.Equal(t, 1, snapshot().Held)
	token := snapshot().Holders[0].Token
	require.NoError(t, second.Break(t.Context(), token, "stuck"))
	r := <-waits
	if r.err == nil {
		r.err = r.grant.Check()
	}
	lost, is := errors.AsType[*lock.LostError](r.err)
	require.True(t, is, "%v", r.err)
	require.Equal(t, lock.LostError{Token: token, Reason: "stuck", Err: lock.ErrLost}, *lost)
	require.NoError(t, take(t, first, at(lock.X, "/a")).Unlock(t.Context()))
}

// A grant is upgraded after Break has marked it and before its process has read the mark. The
// conversion announces the loss, and Break returns after that.
func TestUpgradeOfABrokenGrant(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	operator, silent := d.open(t, tree, &sqllock.Config{TTL: slow}), d.silent(t, tree)
	for _, up := range []bool{true, false} {
		t.Run(fmt.Sprint("up: ", up), func(t *testing.T) {
			held := take(t, silent, at(lock.S, "/a"))
			token := held.Token()
			broken := make(chan error, 1)
			go func() { broken <- operator.Break(t.Context(), token, "stuck") }()
			eventually(t, func() bool {
				var marked bool
				err := d.db.QueryRow("SELECT mark = 2 FROM interlock_lock_requests WHERE token = $1", int64(token)).Scan(&marked)
				if errors.Is(err, sql.ErrNoRows) {
					return true // its process has read the mark after all
				}
				require.NoError(t, err)
				return marked
			}, "Break does not mark the grant")
			if up {
				require.ErrorIs(t, held.Upgrade(t.Context(), lock.X), lock.ErrLost)
			} else {
				require.ErrorIs(t, held.Downgrade(t.Context(), lock.IS), lock.ErrLost)
			}
			<-held.Lost()
			require.NoError(t, <-broken)
			require.Equal(t, token, held.Token())
			require.NoError(t, take(t, operator, at(lock.X, "/a")).Unlock(t.Context()))
		})
	}
}

// Many decisions of a tree wait for each other for longer than a second. A release waits with
// them, and keeps its place. So does the removal of a wait whose context ends.
func TestReleasesBehindManyDecisions(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l := d.open(t, tree, nil)
	held := take(t, l, at(lock.X, "/a"))
	waits, giveUp := context.WithCancel(t.Context())
	waited := call(func() (*lock.Grant, error) { return l.Lock(waits, at(lock.X, "/a"), nil) })
	requests := func(n int) func() bool {
		return func() bool { s, err := l.Snapshot(t.Context()); return err == nil && s.Nodes == n }
	}
	eventually(t, requests(2), "the Lock does not wait")
	ctx, cancel := context.WithCancel(t.Context())
	var decisions errgroup.Group
	for range 8 {
		decisions.Go(func() error {
			for ctx.Err() == nil {
				if _, err := d.db.ExecContext(t.Context(), "SELECT pg_sleep(0.25) FROM interlock_lock_latch($1)", tree); err != nil {
					return err
				}
			}
			return nil
		})
	}
	eventually(t, func() bool {
		var waiting int
		require.NoError(t, d.db.QueryRowContext(t.Context(), "SELECT count(*) FROM pg_stat_activity"+
			" WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%pg_sleep%'").Scan(&waiting))
		return waiting > 5
	}, "there is no queue")
	giveUp()
	require.ErrorIs(t, (<-waited).err, context.Canceled)
	eventually(t, requests(1), "the wait is not removed")
	short, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	require.NoError(t, held.Unlock(short))
	cancel()
	require.NoError(t, decisions.Wait())
}

// A role with the rights that Migrate names can do everything.
func TestRights(t *testing.T) {
	d := newDatabase(t)
	for _, text := range []string{
		"CREATE ROLE locker",
		"GRANT USAGE, SELECT ON SEQUENCE interlock_lock_numbers TO locker",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON interlock_lock_sessions, interlock_lock_requests TO locker",
	} {
		_, err := d.db.ExecContext(t.Context(), text)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := d.db.ExecContext(context.Background(), "DROP OWNED BY locker; DROP ROLE locker")
		require.NoError(t, err)
	})
	c := configOf(t, d.dsn)
	c.RuntimeParams["role"] = "locker"
	db := stdlib.OpenDB(*c)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	l, err := sqllock.Open(t.Context(), db, c, newTree(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	g := take(t, l, at(lock.S, "/a"))
	s, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, s.Held)
	require.NoError(t, g.Upgrade(t.Context(), lock.X))
	require.NoError(t, g.Downgrade(t.Context(), lock.S))
	require.NoError(t, l.Revoke(t.Context(), g.Token(), "test"))
	require.NoError(t, l.Break(t.Context(), g.Token(), "test"))
	require.NoError(t, take(t, l, at(lock.X, "/a")).Unlock(t.Context()))
}

// deploy is the id of the acquisition that several calls make.
var deploy = &lock.Options{ID: "deploy"}

// deployBehind makes a Lock of one locker that waits for a holder in another one.
func deployBehind(t *testing.T, holder, l lock.Locker) chan result {
	t.Helper()
	waits := call(func() (*lock.Grant, error) { return l.Lock(t.Context(), at(lock.X, "/a"), deploy) })
	eventually(t, func() bool {
		s, err := holder.Snapshot(t.Context())
		require.NoError(t, err)
		return s.Waiting == 1
	}, "the Lock does not wait")
	return waits
}

// A TryLock with the id of a Lock gets its grant, also if the engine has granted it so recently
// that the locker has not read it yet.
func TestIDOfAGrantThatIsNotKnownYet(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	first, second := d.open(t, tree, nil), d.silent(t, tree)
	held := take(t, first, at(lock.X, "/a"))
	waits := deployBehind(t, first, second)
	_, err := second.TryLock(t.Context(), at(lock.X, "/a"), deploy)
	require.ErrorIs(t, err, lock.ErrConflict)
	require.NoError(t, held.Unlock(t.Context()))
	g, err := second.TryLock(t.Context(), at(lock.X, "/a"), deploy)
	require.NoError(t, err)
	require.Same(t, g, granted(t, waits))
	require.NoError(t, g.Unlock(t.Context()))
}

// gate is a place in a function of the engine, which waits there until the test opens it.
type gate struct {
	d      *database
	number int
	tx     *sql.Tx
}

func (d *database) gate(t *testing.T, number int) gate {
	t.Helper()
	tx, err := d.db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.Exec("SELECT pg_advisory_xact_lock(0, $1)", number)
	require.NoError(t, err)
	return gate{d, number, tx}
}

// reached waits until a call is at the gate.
func (g gate) reached(t *testing.T) {
	t.Helper()
	eventually(t, func() (waits bool) {
		require.NoError(t, g.d.db.QueryRow(`SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE datname = current_database() AND locktype = 'advisory' AND classid = 0 AND objid = $1 AND objsubid = 2 AND NOT granted)`,
			g.number).Scan(&waits))
		return waits
	}, "no call is at gate %d", g.number)
}

func (g gate) open(t *testing.T) { require.NoError(t, g.tx.Rollback()) }

// gateReports gives every list of holders a gate before it is read, and one after that.
func (d *database) gateReports(t *testing.T) (before, after gate) {
	t.Helper()
	_, err := d.db.Exec(`ALTER FUNCTION interlock_lock_report RENAME TO ungated_report;
		CREATE FUNCTION interlock_lock_report(t text, l text[], h text[], m integer[], i text, before bigint, own bigint, most integer)
		RETURNS json LANGUAGE plpgsql AS $$
		DECLARE
			found json;
		BEGIN
			PERFORM pg_advisory_xact_lock_shared(0, 1);
			found := ungated_report(t, l, h, m, i, before, own, most);
			PERFORM pg_advisory_xact_lock_shared(0, 2);
			RETURN found;
		END $$`)
	require.NoError(t, err)
	return d.gate(t, 1), d.gate(t, 2)
}

// The id of other requests is in use, and its holder releases it before the refusal is made. The
// call makes its own request then: a refusal would list no holder.
func TestIDInUseIsReleasedMeanwhile(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l := d.open(t, tree, nil)
	held, err := l.TryLock(t.Context(), at(lock.X, "/a"), deploy)
	require.NoError(t, err)
	before, after := d.gateReports(t)
	tried := call(func() (*lock.Grant, error) { return l.TryLock(t.Context(), at(lock.X, "/b"), deploy) })
	before.reached(t)
	require.NoError(t, held.Unlock(t.Context()))
	before.open(t)
	after.open(t)
	require.NoError(t, granted(t, tried).Unlock(t.Context()))
}

// A TryLock joins a claim that is granted. Its holder releases it before the TryLock has read
// that. The TryLock does not wait for the next holder.
func TestIDOfAGrantThatIsReleasedMeanwhile(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	first, second := d.open(t, tree, nil), d.open(t, tree, nil)
	held := take(t, first, at(lock.X, "/a"))
	waits := deployBehind(t, first, second)
	before, after := d.gateReports(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tried := make(chan error, 1)
	go func() {
		_, err := second.TryLock(ctx, at(lock.X, "/a"), deploy)
		tried <- err
	}()
	before.reached(t)
	require.NoError(t, held.Unlock(t.Context())) // the engine grants the claim
	before.open(t)
	after.reached(t)
	require.NoError(t, granted(t, waits).Unlock(t.Context()))
	next := take(t, first, at(lock.X, "/a"))
	after.open(t)
	require.ErrorIs(t, <-tried, lock.ErrConflict)
	require.NoError(t, next.Unlock(t.Context()))
}

// A session expires after the engine has looked at it for a request, and the same request ends
// all sessions that have expired. The request is refused: nothing would ever remove its row.
func TestExpiryWithinARequest(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l := d.open(t, tree, &sqllock.Config{TTL: slow})
	held := take(t, l, at(lock.X, "/a"))
	_, err := d.db.Exec(`CREATE OR REPLACE FUNCTION interlock_lock_conflicts(t text, l text[], h text[], m integer[], i text)
		RETURNS SETOF interlock_lock_requests LANGUAGE sql AS 'SELECT r.* FROM interlock_lock_requests r, pg_sleep(1.2) WHERE r.tree = t'`)
	require.NoError(t, err)
	_, err = d.db.Exec(`INSERT INTO interlock_lock_sessions (tree, id, ttl, expires)
		VALUES ($1, -1, '1 second', clock_timestamp() + interval '1 second')`, tree)
	require.NoError(t, err)
	var outcome string
	require.NoError(t, d.db.QueryRow(`SELECT outcome FROM interlock_lock_acquire($1, -1, 0, 1, true, '{/a}', '{5}', '{}', '{}', '{}',
		'', '', '', 0, 1)`, tree).Scan(&outcome))
	require.Equal(t, "ended", outcome)
	require.NoError(t, held.Unlock(t.Context()))
	s, err := l.Snapshot(t.Context())
	require.NoError(t, err)
	require.Zero(t, s.Nodes)
}

// A restore that is not complete may leave rows of no session. They go when a session ends.
func TestRowsOfNoSession(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	l := d.open(t, tree, nil)
	_, err := d.db.Exec(`INSERT INTO interlock_lock_requests (tree, path, number, mode, token, session, attempt, id, owner, reason, since)
		VALUES ($1, '/a', 0, 5, 1, -1, 1, '', '', '', now())`, tree)
	require.NoError(t, err)
	next := call(func() (*lock.Grant, error) { return l.Lock(t.Context(), at(lock.X, "/a"), nil) })
	eventually(t, func() bool { s, err := l.Snapshot(t.Context()); return err == nil && s.Waiting == 1 }, "the Lock does not wait")
	require.NoError(t, d.open(t, tree, nil).Close())
	require.NoError(t, granted(t, next).Unlock(t.Context()))
}

// hostileContext calls a function in its method Done.
type hostileContext struct {
	context.Context
	done func()
}

func (c hostileContext) Done() <-chan struct{} { c.done(); return c.Context.Done() }

// The context of a Lock panics before the engine has its request. A call with the same id, which
// waits for this request, makes one of its own.
func TestPanicBeforeARequest(t *testing.T) {
	l := newDatabase(t).open(t, newTree(), nil)
	entered, joined := make(chan struct{}), make(chan struct{})
	panicked := make(chan any)
	go func() {
		defer func() { panicked <- recover() }()
		_, _ = l.Lock(hostileContext{t.Context(), func() { close(entered); <-joined; panic("hostile") }}, at(lock.X, "/a"), deploy)
	}()
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	g, err := l.Lock(hostileContext{ctx, sync.OnceFunc(func() { close(joined) })}, at(lock.X, "/a"), deploy)
	require.Equal(t, "hostile", <-panicked)
	require.NoError(t, err)
	require.NoError(t, g.Unlock(t.Context()))
}
