package pgqueuetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// through returns a pool whose connections go through a proxy.
func through(t testing.TB, dsn string) (*sql.DB, *proxy.Proxy) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	host, port := u.Hostname(), u.Port()
	if port == "" {
		port = "5432"
	}
	p := proxy.New(t, "tcp", net.JoinHostPort(host, port))
	u.Host = p.Addr()
	return pool(t, u.String()), p
}

// A worker that is cut off ends the context of its handlers before another worker can start
// the action, and its late end is refused.
func TestCutOff(t *testing.T) {
	dsn, db := database(t)
	execute(t, db, effect)
	far, p := through(t, dsn)
	cutOff, near := newEvents(), newEvents()
	var ended atomic.Bool
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("1")})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("2")})
	run(t, far, map[string]pgqueue.Handler{"work": {Settle: settle, Run: func(ctx context.Context, _ *pgqueue.Task) error {
		<-ctx.Done()
		if context.Cause(ctx) == pgqueue.ErrLost {
			ended.Store(true)
		}
		return nil // it claims success
	}}}, &pgqueue.Config{Observer: cutOff.observer(), Lease: 4 * time.Second, MaxRunning: 1})
	first := next(t, cutOff.started)
	renewed(t, db, first.ID)
	require.False(t, ended.Load())
	p.SetDown(true)
	stop := run(t, db, map[string]pgqueue.Handler{"work": {Settle: settle, Run: func(context.Context, *pgqueue.Task) error {
		if !ended.Load() {
			return errors.New("the context of the other handler has not ended")
		}
		return nil
	}}}, &pgqueue.Config{Observer: near.observer()})
	second := next(t, near.finished)
	require.NoError(t, second.Err)
	require.Equal(t, first.ID, second.ID)
	require.Greater(t, second.Token, first.Token)
	require.Equal(t, 2, second.Attempt)
	require.NoError(t, next(t, near.finished).Err)
	require.ErrorIs(t, stop(), context.Canceled)
	p.SetDown(false)
	require.Equal(t, first.Token, next(t, cutOff.lost).Token)
	require.Equal(t, []string{"1", "2"}, effects(t, db, "a"))
	empty(t, db)
}

// The server sends the rows of every renewal, and then the commit fails. The handler's context
// ends with the lease of the claim.
func TestRenewalIsRolledBack(t *testing.T) {
	_, db := database(t)
	for _, text := range []string{
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no renewal'; END $$`,
		`CREATE CONSTRAINT TRIGGER refuse AFTER UPDATE ON interlock_queue_actions DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (OLD.token <> 0 AND OLD.token = NEW.token) EXECUTE FUNCTION refuse()`,
	} {
		execute(t, db, text)
	}
	errs, causes := make(chan error, 1000), make(chan error, 1)
	observer := pgqueue.Observer{Error: func(_ context.Context, err error) { errs <- err }}
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	run(t, db, handler(func(ctx context.Context, _ *pgqueue.Task) error {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return nil
	}), &pgqueue.Config{Observer: observer, MaxRunning: 1, Lease: 3 * time.Second})
	require.ErrorContains(t, next(t, errs), "no renewal")
	require.Equal(t, pgqueue.ErrLost, next(t, causes))
	idle(t, db)
}

