package sqllocktest

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lifecycle/storetest"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

// slow is a TTL whose renewals do not come between the requests that a test counts.
const slow = time.Minute

// line is a way to the engine through a proxy.
type line struct {
	*proxy.Proxy
	db     *sql.DB
	config *pgx.ConnConfig
}

func (d *database) line(t testing.TB) line {
	t.Helper()
	c := configOf(t, d.dsn)
	network, address := pgconn.NetworkAddress(c.Host, c.Port)
	p := proxy.New(t, network, address)
	c.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", p.Addr())
	}
	db := stdlib.OpenDB(*c)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return line{p, db, c}
}

// through opens a locker whose calls pass a proxy. It listens directly, unless all is true.
func (d *database) through(t testing.TB, tree string, ttl time.Duration, all bool) (*sqllock.Locker, *sql.DB, *proxy.Proxy) {
	t.Helper()
	way := d.line(t)
	listen := way.config
	if !all {
		listen = configOf(t, d.dsn)
	}
	l, err := openLocker(t.Context(), way.db, listen, tree, &sqllock.Config{TTL: ttl})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l, way.db, way.Proxy
}

// An acquisition whose connection is cut at any place leaves no lock, also if its statement
// comes later than its removal.
func TestNoGhostLocks(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	other := d.open(t, tree, nil)
	l, db, p := d.through(t, tree, slow, false)
	db.SetMaxIdleConns(0) // every call connects: requests 1 to n are those of the handshake
	idle := func(t *testing.T) {
		eventually(t, func() bool { s, err := other.Snapshot(t.Context()); return err == nil && s.Nodes == 0 }, "a ghost")
		require.NoError(t, take(t, other, at(lock.X, "/")).Unlock(t.Context()))
	}
	cuts, grants := 0, 0
	for _, place := range []storetest.Place{storetest.BeforeRequest, storetest.InRequest, storetest.AfterRequest, storetest.InAnswer} {
		for n := 1; n <= 5; n++ {
			t.Run(fmt.Sprintf("%s of request %d", place, n), func(t *testing.T) {
				struck := p.Cut(place, n)
				g, err := l.TryLock(t.Context(), at(lock.X, "/a/b"), &lock.Options{ID: "deploy"})
				if err == nil {
					grants++
					_ = g.Unlock(t.Context())
				} else if struck() {
					cuts++
					// Nothing is held when the call returns: repeating it succeeds at once.
					g, err := l.TryLock(t.Context(), at(lock.X, "/a/b"), &lock.Options{ID: "deploy"})
					require.NoError(t, err)
					require.NoError(t, g.Unlock(t.Context()))
				}
				idle(t)
			})
		}
	}
	require.Positive(t, cuts)

	// The statement is held in the network until the call has ended and its request is removed.
	db.SetMaxIdleConns(4)
	late := 0
	for range 5 {
		require.NoError(t, take(t, l, at(lock.X, "/warm")).Unlock(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		resume := make(chan struct{})
		settled := p.Hold(storetest.BeforeRequest, 1, func() { cancel(); <-resume })
		g, err := l.TryLock(ctx, at(lock.X, "/a"), nil)
		require.ErrorIs(t, err, context.Canceled)
		require.Nil(t, g)
		idle(t)
		close(resume)
		if settled() {
			late++
		}
		idle(t)
	}
	t.Logf("%d cut acquisitions and %d late ones: no ghost; %d were granted", cuts, late, grants)
	require.Positive(t, late)
}

// A locker without a connection loses its grants before another one is granted, within
// TTL + 2 s, and works again afterwards.
func TestCutOff(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	const ttl = 2 * time.Second
	other := d.open(t, tree, nil)
	l, _, p := d.through(t, tree, ttl, true)
	held, released := take(t, l, at(lock.X, "/a")), take(t, l, at(lock.X, "/released"))
	waits := wait(t, l, at(lock.X, "/a"), "own")
	next := wait(t, other, at(lock.S, "/a"), "next")
	start := time.Now()
	p.SetDown(true)
	require.ErrorIs(t, released.Unlock(t.Context()), lock.ErrLost, "the engine holds it still")
	g := granted(t, next)
	after := time.Since(start)
	require.ErrorIs(t, held.Check(), lock.ErrLost)
	<-held.Lost()
	t.Logf("the next holder is granted %s after the cut, with a TTL of %s", after.Round(time.Millisecond), ttl)
	require.ErrorIs(t, (<-waits).err, lock.ErrLost)
	_, err := l.TryLock(t.Context(), at(lock.X, "/z"), nil)
	require.ErrorIs(t, err, lock.ErrLost)
	require.ErrorIs(t, held.Unlock(t.Context()), lock.ErrLost)
	later := call(func() (*lock.Grant, error) { return l.Lock(t.Context(), at(lock.X, "/y"), nil) }) // waits for a session
	p.SetDown(false)
	require.NoError(t, granted(t, later).Unlock(t.Context()))
	eventually(t, func() bool {
		g, err := l.TryLock(t.Context(), at(lock.X, "/z"), nil)
		return err == nil && g.Unlock(t.Context()) == nil
	}, "it works again")
	require.NoError(t, g.Unlock(t.Context()))
	require.NoError(t, take(t, l, at(lock.X, "/")).Unlock(t.Context()))
}

// A request that waits for a process that has died is granted within the TTL of that process + 2 s,
// also if the sessions of all others are much longer, and began before.
func TestDeathOfAShortSession(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	other := d.open(t, tree, &sqllock.Config{TTL: time.Hour})
	require.NoError(t, take(t, other, at(lock.X, "/a")).Unlock(t.Context()))
	eventually(t, func() bool {
		var listens bool
		err := d.db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM interlock_lock_sessions s JOIN pg_stat_activity a
			ON a.query = 'LISTEN interlock_lock_' || s.id WHERE s.tree = $1)`, tree).Scan(&listens)
		return err == nil && listens
	}, "the first session does not listen, and then looks")
	const ttl = 2 * time.Second
	l, _, p := d.through(t, tree, ttl, true)
	take(t, l, at(lock.X, "/a"))
	next := wait(t, other, at(lock.X, "/a"), "next")
	p.SetDown(true)
	select {
	case r := <-next:
		require.NoError(t, r.err)
		require.NoError(t, r.grant.Unlock(t.Context()))
	case <-time.After(30 * time.Second):
		require.Fail(t, "it is not granted")
	}
}

// Short outages lose nothing: waits are granted although notifications were lost, and releases
// are repeated.
func TestShortOutages(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	other := d.open(t, tree, nil)
	l, _, p := d.through(t, tree, 10*time.Second, true)
	for range 3 {
		held := take(t, other, at(lock.X, "/a"))
		next := wait(t, l, at(lock.X, "/a"), "next")
		p.SetDown(true)
		require.NoError(t, held.Unlock(t.Context()))
		p.SetDown(false)
		g := granted(t, next)
		p.SetDown(true)
		go func() {
			time.Sleep(200 * time.Millisecond) // the first attempts fail
			p.SetDown(false)
		}()
		require.NoError(t, g.Unlock(t.Context()))
		require.NoError(t, take(t, other, at(lock.X, "/a")).Unlock(t.Context()))
	}
}

// A process is stopped, or cut off, while the server sends it an answer that the connection cannot
// hold. The server ends the connection, and the other processes of the tree go on.
func TestAnswerIsNotReceived(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	// A busy machine takes seconds to make the answers: a shorter session would end meanwhile.
	l := d.open(t, tree, &sqllock.Config{TTL: slow})
	var requests []lock.Request
	for i := range lock.MaxRequests {
		requests = append(requests, at(lock.S, fmt.Sprint("/a/", i)))
	}
	for range 20 {
		_, err := l.TryLockAll(t.Context(), requests, &lock.Options{Reason: strings.Repeat("x", lock.MaxText)})
		require.NoError(t, err)
	}
	from := fmt.Sprintf(" AS f WHERE token = %d", take(t, l, at(lock.IS, "/a")).Token())
	// The server executes a query whose result is not read.
	deafen := func(t *testing.T, query string) {
		deaf, err := pgconn.Connect(t.Context(), d.dsn)
		require.NoError(t, err)
		defer deaf.Close(context.Background())
		deaf.Exec(t.Context(), query)
		eventually(t, func() bool {
			var waits bool
			err := d.db.QueryRowContext(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity
				WHERE pid = $1 AND wait_event = 'ClientWrite')`, deaf.PID()).Scan(&waits)
			return err == nil && waits
		}, "the server does not wait for the process")
		soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		g, err := l.TryLock(soon, at(lock.X, "/z"), nil)
		require.NoError(t, err)
		require.NoError(t, g.Unlock(t.Context()))
		// The next renewal of the session does not wait for the one of that connection.
		_, err = d.db.ExecContext(soon, "SELECT FROM interlock_lock_sessions WHERE tree = $1 FOR UPDATE", tree)
		require.NoError(t, err)
	}
	const marked = "UPDATE interlock_lock_requests SET mark = 1, why = reason, attempt = hashtext(path || number) WHERE path LIKE '/a/%';"
	const function, conflicts = "SELECT f.* FROM interlock_lock_requests, interlock_lock_", "'{/a}', '{5}', '{/a/}', '{/a0}', '{62}'"
	t.Run("renewal", func(t *testing.T) { deafen(t, marked+function+"tick(tree, session, true, '{}', '{}')"+from) })
	// The row of a guarded grant stays after the end of its session. Each sweep takes the latch
	// then, and may end nothing.
	guarded := d.open(t, tree, nil)
	_, held := begin(t, d.db, take(t, guarded, at(lock.X, "/guarded")))
	require.True(t, held)
	require.NoError(t, guarded.Close())
	for name, query := range map[string]string{
		"refusal":         function + "acquire(tree, session, 100, 10000, false, " + conflicts + ", '', '', '', 0, 100000)" + from,
		"refused upgrade": function + "convert(tree, session, attempt, true, " + conflicts + ", 100000)" + from,
		"end of a session": marked + "INSERT INTO interlock_lock_sessions SELECT tree, -1, ttl, now() FROM interlock_lock_sessions LIMIT 1;" +
			function + "tick(tree, session, false, '{}', '{}')" + from,
		"sweep that ends nothing": marked + function + "tick(tree, session, false, '{}', '{}')" + from,
	} {
		t.Run(name, func(t *testing.T) { deafen(t, query) })
	}
}

