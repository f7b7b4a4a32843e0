package pgqueuetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

// patience bounds every wait for an event.
const patience = time.Minute

var (
	errBad       = errors.New("bad")
	errPermanent = errors.New("permanent")
	errUndecided = errors.New("undecided")
)

// database returns an empty queue.
func database(t testing.TB) (dsn string, db *sql.DB) {
	t.Helper()
	dsn = servers.Postgres(t)
	db = pool(t, dsn)
	require.NoError(t, pgqueue.Migrate(t.Context(), db))
	return dsn, db
}

func pool(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	db.SetMaxIdleConns(100)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// enqueue adds an action in a transaction of its own.
func enqueue(t testing.TB, db pgqueue.Tx, a pgqueue.Action) int64 {
	t.Helper()
	if a.Name == "" {
		a.Name = "work"
	}
	id, err := pgqueue.Enqueue(t.Context(), db, &a)
	require.NoError(t, err)
	return id
}

// run starts a worker and stops it at the end of the test. The result stops it before.
func run(t testing.TB, db *sql.DB, handlers map[string]pgqueue.Handler, config *pgqueue.Config) (stop func() error) {
	t.Helper()
	w, err := pgqueue.New(db, handlers, config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var worker errgroup.Group
	worker.Go(func() error { return w.Run(ctx) })
	stop = sync.OnceValue(func() error {
		cancel()
		return worker.Wait()
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// events receives what a worker observes.
type events struct {
	started  chan pgqueue.Started
	retried  chan pgqueue.FailedAttempt
	finished chan pgqueue.Finished
	lost     chan pgqueue.Lost
}

func newEvents() *events {
	const many = 10_000
	return &events{
		make(chan pgqueue.Started, many), make(chan pgqueue.FailedAttempt, many),
		make(chan pgqueue.Finished, many), make(chan pgqueue.Lost, many),
	}
}

func (e *events) observer() pgqueue.Observer {
	return pgqueue.Observer{
		Started:  func(_ context.Context, x pgqueue.Started) { e.started <- x },
		Retried:  func(_ context.Context, x pgqueue.FailedAttempt) { e.retried <- x },
		Finished: func(_ context.Context, x pgqueue.Finished) { e.finished <- x },
		Lost:     func(_ context.Context, x pgqueue.Lost) { e.lost <- x },
	}
}

// next awaits an event.
func next[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case x := <-c:
		return x
	case <-time.After(patience):
		require.FailNow(t, "no event came")
		panic("unreachable")
	}
}

// handler returns a Handler without Settle.
func handler(run func(ctx context.Context, t *pgqueue.Task) error) map[string]pgqueue.Handler {
	return map[string]pgqueue.Handler{"work": {Run: run}}
}

// nothing is a handler that succeeds.
func nothing(context.Context, *pgqueue.Task) error { return nil }

// empty checks that no row is left.
func empty(t testing.TB, db *sql.DB) {
	t.Helper()
	for _, table := range []string{"lanes", "places", "actions"} {
		n := -1
		require.NoError(t, db.QueryRow("SELECT count(*) FROM interlock_queue_"+table).Scan(&n))
		require.Zero(t, n, table)
	}
}

// idle waits until the queue has no actions.
func idle(t testing.TB, db *sql.DB) {
	t.Helper()
	require.Eventually(t, func() bool {
		n := -1
		err := db.QueryRow("SELECT count(*) FROM interlock_queue_actions").Scan(&n)
		return err == nil && n == 0
	}, 10*patience, 20*time.Millisecond)
	empty(t, db)
}

// renewed waits until the lease of an action has been renewed twice.
func renewed(t testing.TB, db *sql.DB, id int64) {
	t.Helper()
	for range 2 {
		until := ""
		require.NoError(t, db.QueryRow("SELECT at::text FROM interlock_queue_actions WHERE id = $1", id).Scan(&until))
		require.Eventually(t, func() bool {
			later := false
			err := db.QueryRow("SELECT at > $2::timestamptz FROM interlock_queue_actions WHERE id = $1", id, until).Scan(&later)
			return err == nil && later
		}, patience, 10*time.Millisecond)
	}
}

// effect is a table that Settle writes, in the order of the commits of each key.
const effect = `CREATE TABLE effect (n bigserial, key text, arg text, outcome text, token bigint)`

func settle(ctx context.Context, tx *sql.Tx, t *pgqueue.Task, outcome queue.Outcome, _ error) error {
	for _, key := range t.Keys {
		if _, err := tx.ExecContext(ctx, "INSERT INTO effect (key, arg, outcome, token) VALUES ($1, $2, $3, $4)",
			key, string(t.Args), outcome.String(), t.Token); err != nil {
			return err
		}
	}
	return nil
}

// effects returns the arguments of what was settled for a key, in order.
func effects(t testing.TB, db *sql.DB, key string) (args []string) {
	t.Helper()
	rows, err := db.Query("SELECT arg FROM effect WHERE key = $1 ORDER BY n", key)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var arg string
		require.NoError(t, rows.Scan(&arg))
		args = append(args, arg)
	}
	require.NoError(t, rows.Err())
	return args
}

func execute(t testing.TB, db executor, text string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(context.Background(), text, args...)
	require.NoError(t, err)
}

// cancel cancels an action that has not started.
func cancel(t testing.TB, on pgqueue.Tx, id int64) {
	t.Helper()
	removed, err := pgqueue.Cancel(t.Context(), on, id)
	require.NoError(t, err)
	require.True(t, removed)
}

// info is a row of the view for operators.
type info struct {
	pgqueue.Task
	State, Error string
	Ahead        int
	At           time.Time
}

// inspect returns the actions of a key in their order.
func inspect(t testing.TB, db *sql.DB, key string) (list []info) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT state, id, token, array_to_json(keys), attempt, attempts, error, ahead, at
		FROM interlock_queue WHERE $1 = ANY (keys) ORDER BY seq, at, id`, key)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var i info
		var keys []byte
		require.NoError(t, rows.Scan(&i.State, &i.ID, &i.Token, &keys, &i.Attempt, &i.Retries.Attempts, &i.Error, &i.Ahead, &i.At))
		require.NoError(t, json.Unmarshal(keys, &i.Keys))
		list = append(list, i)
	}
	require.NoError(t, rows.Err())
	return list
}

// awaitCount waits until a query returns a number.
func awaitCount(t testing.TB, db *sql.DB, want int, query string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool {
		n := -1
		err := db.QueryRow(query, args...).Scan(&n)
		return err == nil && n == want
	}, patience, 10*time.Millisecond, query)
}

// awaitLock waits until one statement waits for a lock.
func awaitLock(t testing.TB, db *sql.DB) {
	t.Helper()
	awaitCount(t, db, 1, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
}

// listening waits until so many workers have begun.
func listening(t testing.TB, db *sql.DB, workers int) {
	t.Helper()
	awaitCount(t, db, workers, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()")
}

// executor is a *sql.DB or a *sql.Tx.
type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}