// A process is stopped, or cut off, while the server sends it what it has claimed: large
// arguments, which the connection cannot hold. The claim is undone after its lease, and then the
// claims of other workers, and its actions, go on.
func TestClaimIsNotReceived(t *testing.T) {
	dsn, db := database(t)
	const actions = 40
	for i := range actions {
		enqueue(t, db, pgqueue.Action{Keys: []string{fmt.Sprint(i)}, Class: "aws", Args: make([]byte, 1<<20)})
	}
	deaf, err := pgconn.Connect(t.Context(), dsn)
	require.NoError(t, err)
	defer deaf.Close(context.Background())
	// The result is not read.
	deaf.Exec(t.Context(), fmt.Sprintf("SELECT args FROM interlock_queue_claim('deaf', 3000000, '{aws}', '{%d}', %[1]d)", actions))
	// The server waits for the process.
	awaitCount(t, db, 1, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite' AND query LIKE '%deaf%'")
	e := newEvents()
	enqueue(t, db, pgqueue.Action{Keys: []string{"other"}})
	run(t, db, handler(nothing), &pgqueue.Config{Observer: e.observer(), Classes: map[string]int{"aws": actions}})
	for range actions + 1 {
		require.Equal(t, 1, next(t, e.finished).Attempt)
	}
	empty(t, db)
}

// The clock of the server jumps forward: a lease is over early, and two runs of the action
// overlap. Only the one with the later token ends the action.
func TestClockStep(t *testing.T) {
	_, db := database(t)
	execute(t, db, effect)
	early, late := newEvents(), newEvents()
	gate := make(chan struct{})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("1")})
	run(t, db, map[string]pgqueue.Handler{"work": {Settle: settle, Run: func(context.Context, *pgqueue.Task) error {
		<-gate
		return nil
	}}}, &pgqueue.Config{Observer: early.observer(), MaxRunning: 1, Lease: time.Hour})
	first := next(t, early.started)
	execute(t, db, "UPDATE interlock_queue_actions SET at = at - interval '2 hours'")
	run(t, db, map[string]pgqueue.Handler{"work": {Settle: settle, Run: nothing}}, &pgqueue.Config{Observer: late.observer()})
	require.Greater(t, next(t, late.finished).Token, first.Token)
	close(gate)
	require.Equal(t, first.Token, next(t, early.lost).Token)
	require.Equal(t, []string{"1"}, effects(t, db, "a"))
	empty(t, db)
}

// traffic enqueues actions in order for each key, some of them with two keys, and keeps what
// each key expects. Producers are prepared to be rolled back.
type traffic struct {
	keys     int
	expected map[string][]string
}

func (tr *traffic) produce(ctx context.Context, db *sql.DB, actions int, dice *rand.Rand) error {
	if tr.expected == nil {
		tr.expected = map[string][]string{}
	}
	for first := 0; first < actions; first += 20 {
		var batch []pgqueue.Action
		for i := first; i < min(first+20, actions); i++ {
			k := dice.IntN(tr.keys)
			keys := []string{fmt.Sprintf("vm%03d", k)}
			if i%10 == 0 {
				keys = append(keys, fmt.Sprintf("vm%03d", (k+1)%tr.keys))
			}
			batch = append(batch, pgqueue.Action{Keys: keys, Name: "work", Args: fmt.Append(nil, i)})
		}
		// The same batch is sent until it is there: after a COMMIT without an answer the keys of
		// its actions are decided.
		for err := insert(ctx, db, batch); err != nil; err = insert(ctx, db, batch) {
			if ctx.Err() != nil {
				return err
			}
		}
		for _, a := range batch {
			for _, key := range a.Keys {
				tr.expected[key] = append(tr.expected[key], string(a.Args))
			}
		}
	}
	return nil
}

// insert enqueues in one transaction. A row in the table batch, with the number of the first
// action, shows whether a COMMIT without an answer was executed.
func insert(ctx context.Context, db *sql.DB, batch []pgqueue.Action) error {
	first := string(batch[0].Args)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	result, err := tx.ExecContext(ctx, "INSERT INTO batch VALUES ($1) ON CONFLICT DO NOTHING", first)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err // it is there
	}
	for _, a := range batch {
		if _, err := pgqueue.Enqueue(ctx, tx, &a); err != nil {
			return err
		}
	}
	return tx.Commit()
}

const batchTable = "CREATE TABLE batch (first text PRIMARY KEY)"

// verdict compares the effects with what was expected.
func (tr *traffic) verdict(t *testing.T, db *sql.DB) {
	t.Helper()
	lost, twice, disordered, total := 0, 0, 0, 0
	for key, want := range tr.expected {
		got := effects(t, db, key)
		seen := map[string]int{}
		for _, arg := range got {
			seen[arg]++
			if seen[arg] > 1 {
				twice++
			}
		}
		for i, arg := range want {
			total++
			switch {
			case seen[arg] == 0:
				lost++
			case i < len(got) && got[i] != arg:
				disordered++
			}
		}
	}
	t.Logf("%d effects of actions of %d keys: %d lost, %d twice, %d out of order", total, len(tr.expected), lost, twice, disordered)
	require.Zero(t, lost+twice+disordered)
	empty(t, db)
}

// guard is a target outside that refuses lower tokens, and notices actions of one key that
// overlap.
type guard struct {
	mu      sync.Mutex
	tokens  map[string]int64
	refused int
}