// A conversion without an answer loses the grant, and the lock is free.
func TestUnknownConversion(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	other := d.open(t, tree, nil)
	l, _, p := d.through(t, tree, slow, false)
	for _, place := range []storetest.Place{storetest.BeforeRequest, storetest.AfterRequest} {
		t.Run(place.String(), func(t *testing.T) {
			unknown := false
			for range 5 { // the fault may strike a call of the session
				held := take(t, l, at(lock.S, "/a"))
				p.Cut(place, 1)
				if held.Upgrade(t.Context(), lock.X) != nil {
					unknown = true
					require.ErrorIs(t, held.Check(), lock.ErrLost)
				} else {
					require.NoError(t, held.Unlock(t.Context()))
				}
				require.NoError(t, take(t, other, at(lock.X, "/a")).Unlock(t.Context()))
			}
			require.True(t, unknown)
		})
	}
}

// Locks survive kill -9 of the server. The session goes on if the server comes back in time.
func TestServerRestart(t *testing.T) {
	server := servers.PrivatePostgres(t, nil)
	d, tree := migrated(t, server.DSN()), newTree()
	a, b := d.open(t, tree, &sqllock.Config{TTL: 30 * time.Second}), d.open(t, tree, &sqllock.Config{TTL: 30 * time.Second})
	held := take(t, a, at(lock.X, "/a"))
	next := wait(t, b, at(lock.X, "/a"), "next")
	require.NoError(t, server.Kill())
	require.NoError(t, server.Start())
	eventually(t, func() bool { s, err := b.Snapshot(t.Context()); return err == nil && s.Held == 1 && s.Waiting == 1 }, "nothing is lost")
	require.NoError(t, held.Check())
	require.Empty(t, next)
	require.NoError(t, held.Unlock(t.Context()))
	g := granted(t, next)
	require.Greater(t, g.Token(), held.Token())
	require.NoError(t, g.Unlock(t.Context()))
}