func (g *guard) write(t *pgqueue.Task) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, key := range t.Keys {
		if t.Token < g.tokens[key] {
			g.refused++
		}
		g.tokens[key] = max(g.tokens[key], t.Token)
	}
}

// Connections are cut at random places of the requests of producers and workers.
func TestCutConnections(t *testing.T) {
	dsn, db := database(t)
	execute(t, db, effect)
	execute(t, db, batchTable)
	n := scale.Of(300, 10_000)
	g := &guard{tokens: map[string]int64{}}
	handlers := map[string]pgqueue.Handler{"work": {Settle: settle, Run: func(_ context.Context, task *pgqueue.Task) error {
		g.write(task)
		return nil
	}}}
	far, p := through(t, dsn)
	var stops []func() error
	for range 2 {
		stops = append(stops, run(t, far, handlers, &pgqueue.Config{Lease: time.Second, Poll: 100 * time.Millisecond}))
	}
	listening(t, db, 2)
	p.CutAtRandom(40)
	tr := &traffic{keys: 20}
	require.NoError(t, tr.produce(t.Context(), far, n, rand.New(rand.NewPCG(1, 2))))
	idle(t, db)
	p.CutAtRandom(0)
	for _, stop := range stops {
		require.ErrorIs(t, stop(), context.Canceled)
	}
	t.Logf("%d cuts, %d late writes refused outside", p.Cuts(), g.refused)
	require.Positive(t, p.Cuts())
	tr.verdict(t, db)
}

// The server is killed and started again while workers and producers use it.
func TestRestart(t *testing.T) {
	kills := scale.Of(2, 10)
	s := servers.PrivatePostgres(t, &private.Config{Fast: true}) // commits survive a kill
	db := pool(t, s.DSN())
	require.NoError(t, pgqueue.Migrate(t.Context(), db))
	execute(t, db, effect)
	execute(t, db, batchTable)
	finished := make(chan struct{}, 100_000)
	observer := pgqueue.Observer{Finished: func(context.Context, pgqueue.Finished) { finished <- struct{}{} }}
	var stops []func() error
	for range 2 {
		stops = append(stops, run(t, db, map[string]pgqueue.Handler{"work": {Run: nothing, Settle: settle}},
			&pgqueue.Config{Lease: time.Second, Poll: 100 * time.Millisecond, Observer: observer}))
	}
	tr := &traffic{keys: 20}
	produced := make(chan error, 1)
	go func() {
		produced <- tr.produce(context.Background(), db, 200*(kills+1), rand.New(rand.NewPCG(3, 4)))
	}()
	for range kills {
		for range 100 {
			next(t, finished)
		}
		require.NoError(t, s.Kill())
		require.NoError(t, s.Start())
	}
	require.NoError(t, next(t, produced))
	idle(t, db)
	for _, stop := range stops {
		require.ErrorIs(t, stop(), context.Canceled)
	}
	t.Logf("%d kills of the server", kills)
	tr.verdict(t, db)
}

// pauseFlushes stops the processes that write the server's log in the background, until the
// next crash: however slow this machine is, they then do not make the latest commits durable
// before the crash. They stop where they wait for work. Elsewhere they may hold a lock without
// which no transaction goes on.
func pauseFlushes(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, process := range []string{"walwriter", "background writer"} {
		require.Eventually(t, func() bool { // they come after the server answers
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var pid int
			err := db.QueryRowContext(ctx, "SELECT pid FROM pg_stat_activity WHERE backend_type = $1", process).Scan(&pid)
			if err != nil || syscall.Kill(pid, syscall.SIGSTOP) != nil {
				return false
			}
			waits := false
			err = db.QueryRowContext(ctx, "SELECT coalesce(wait_event_type, '') = 'Activity' FROM pg_stat_activity WHERE pid = $1", pid).Scan(&waits)
			if err != nil || !waits {
				_ = syscall.Kill(pid, syscall.SIGCONT)
			}
			return waits
		}, time.Minute, 10*time.Millisecond, process)
	}
}