// A server that loses its latest commits, because they are asynchronous, loses nothing that a
// call has reported: no grant, no renewal and no revocation.
func TestLostCommits(t *testing.T) {
	server := servers.PrivatePostgres(t, nil)
	d, tree := migrated(t, server.DSN()), newTree()
	d.db.SetMaxIdleConns(0) // none is from before a crash
	for _, text := range []string{
		"CREATE TABLE control (round integer)",
		"ALTER SYSTEM SET synchronous_commit = off", "ALTER SYSTEM SET wal_writer_delay = '10s'",
	} {
		_, err := d.db.Exec(text)
		require.NoError(t, err)
	}
	crash := func() {
		t.Helper()
		require.NoError(t, server.Kill())
		require.NoError(t, server.Start())
	}
	crash() // the settings count
	other := d.open(t, tree, &sqllock.Config{TTL: slow})
	l, db, p := d.through(t, tree, slow, true)
	db.SetMaxIdleConns(0)
	const session = " FROM interlock_lock_sessions WHERE tree = $1 ORDER BY id LIMIT 1"
	reports := []func() (survived func()){
		func() func() {
			held := take(t, l, at(lock.X, "/a"))
			return func() {
				_, err := other.TryLock(t.Context(), at(lock.X, "/a"), nil)
				require.ErrorIs(t, err, lock.ErrConflict, "a grant is lost")
				require.Greater(t, take(t, other, at(lock.IS, "/")).Token(), held.Token())
				require.NoError(t, held.Unlock(t.Context()))
			}
		},
		func() func() {
			var expires string
			require.NoError(t, d.db.QueryRow("SELECT alive::text FROM interlock_lock_tick($1, (SELECT id"+session+"), true, '{}', '{}')", tree).Scan(&expires))
			require.NoError(t, d.db.QueryRow("SELECT expires::text"+session, tree).Scan(&expires))
			return func() {
				survives := false
				require.NoError(t, d.db.QueryRow("SELECT expires >= $2::timestamptz"+session, tree, expires).Scan(&survives))
				require.True(t, survives, "a renewal is lost: the engine would grant before its holder has stopped")
			}
		},
		func() func() {
			held := take(t, l, at(lock.S, "/b"))
			p.SetDown(true)
			require.NoError(t, other.Revoke(t.Context(), held.Token(), "maintenance"))
			return func() {
				p.SetDown(false)
				select {
				case <-held.Lost():
				case <-time.After(30 * time.Second):
					require.Fail(t, "a revocation is lost")
				}
				require.NoError(t, held.Unlock(t.Context()))
			}
		},
	}
	lost, round := 0, 0
	for ; lost < 2*len(reports); round++ { // the server writes its commits every 10 s by itself
		require.Less(t, round, 50, "the server loses nothing")
		survived := reports[round%len(reports)]()
		_, err := d.db.Exec("INSERT INTO control VALUES ($1)", round)
		require.NoError(t, err)
		crash()
		var kept int
		require.NoError(t, d.db.QueryRow("SELECT count(*) FROM control WHERE round = $1", round).Scan(&kept))
		lost += 1 - kept
		survived()
	}
	t.Logf("%d crashes, of which %d lost a commit: no grant, renewal or revocation is lost", round, lost)
}