// A server that loses its latest commits, because they are asynchronous, loses whole
// transactions: what is left of the producers' ends once each, in order, and a commit that
// was made durable is left with all before it.
func TestLostCommits(t *testing.T) {
	s := servers.PrivatePostgres(t, &private.Config{Fast: true})
	db := pool(t, s.DSN())
	db.SetMaxIdleConns(-1) // none is from before a crash
	require.NoError(t, pgqueue.Migrate(t.Context(), db))
	for _, text := range []string{
		effect, "CREATE TABLE enqueued (n bigserial, key text, arg text)",
		"ALTER SYSTEM SET synchronous_commit = off",
	} {
		execute(t, db, text)
	}
	crash := func() {
		require.NoError(t, s.Kill())
		require.NoError(t, s.Start())
	}
	crash() // the settings count
	var stops []func() error
	for range 2 {
		stops = append(stops, run(t, pool(t, s.DSN()), map[string]pgqueue.Handler{"work": {Run: nothing, Settle: settle}},
			&pgqueue.Config{Lease: time.Second, Poll: 100 * time.Millisecond, Classes: map[string]int{"": 1000}}))
	}
	count := func() (n int) {
		require.NoError(t, db.QueryRow("SELECT count(*) FROM enqueued").Scan(&n))
		return n
	}
	round, lost := 0, 0
	for ; lost < 3; round++ {
		require.Less(t, round, 50, "the server loses nothing")
		pauseFlushes(t, db)
		durable := 0
		var claims *sql.Tx
		for batch := range 9 {
			tx, err := db.Begin()
			require.NoError(t, err)
			size := 20
			if batch > 2 {
				size = 1 // the server loses the end of its log, which is less than a page
			}
			if batch == 2 {
				execute(t, tx, "SET LOCAL synchronous_commit = on")
			}
			for i := range size {
				key, arg := fmt.Sprint((batch+i)%7), fmt.Sprintf("%d.%d.%d", round, batch, i)
				enqueue(t, tx, pgqueue.Action{Keys: []string{key}, Args: []byte(arg)})
				execute(t, tx, "INSERT INTO enqueued (key, arg) VALUES ($1, $2)", key, arg)
			}
			require.NoError(t, tx.Commit())
			if batch == 2 {
				durable = count()
				// Claims make all earlier commits durable. Now they wait.
				claims, err = db.Begin()
				require.NoError(t, err)
				execute(t, claims, "SELECT FROM interlock_queue_claims FOR UPDATE")
			}
		}
		before := count()
		crash()
		_ = claims.Rollback() // the crash has done it
		after := count()
		require.GreaterOrEqual(t, after, durable)
		if after < before {
			lost++
		}
	}
	idle(t, db)
	for _, stop := range stops {
		require.ErrorIs(t, stop(), context.Canceled)
	}
	tr := &traffic{expected: map[string][]string{}}
	rows, err := db.Query("SELECT key, arg FROM enqueued ORDER BY n")
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var key, arg string
		require.NoError(t, rows.Scan(&key, &arg))
		tr.expected[key] = append(tr.expected[key], arg)
	}
	require.NoError(t, rows.Err())
	t.Logf("%d crashes, %d of which lost commits", round, lost)
	tr.verdict(t, db)
}

// While the disk is full, Enqueue fails, and an action whose Settle fails stays with its worker.
// It ends once, and work goes on, when there is room again.
func TestDiskFull(t *testing.T) {
	s := servers.PrivatePostgres(t, &private.Config{Fast: true})
	db := pool(t, s.DSN())
	require.NoError(t, pgqueue.Migrate(t.Context(), db))
	execute(t, db, effect)
	e, errs, gate := newEvents(), make(chan error, 1000), make(chan struct{})
	observer := e.observer()
	observer.Error = func(_ context.Context, err error) { errs <- err }
	run(t, db, map[string]pgqueue.Handler{"work": {Settle: settle, Run: func(context.Context, *pgqueue.Task) error {
		<-gate
		return nil
	}}}, &pgqueue.Config{Observer: observer, MaxRunning: 1, Lease: time.Minute})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("1")})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("2")})
	first := next(t, e.started)
	room, err := s.Fill(db, "INSERT INTO effect (key) SELECT 'junk' FROM generate_series(1, $1)",
		`INSERT INTO interlock_queue_actions (id, keys, name, args, class, timeout, attempts, delay, max_delay, enqueued, seq, ahead, at)
		SELECT nextval('interlock_queue_order'), '{}', 'junk', '', '', 0, 0, 0, 0, now(), 0, 1, 'infinity' FROM generate_series(1, $1)`)
	require.NoError(t, err)
	_, err = pgqueue.Enqueue(t.Context(), db, &pgqueue.Action{Keys: []string{"b"}, Name: "work"})
	require.ErrorContains(t, err, "could not extend file")
	close(gate)
	for full := false; !full; { // a slow statement may end with another error
		full = strings.Contains(next(t, errs).Error(), "could not extend file")
	}
	require.Empty(t, e.finished)
	require.NoError(t, room())
	for _, want := range []int64{first.ID, first.ID + 1} {
		f := next(t, e.finished)
		require.Equal(t, want, f.ID)
		require.Equal(t, 1, f.Attempt)
	}
	enqueue(t, db, pgqueue.Action{Keys: []string{"b"}, Args: []byte("3")})
	require.Equal(t, "3", string(next(t, e.finished).Args))
	require.Equal(t, []string{"1", "2"}, effects(t, db, "a"))
	require.Empty(t, e.lost)
	execute(t, db, "DELETE FROM interlock_queue_actions WHERE name = 'junk'")
	empty(t, db)
}