// While the disk is full, requests fail and leave nothing, a release works, and what waits is
// granted at the latest when there is room again.
func TestDiskFull(t *testing.T) {
	server := servers.PrivatePostgres(t, &private.Config{Fast: true})
	d, tree := migrated(t, server.DSN()), newTree()
	l, other := d.open(t, tree, nil), d.open(t, tree, nil)
	free, held := take(t, l, at(lock.X, "/free")), take(t, l, at(lock.X, "/a"))
	next := wait(t, other, at(lock.S, "/a"), "next")
	room, err := server.Fill(d.db, `INSERT INTO interlock_lock_requests (tree, path, number, mode, session, attempt, id, owner, reason, since)
		SELECT 'junk', '', nextval('interlock_lock_numbers'), 5, 0, 0, '', '', '', now() FROM generate_series(1, $1)`)
	require.NoError(t, err)
	for _, lockIt := range []func(context.Context, lock.Request, *lock.Options) (*lock.Grant, error){l.TryLock, other.Lock} {
		_, err := lockIt(t.Context(), at(lock.X, "/b"), nil)
		require.ErrorContains(t, err, "could not extend file")
	}
	require.NoError(t, free.Unlock(t.Context()))
	holders, err := other.Holders(t.Context(), lock.Root(), lock.Below)
	require.NoError(t, err)
	require.Len(t, holders, 2, "those at /a: %v", holders)
	brief, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := held.Unlock(brief); err != nil { // the row of the waiting request needs room to change
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	require.NoError(t, room())
	g := granted(t, next)
	require.Greater(t, g.Token(), held.Token())
	require.NoError(t, g.Check())
	require.NoError(t, g.Unlock(t.Context()))
	require.NoError(t, take(t, l, at(lock.X, "/")).Unlock(t.Context()))
}

// A restored copy repeats tokens, has what was released, and lacks what was granted. What the
// documentation of the package requires after a restore ends all that.
func TestRestoredCopy(t *testing.T) {
	d, tree := newDatabase(t), newTree()
	execute := func(text string) {
		t.Helper()
		_, err := d.db.Exec(text)
		require.NoError(t, err)
	}
	a, b := d.open(t, tree, nil), d.open(t, tree, nil)
	released := take(t, a, at(lock.X, "/released"))
	execute(`CREATE TABLE sessions AS TABLE interlock_lock_sessions; CREATE TABLE requests AS TABLE interlock_lock_requests;
		CREATE TABLE numbers AS TABLE interlock_lock_numbers`)
	require.NoError(t, released.Unlock(t.Context()))
	before := take(t, a, at(lock.X, "/granted"))
	execute(`BEGIN; TRUNCATE interlock_lock_sessions, interlock_lock_requests; INSERT INTO interlock_lock_sessions TABLE sessions;
		INSERT INTO interlock_lock_requests TABLE requests; SELECT setval('interlock_lock_numbers', last_value) FROM numbers; COMMIT`)
	after := take(t, b, at(lock.X, "/granted"))
	require.NoError(t, before.Check(), "two holders")
	require.Equal(t, before.Token(), after.Token())
	_, err := b.TryLock(t.Context(), at(lock.X, "/released"), nil)
	require.ErrorIs(t, err, lock.ErrConflict)

	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	execute(fmt.Sprintf("SELECT setval('interlock_lock_numbers', %d)", before.Token()))
	require.ErrorIs(t, before.Check(), lock.ErrLost)
	require.Greater(t, take(t, d.open(t, tree, nil), at(lock.X, "/")).Token(), before.Token())
}

// trips counts the round trips of connections: answers that come after something was sent.
type trips struct {
	net.Conn
	count   *atomic.Int64
	pending *atomic.Bool
}

func (c trips) Write(b []byte) (int, error) {
	c.pending.Store(true)
	return c.Conn.Write(b)
}

func (c trips) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.pending.Swap(false) {
		c.count.Add(1)
	}
	return n, err
}