// The limits of classes hold over two workers together, and all of them are used.
func TestClasses(t *testing.T) {
	dsn, db := database(t)
	n := scale.Of(150, 3_000)
	limits := map[string]int{"": 6, "aws": 4, "aws/*": 2, "aws/seoul": 1, "azure": 3}
	classes := []string{"aws/seoul", "aws/tokyo", "aws/oslo/a", "aws/oslo/b", "aws", "azure", ""}
	var mu sync.Mutex
	running, most := map[string]int{}, map[string]int{}
	used := make(chan struct{}) // closed when as many run as the limit of the root allows
	count := func(class string, by int) {
		mu.Lock()
		defer mu.Unlock()
		parts := map[string][]string{
			"aws/seoul": {"", "aws", "aws/seoul"}, "aws/tokyo": {"", "aws", "aws/tokyo"}, "aws/oslo/a": {"", "aws", "aws/oslo"},
			"aws/oslo/b": {"", "aws", "aws/oslo"}, "aws": {"", "aws"}, "azure": {"", "azure"}, "": {""},
		}
		for _, path := range parts[class] {
			running[path] += by
			if running[path] > most[path] {
				most[path] = running[path]
				if path == "" && most[""] == limits[""] {
					close(used)
				}
			}
		}
	}
	for i := range n {
		enqueue(t, db, pgqueue.Action{Keys: []string{fmt.Sprint(i)}, Class: classes[i%len(classes)]})
	}
	handlers := handler(func(ctx context.Context, task *pgqueue.Task) error {
		count(task.Class, 1)
		defer count(task.Class, -1)
		select {
		case <-used:
		case <-ctx.Done():
			return ctx.Err()
		}
		_, err := db.ExecContext(ctx, "SELECT pg_sleep(0.01)")
		return err
	})
	for range 2 {
		run(t, pool(t, dsn), handlers, &pgqueue.Config{Classes: limits, MaxRunning: 5, Poll: 50 * time.Millisecond})
	}
	idle(t, db)
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d actions, the most at once by class: %v", n, most)
	for path, n := range most {
		limit := limits[path]
		if limit == 0 {
			limit = limits["aws/*"]
		}
		require.LessOrEqual(t, n, limit, path)
	}
}

// Several workers and producers of actions with several keys: the database reports no
// deadlock between workers.
func TestNoDeadlock(t *testing.T) {
	dsn, db := database(t)
	execute(t, db, effect)
	n := scale.Of(300, 10_000)
	errs := make(chan error, 1000)
	dice := rand.New(rand.NewPCG(5, 6))
	for i := range n {
		keys := []string{"a", "b", "c", "d", "e", "f"}
		dice.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		enqueue(t, db, pgqueue.Action{Keys: keys[:1+dice.IntN(4)], Args: fmt.Append(nil, i)})
	}
	for i := range 4 {
		h := pgqueue.Handler{Run: nothing, Settle: settle}
		if i%2 == 0 {
			h.Settle = nil // these workers end several actions at once
		}
		run(t, pool(t, dsn), map[string]pgqueue.Handler{"work": h},
			&pgqueue.Config{Observer: pgqueue.Observer{Error: func(_ context.Context, err error) { errs <- err }}})
	}
	idle(t, db)
	select {
	case err := <-errs:
		require.NoError(t, err)
	default:
	}
}