// A TryLock is one round trip and so is an Unlock, at any depth.
func TestRoundTrips(t *testing.T) {
	d := newDatabase(t)
	var count atomic.Int64
	c := configOf(t, d.dsn)
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return trips{conn, &count, new(atomic.Bool)}, err
	}
	db := stdlib.OpenDB(*c)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	l, err := sqllock.Open(t.Context(), db, configOf(t, d.dsn), newTree(), &sqllock.Config{TTL: slow})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	require.NoError(t, take(t, l, at(lock.X, "/warm")).Unlock(t.Context())) // the connection prepares
	for _, depth := range []int{1, 4, 16, 32} {
		path := strings.Repeat("/segment", depth)
		fewest := [3]int64{99, 99, 99} // of several rounds: the session has calls of its own
		for range 5 {
			var g *lock.Grant
			for i, call := range []func(){
				func() { g = take(t, l, at(lock.X, path)) },
				func() {
					_, err := l.TryLock(t.Context(), at(lock.S, "/"), nil)
					require.ErrorIs(t, err, lock.ErrConflict)
				},
				func() { require.NoError(t, g.Unlock(t.Context())) },
			} {
				before := count.Load()
				call()
				fewest[i] = min(fewest[i], count.Load()-before)
			}
		}
		require.Equal(t, [3]int64{1, 1, 1}, fewest, "TryLock, a refusal and Unlock at depth %d", depth)
	}
}