// A worker stops while it cannot write how an action ended. Run returns after the time of a lease,
// and the action runs in another worker.
func TestStopWithoutTheServer(t *testing.T) {
	dsn, db := database(t)
	far, p := through(t, dsn)
	e, gate := newEvents(), make(chan struct{})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	stop := run(t, far, handler(func(context.Context, *pgqueue.Task) error { <-gate; return nil }),
		&pgqueue.Config{Observer: e.observer(), Lease: 2 * time.Second})
	first := next(t, e.started)
	p.SetDown(true)
	close(gate)
	require.ErrorIs(t, stop(), queue.ErrNotDrained)
	p.SetDown(false)
	require.Empty(t, e.finished)
	run(t, db, handler(nothing), &pgqueue.Config{Observer: e.observer()})
	require.Greater(t, next(t, e.finished).Token, first.Token)
	empty(t, db)
}

// blackhole is a connection that loses what is written to it.
type blackhole struct {
	net.Conn
	open *atomic.Bool
}

func (c blackhole) Write(data []byte) (int, error) {
	if c.open.Load() {
		return len(data), nil
	}
	return c.Conn.Write(data)
}

// The network loses all requests. A worker stops, two actions end, one after the other, and the
// second one waits for the removal of the first one. Run returns, and both run in another worker.
func TestStopBehindALostRemoval(t *testing.T) {
	dsn, db := database(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	var open atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if open.Load() {
			return nil, syscall.ECONNREFUSED
		}
		conn, err := dial(ctx, network, address)
		return blackhole{conn, &open}, err
	}
	far := stdlib.OpenDB(*config)
	far.SetMaxIdleConns(10)
	t.Cleanup(func() { require.NoError(t, far.Close()) })
	var pooled [10]*sql.Conn // each statement that gets no answer uses up one
	for i := range pooled {
		pooled[i], err = far.Conn(t.Context())
		require.NoError(t, err)
	}
	for _, conn := range pooled {
		require.NoError(t, conn.Close())
	}
	e, gates := newEvents(), map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{})}
	for key := range gates {
		enqueue(t, db, pgqueue.Action{Keys: []string{key}})
	}
	stop := run(t, far, handler(func(_ context.Context, task *pgqueue.Task) error { <-gates[task.Keys[0]]; return nil }),
		&pgqueue.Config{Observer: e.observer(), Lease: 3 * time.Second, Poll: time.Hour}) // no claim is under way at the stop
	for range gates {
		next(t, e.started)
	}
	open.Store(true)
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	for _, key := range []string{"a", "b"} {
		time.Sleep(500 * time.Millisecond)
		close(gates[key])
	}
	require.ErrorIs(t, next(t, stopped), queue.ErrNotDrained)
	open.Store(false)
	require.Empty(t, e.finished)
	run(t, db, handler(nothing), &pgqueue.Config{Observer: e.observer()})
	for range gates {
		f := next(t, e.finished)
		require.NoError(t, f.Err)
		require.Equal(t, 2, f.Attempt)
	}
	empty(t, db)
}

// hidden is a connection as a driver has it that wraps pgx, for traces or metrics.
type hidden struct {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnBeginTx
	driver.NamedValueChecker
}

type hides struct{ driver.Connector }

func (h hides) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := h.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	in := c.(*stdlib.Conn)
	return hidden{in, in, in, in, in}, nil
}

// A worker whose driver hides pgx reports that it gets no notifications. It polls.
func TestHiddenDriver(t *testing.T) {
	dsn, db := database(t)
	config, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	wrapped := sql.OpenDB(hides{stdlib.GetConnector(*config)})
	t.Cleanup(func() { require.NoError(t, wrapped.Close()) })
	e, errs := newEvents(), make(chan error, 1000)
	observer := e.observer()
	observer.Error = func(_ context.Context, err error) { errs <- err }
	run(t, wrapped, handler(nothing), &pgqueue.Config{Observer: observer, Poll: 50 * time.Millisecond})
	err = next(t, errs)
	invalid, is := errors.AsType[*queue.InvalidError](err)
	require.True(t, is, "%v", err)
	require.Contains(t, invalid.Problem, "a driver other than pgx")
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	require.NoError(t, next(t, e.finished).Err)
	empty(t, db)
}
