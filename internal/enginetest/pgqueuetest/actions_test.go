package pgqueuetest

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/queue"
	"github.com/interlock-go/interlock/queue/pgqueue"
)

func TestMigrate(t *testing.T) {
	_, db := database(t)
	require.NoError(t, pgqueue.Migrate(t.Context(), db), "again")
	execute(t, db, "DROP TABLE interlock_queue_actions CASCADE")
	w, err := pgqueue.New(db, nil, nil)
	require.NoError(t, err)
	require.ErrorContains(t, w.Run(t.Context()), "call Migrate first")
}

// Every call names Migrate if it has not run.
func TestBeforeMigrate(t *testing.T) {
	db := pool(t, servers.Postgres(t))
	w, err := pgqueue.New(db, nil, nil)
	require.NoError(t, err)
	for name, call := range map[string]func() error{
		"Run": func() error { return w.Run(t.Context()) },
		"Enqueue": func() error {
			_, err := pgqueue.Enqueue(t.Context(), db, &pgqueue.Action{Keys: []string{"a"}, Name: "x"})
			return err
		},
		"Cancel": func() error { _, err := pgqueue.Cancel(t.Context(), db, 1); return err },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, call(), "call Migrate first") })
	}
}

// The handler gets what was enqueued, in order, with growing tokens.
func TestOrder(t *testing.T) {
	_, db := database(t)
	execute(t, db, effect)
	tokens := map[string]int64{}
	seen := make(chan *pgqueue.Task, 100)
	e := newEvents()
	for i := range 20 {
		enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: fmt.Append(nil, i)})
	}
	run(t, db, map[string]pgqueue.Handler{"work": {
		Run:    func(_ context.Context, task *pgqueue.Task) error { seen <- task; return nil },
		Settle: settle,
	}}, &pgqueue.Config{Observer: e.observer()})
	for i := range 40 {
		if i < 20 { // some wait already, and some come while the worker runs
			enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: fmt.Append(nil, 20+i)})
		}
		f := next(t, e.finished)
		require.Equal(t, queue.OK, f.Outcome)
		require.NoError(t, f.Err)
		task := next(t, seen)
		require.Equal(t, fmt.Sprint(i), string(task.Args))
		require.Equal(t, []string{"a"}, task.Keys)
		require.Equal(t, 1, task.Attempt)
		require.Greater(t, task.Token, tokens["a"])
		tokens["a"] = task.Token
	}
	require.Len(t, effects(t, db, "a"), 40)
	empty(t, db)
}

// A transaction that is rolled back leaves nothing; one that commits starts the action.
func TestRollback(t *testing.T) {
	_, db := database(t)
	tx, err := db.Begin()
	require.NoError(t, err)
	enqueue(t, tx, pgqueue.Action{Keys: []string{"a", "b"}})
	enqueue(t, tx, pgqueue.Action{Keys: []string{"c"}, Delay: time.Hour})
	execute(t, tx, "SAVEPOINT s")
	enqueue(t, tx, pgqueue.Action{Keys: []string{"a"}})
	execute(t, tx, "ROLLBACK TO SAVEPOINT s")
	require.NoError(t, tx.Rollback())
	empty(t, db)
}

// A transaction above READ COMMITTED that began before the lane changed is refused, and
// never breaks the order.
func TestIsolation(t *testing.T) {
	_, db := database(t)
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, lane exists %v", level, before), func(t *testing.T) {
				e := newEvents()
				if before {
					enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
				}
				tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
				require.NoError(t, err)
				execute(t, tx, "SELECT 1") // its snapshot
				enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
				_, err = pgqueue.Enqueue(t.Context(), tx, &pgqueue.Action{Keys: []string{"a"}, Name: "work"})
				require.ErrorContains(t, err, "40001")
				require.NoError(t, tx.Rollback())
				stop := run(t, db, handler(nothing), &pgqueue.Config{Observer: e.observer()})
				next(t, e.finished)
				if before {
					next(t, e.finished)
				}
				require.ErrorIs(t, stop(), context.Canceled)
				empty(t, db)
			})
		}
	}
}

// The order is that of the lane's lock: a producer that has it and is slow to commit comes
// first, and the other lanes do not wait.
func TestSlowCommit(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	run(t, db, handler(nothing), &pgqueue.Config{Observer: e.observer()})
	tx, err := db.Begin()
	require.NoError(t, err)
	enqueue(t, tx, pgqueue.Action{Keys: []string{"a"}, Args: []byte("slow")})
	quick := make(chan int64, 1)
	go func() {
		id, _ := pgqueue.Enqueue(context.Background(), db, &pgqueue.Action{Keys: []string{"a"}, Name: "work", Args: []byte("quick")})
		quick <- id
	}()
	awaitLock(t, db) // the other producer waits for the lane
	enqueue(t, db, pgqueue.Action{Keys: []string{"b"}, Args: []byte("other")})
	require.Equal(t, "other", string(next(t, e.finished).Args))
	require.Empty(t, quick)
	require.NoError(t, tx.Commit())
	require.Equal(t, "slow", string(next(t, e.finished).Args))
	require.Equal(t, "quick", string(next(t, e.finished).Args))
	require.Positive(t, next(t, quick))
}

// A slow producer holds up the end of a running action of its key, and the leases of all
// actions are renewed meanwhile.
func TestSlowCommitDuringEnd(t *testing.T) {
	_, db := database(t)
	execute(t, db, effect)
	e := newEvents()
	release := make(chan struct{})
	handlers := map[string]pgqueue.Handler{"work": {Settle: settle, Run: func(context.Context, *pgqueue.Task) error {
		<-release
		return nil
	}}}
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("1")})
	config := &pgqueue.Config{Observer: e.observer(), Lease: 3 * time.Second, Poll: 50 * time.Millisecond}
	run(t, db, handlers, config)
	first := next(t, e.started)
	run(t, db, handlers, config)
	tx, err := db.Begin()
	require.NoError(t, err)
	enqueue(t, tx, pgqueue.Action{Keys: []string{"a"}, Args: []byte("2")})
	close(release)
	awaitLock(t, db) // the end waits for the lane
	renewed(t, db, first.ID)
	require.Empty(t, e.started)
	require.NoError(t, tx.Commit())
	require.Equal(t, first.Token, next(t, e.finished).Token)
	require.Equal(t, "2", string(next(t, e.finished).Args))
	require.Equal(t, []string{"1", "2"}, effects(t, db, "a"))
}

// A slow producer holds up no other end, also where a worker ends several actions at once.
func TestSlowCommitHoldsUpItsLane(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	release := make(chan struct{})
	for i := range 9 {
		enqueue(t, db, pgqueue.Action{Keys: []string{fmt.Sprint(i)}})
	}
	run(t, db, handler(func(context.Context, *pgqueue.Task) error {
		<-release
		return nil
	}), &pgqueue.Config{Observer: e.observer()})
	for range 9 {
		next(t, e.started)
	}
	tx, err := db.Begin()
	require.NoError(t, err)
	enqueue(t, tx, pgqueue.Action{Keys: []string{"0"}})
	close(release)
	for range 8 {
		require.NotEqual(t, []string{"0"}, next(t, e.finished).Keys)
	}
	require.Empty(t, e.finished)
	require.NoError(t, tx.Commit())
	for range 2 {
		require.Equal(t, []string{"0"}, next(t, e.finished).Keys)
	}
	idle(t, db)
}

// A slow transaction that cancels an action holds the one that advances. It holds up the end
// of another action before that one, and no other end.
func TestSlowCancelHoldsUpItsSuccessors(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	var release [9]chan struct{}
	canceled := enqueue(t, db, pgqueue.Action{Keys: []string{"other"}})
	for i := range release {
		release[i] = make(chan struct{})
		enqueue(t, db, pgqueue.Action{Keys: []string{fmt.Sprint(i)}})
	}
	successor := enqueue(t, db, pgqueue.Action{Keys: []string{"0", "other"}})
	tx, err := db.Begin()
	require.NoError(t, err)
	cancel(t, tx, canceled)
	run(t, db, handler(func(_ context.Context, task *pgqueue.Task) error {
		if task.ID != successor {
			<-release[task.Keys[0][0]-'0']
		}
		return nil
	}), &pgqueue.Config{Observer: e.observer(), Lease: 2 * patience, Poll: 50 * time.Millisecond})
	for range release {
		next(t, e.started)
	}
	close(release[0])
	awaitLock(t, db) // the end waits
	for _, c := range release[1:] {
		close(c)
	}
	for range release[1:] {
		require.NotEqual(t, []string{"0"}, next(t, e.finished).Keys)
	}
	require.Empty(t, e.finished)
	require.NoError(t, tx.Commit())
	require.Equal(t, []string{"0"}, next(t, e.finished).Keys)
	require.Equal(t, successor, next(t, e.finished).ID)
	idle(t, db)
}

// An action of several keys starts when it is first for all of them, and holds up the later
// actions of each.
func TestSeveralKeys(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	gates := map[string]chan struct{}{}
	for _, name := range []string{"a", "b", "both", "a2", "b2"} {
		gates[name] = make(chan struct{})
	}
	for _, a := range []struct {
		name string
		keys []string
	}{{"a", []string{"a"}}, {"b", []string{"b"}}, {"both", []string{"b", "a"}}, {"a2", []string{"a"}}, {"b2", []string{"b"}}} {
		enqueue(t, db, pgqueue.Action{Keys: a.keys, Args: []byte(a.name)})
	}
	run(t, db, handler(func(_ context.Context, task *pgqueue.Task) error {
		<-gates[string(task.Args)]
		return nil
	}), &pgqueue.Config{Observer: e.observer()})
	started := func(want ...string) {
		t.Helper()
		var got []string
		for range want {
			got = append(got, string(next(t, e.started).Args))
		}
		require.ElementsMatch(t, want, got)
		require.Empty(t, e.started)
	}
	started("a", "b")
	close(gates["a"])
	next(t, e.finished)
	list := inspect(t, db, "a")
	require.Equal(t, "waiting", list[0].State)
	require.Equal(t, []string{"a", "b"}, list[0].Keys)
	require.Equal(t, 1, list[0].Ahead)
	close(gates["b"])
	started("both")
	close(gates["both"])
	started("a2", "b2")
	close(gates["a2"])
	close(gates["b2"])
	idle(t, db)
}

// A failed attempt is repeated after a pause, and no later action of its keys overtakes it.
func TestRetries(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	retries := pgqueue.Retries{Attempts: 3, Delay: 20 * time.Millisecond}
	for _, name := range []string{"fails", "fails once", "permanent", "undecided", "panics", "exits", "hangs", "is late"} {
		enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte(name), Retries: retries, Timeout: 50 * time.Millisecond})
	}
	handlers := handler(func(ctx context.Context, task *pgqueue.Task) error {
		switch string(task.Args) {
		case "fails":
			return errBad
		case "fails once":
			if task.Attempt == 1 {
				return errBad
			}
		case "permanent":
			return errPermanent
		case "undecided":
			return errUndecided
		case "panics":
			panic("at the disco")
		case "exits":
			runtime.Goexit()
		case "hangs":
			<-ctx.Done()
			return ctx.Err()
		case "is late":
			<-ctx.Done()
		}
		return nil
	})
	work := handlers["work"]
	work.RetryIf = func(err error) bool {
		if err == errUndecided {
			panic(err)
		}
		return err != errPermanent
	}
	handlers["work"] = work
	run(t, db, handlers, &pgqueue.Config{Observer: e.observer(), Lease: time.Minute, Poll: 20 * time.Millisecond})
	for _, want := range []struct {
		args    string
		attempt int
		outcome queue.Outcome
		err     error
	}{
		{"fails", 3, queue.Failed, errBad},
		{"fails once", 2, queue.OK, nil},
		{"permanent", 1, queue.Failed, errPermanent},
		{"undecided", 1, queue.Panicked, queue.ErrPanic},
		{"panics", 1, queue.Panicked, queue.ErrPanic},
		{"exits", 1, queue.Panicked, queue.ErrPanic},
		{"hangs", 3, queue.TimedOut, queue.ErrTimeout},
		{"is late", 1, queue.OK, nil},
	} {
		for attempt := 1; attempt <= want.attempt; attempt++ {
			s := next(t, e.started)
			require.Equal(t, want.args, string(s.Args), "nothing overtakes it")
			require.Equal(t, attempt, s.Attempt)
			if attempt < want.attempt {
				r := next(t, e.retried)
				require.Positive(t, r.Pause)
				require.Error(t, r.Reason)
			}
		}
		f := next(t, e.finished)
		require.Equal(t, want.args, string(f.Args))
		require.Equal(t, want.outcome, f.Outcome)
		require.ErrorIs(t, f.Err, want.err)
	}
	empty(t, db)
}

// wrong is an error whose methods panic with a nil pointer.
type wrong struct{ err error }

func (w *wrong) Error() string { return w.err.Error() }

func (w *wrong) Unwrap() error { return w.err }

// sorry is an error whose Unwrap panics with a nil pointer, and whose Error does not.
type sorry struct{ *wrong }

func (sorry) Error() string { return "sorry" }

// A panic in a method of a handler's error ends the action as Panicked, like one of the handler.
func TestErrorPanics(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	for _, attempts := range []int{1, 2} {
		for _, name := range []string{"error", "unwrap"} {
			enqueue(t, db, pgqueue.Action{
				Keys: []string{"a"}, Args: []byte(name), Timeout: 10 * time.Millisecond, Retries: pgqueue.Retries{Attempts: attempts},
			})
		}
	}
	run(t, db, handler(func(ctx context.Context, task *pgqueue.Task) error {
		if string(task.Args) == "unwrap" {
			<-ctx.Done() // the worker looks for the reason in the error
			return sorry{}
		}
		return (*wrong)(nil)
	}), &pgqueue.Config{Observer: e.observer()})
	for range 4 {
		f := next(t, e.finished)
		require.Equal(t, queue.Panicked, f.Outcome, "%s", f.Args)
		require.ErrorContains(t, f.Err, "nil pointer")
		require.NotEmpty(t, f.Err.(*queue.PanicError).Stack)
	}
	require.Empty(t, e.retried)
	empty(t, db)
}

// The cause of the context of Run may be such an error. The action is put back.
func TestCausePanics(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	w, err := pgqueue.New(db, handler(func(ctx context.Context, _ *pgqueue.Task) error {
		<-ctx.Done()
		return ctx.Err()
	}), &pgqueue.Config{Observer: e.observer()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	next(t, e.started)
	cancel((*wrong)(nil))
	require.ErrorIs(t, next(t, ended), context.Canceled)
}

// In the pause between two attempts an action shows its error, and gives back its share.
func TestRetryPause(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Class: "aws", Retries: pgqueue.Retries{Attempts: 2, Delay: time.Hour, MaxDelay: time.Hour}})
	enqueue(t, db, pgqueue.Action{Keys: []string{"b"}, Class: "aws"})
	run(t, db, handler(func(_ context.Context, task *pgqueue.Task) error {
		if task.Keys[0] == "a" {
			return errBad
		}
		return nil
	}), &pgqueue.Config{Observer: e.observer(), Classes: map[string]int{"aws": 1}})
	require.Equal(t, []string{"b"}, next(t, e.finished).Keys)
	list := inspect(t, db, "a")
	require.Len(t, list, 1)
	require.Equal(t, "retrying", list[0].State)
	require.Equal(t, "bad", list[0].Error)
	require.Equal(t, 1, list[0].Attempt)
	require.Equal(t, 2, list[0].Retries.Attempts)
	require.Zero(t, list[0].Token)
	require.Greater(t, time.Until(list[0].At), 30*time.Minute)
	cancel(t, db, list[0].ID)
	empty(t, db)
}

// A delayed action holds up nothing, and takes its place when its delay is over.
func TestDelay(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	gate := make(chan struct{})
	late := enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("late"), Delay: time.Hour})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("delayed"), Delay: 300 * time.Millisecond})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("first")})
	run(t, db, handler(func(_ context.Context, task *pgqueue.Task) error {
		if string(task.Args) == "first" {
			<-gate
		}
		return nil
	}), &pgqueue.Config{Observer: e.observer(), Poll: 50 * time.Millisecond, Lease: time.Hour})
	require.Equal(t, "first", string(next(t, e.started).Args))
	states := func() (states []string) {
		list := inspect(t, db, "a")
		for _, i := range list {
			states = append(states, i.State)
		}
		return states
	}
	require.Eventually(t, func() bool { return states()[1] == "waiting" }, patience, 10*time.Millisecond, "it has entered")
	require.Equal(t, []string{"running", "waiting", "delayed"}, states())
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("last")})
	close(gate)
	for _, want := range []string{"first", "delayed", "last"} {
		require.Equal(t, want, string(next(t, e.finished).Args))
	}
	cancel(t, db, late)
	empty(t, db)
}

// A key that no index can hold would fail each entry of a delayed action, and hold up all later
// ones. Enqueue refuses it. The longest key that it accepts fits into the indexes.
func TestLongKey(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	random := make([]byte, 512)                     // PostgreSQL compresses other text
	_, _ = rand.NewChaCha8([32]byte{}).Read(random) // it never fails
	longest := hex.EncodeToString(random)
	for _, delay := range []time.Duration{0, time.Millisecond} {
		_, err := pgqueue.Enqueue(t.Context(), db, &pgqueue.Action{Keys: []string{"a", longest + "0"}, Name: "work", Delay: delay})
		require.ErrorIs(t, err, queue.ErrInvalid, "with delay %v", delay)
		enqueue(t, db, pgqueue.Action{Keys: []string{longest}, Delay: delay})
		enqueue(t, db, pgqueue.Action{Keys: []string{"other"}, Delay: 2 * delay})
	}
	run(t, db, handler(nothing), &pgqueue.Config{Observer: e.observer(), Poll: 50 * time.Millisecond})
	for range 4 {
		require.Equal(t, queue.OK, next(t, e.finished).Outcome)
	}
	empty(t, db)
}

// A producer that is slow to commit holds up the delayed actions of its key, and no others.
func TestDelayDuringSlowCommit(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	tx, err := db.Begin()
	require.NoError(t, err)
	defer tx.Rollback()
	enqueue(t, tx, pgqueue.Action{Keys: []string{"a"}, Args: []byte("slow")})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("delayed"), Delay: time.Millisecond})
	enqueue(t, db, pgqueue.Action{Keys: []string{"b"}, Args: []byte("other"), Delay: 2 * time.Millisecond})
	run(t, db, handler(nothing), &pgqueue.Config{Observer: e.observer(), Lease: time.Hour})
	require.Equal(t, "other", string(next(t, e.finished).Args))
	require.NoError(t, tx.Commit())
	require.Equal(t, "slow", string(next(t, e.finished).Args))
	require.Equal(t, "delayed", string(next(t, e.finished).Args))
	empty(t, db)
}

// Producers of one key that are never without one another do not keep a delayed action of the key
// from its lane for ever.
func TestDelayAmongSlowProducers(t *testing.T) {
	_, db := database(t)
	id := enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("delayed"), Delay: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	var producers errgroup.Group
	defer func() { assert.NoError(t, producers.Wait()) }()
	defer stop()
	for range 6 { // one has the lane, and five wait for it
		producers.Go(func() error {
			for ctx.Err() == nil {
				err := slowly(ctx, db, &pgqueue.Action{Keys: []string{"a"}, Name: "work"}, 50*time.Millisecond)
				if ctx.Err() == nil && err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.Eventually(t, func() bool { return len(inspect(t, db, "a")) > 6 }, patience, 10*time.Millisecond)
	gate := make(chan struct{})
	defer close(gate)
	run(t, db, handler(func(ctx context.Context, _ *pgqueue.Task) error { <-gate; return nil }), nil)
	require.Eventually(t, func() bool {
		for _, i := range inspect(t, db, "a") {
			if i.ID == id {
				return i.State == "waiting"
			}
		}
		return false
	}, patience, 100*time.Millisecond, "it has entered")
}

// slowly enqueues an action in a transaction that holds the lane for a time.
func slowly(ctx context.Context, db *sql.DB, a *pgqueue.Action, holds time.Duration) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := pgqueue.Enqueue(ctx, tx, a); err != nil {
		return err
	}
	time.Sleep(holds)
	return tx.Commit()
}

// An action without a handler is put back with an error, and runs when a worker has one.
func TestNoHandler(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Name: "new", Retries: pgqueue.Retries{Attempts: 1}})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	stop := run(t, db, handler(nothing), &pgqueue.Config{Owner: "old", Observer: e.observer(), Lease: time.Hour})
	due := func() { execute(t, db, "UPDATE interlock_queue_actions SET at = now() WHERE name = 'new'") } // it is put back for a lease
	require.ErrorIs(t, next(t, e.retried).Reason, pgqueue.ErrNoHandler)
	due()
	require.ErrorIs(t, next(t, e.retried).Reason, pgqueue.ErrNoHandler)
	require.ErrorIs(t, stop(), context.Canceled)
	list := inspect(t, db, "a")
	require.Len(t, list, 2)
	require.Zero(t, list[0].Attempt)
	require.Equal(t, `pgqueue: no handler: "new" in worker old`, list[0].Error)
	require.Empty(t, e.started)
	due()
	run(t, db, map[string]pgqueue.Handler{"new": {Run: nothing}, "work": {Run: nothing}}, &pgqueue.Config{Observer: e.observer()})
	require.Equal(t, "new", next(t, e.finished).Name)
	require.Equal(t, "work", next(t, e.finished).Name)
}

// Cancel removes an action in the middle of its lanes, and not one that runs.
func TestCancel(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	gate := make(chan struct{})
	first := enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	middle := enqueue(t, db, pgqueue.Action{Keys: []string{"a", "b"}})
	enqueue(t, db, pgqueue.Action{Keys: []string{"b"}})
	last := enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	run(t, db, handler(func(context.Context, *pgqueue.Task) error { <-gate; return nil }), &pgqueue.Config{Observer: e.observer(), Poll: time.Hour})
	require.Equal(t, first, next(t, e.started).ID)
	for id, want := range map[int64]bool{first: false, middle: true, 1 << 40: false} {
		removed, err := pgqueue.Cancel(t.Context(), db, id)
		require.NoError(t, err)
		require.Equal(t, want, removed)
	}
	require.Equal(t, []string{"b"}, next(t, e.started).Keys)
	require.Empty(t, e.started)
	close(gate)
	require.Equal(t, last, next(t, e.started).ID)
	idle(t, db)
}

// Settle writes in the transaction of the end. Its errors and panics undo the end, and so does
// an error of the transaction that it ignores. The errors name the action.
func TestSettle(t *testing.T) {
	_, db := database(t)
	execute(t, db, effect)
	e := newEvents()
	calls := 0
	errs := make(chan error, 100)
	observer := e.observer()
	observer.Error = func(_ context.Context, err error) { errs <- err }
	id := enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("1")})
	run(t, db, map[string]pgqueue.Handler{"work": {Run: nothing, Settle: func(ctx context.Context, tx *sql.Tx, task *pgqueue.Task, o queue.Outcome, err error) error {
		calls++
		if failed := settle(ctx, tx, task, o, err); failed != nil {
			return failed
		}
		switch calls {
		case 1:
			return errBad
		case 2:
			panic("oops")
		case 3:
			runtime.Goexit()
		case 4:
			_, _ = tx.ExecContext(ctx, "no statement")
		case 5:
			return tx.Rollback()
		}
		return nil
	}}}, &pgqueue.Config{Observer: observer})
	for _, want := range []string{"pgqueue: settle: bad", "panic in action: oops", "runtime.Goexit", "transaction is aborted", "already been committed"} {
		err := next(t, errs)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, fmt.Sprintf(`: at the end of action %d, "work" of ["a"]`, id))
	}
	require.Equal(t, 1, next(t, e.finished).Attempt)
	require.Equal(t, []string{"1"}, effects(t, db, "a"))
	require.Equal(t, 6, calls)
}

// When a worker stops, its handlers' contexts end, and what they did not complete is put
// back. A success counts.
func TestStop(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}, Args: []byte("fails")})
	enqueue(t, db, pgqueue.Action{Keys: []string{"b"}, Args: []byte("succeeds")})
	once := enqueue(t, db, pgqueue.Action{Keys: []string{"c"}, Args: []byte("fails"), Retries: pgqueue.Retries{Attempts: 1}})
	stop := run(t, db, handler(func(ctx context.Context, task *pgqueue.Task) error {
		<-ctx.Done()
		if string(task.Args) == "fails" {
			return errBad
		}
		return nil
	}), &pgqueue.Config{Observer: e.observer(), Lease: time.Hour})
	for range 3 {
		next(t, e.started)
	}
	require.ErrorIs(t, stop(), context.Canceled)
	require.Equal(t, []string{"b"}, next(t, e.finished).Keys)
	require.Empty(t, e.finished)
	other := newEvents()
	run(t, db, handler(nothing), &pgqueue.Config{Observer: other.observer()})
	for range 2 {
		f := next(t, other.finished)
		require.Equal(t, 2, f.Attempt)
		if f.ID == once {
			require.Equal(t, queue.Failed, f.Outcome)
			require.ErrorIs(t, f.Err, pgqueue.ErrInterrupted)
		} else {
			require.Equal(t, queue.OK, f.Outcome)
		}
	}
}

// The error of Run matches the error of the context, and its cause.
func TestRunError(t *testing.T) {
	_, db := database(t)
	w, err := pgqueue.New(db, nil, nil)
	require.NoError(t, err)
	for cause, text := range map[error]string{nil: "pgqueue: run: context canceled", errBad: "pgqueue: run: context canceled: bad"} {
		t.Run(text, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.Run(ctx) }()
			listening(t, db, 1)
			cancel(cause)
			err := next(t, ended)
			require.ErrorIs(t, err, context.Canceled)
			require.EqualError(t, err, text)
			if cause != nil {
				require.ErrorIs(t, err, cause)
			}
			listening(t, db, 0)
			require.EqualError(t, w.Run(ctx), text, "a context that has ended before")
		})
	}
}

// Run does not wait for ever for a handler that ignores its context.
func TestStopOfABusyWorker(t *testing.T) {
	_, db := database(t)
	e := newEvents()
	gate, returned := make(chan struct{}), make(chan struct{})
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	stop := run(t, db, handler(func(context.Context, *pgqueue.Task) error {
		<-gate
		close(returned)
		return nil
	}), &pgqueue.Config{Observer: e.observer(), Lease: 2 * time.Second}) // a busy machine needs part of it to connect
	first := next(t, e.started)
	require.ErrorIs(t, stop(), queue.ErrNotDrained)
	run(t, db, handler(nothing), &pgqueue.Config{Observer: e.observer()})
	require.Greater(t, next(t, e.finished).Token, first.Token, "it runs elsewhere after its lease")
	close(gate)
	<-returned
	require.Empty(t, e.finished)
}

func TestInvalid(t *testing.T) {
	db := sql.OpenDB(nil)
	defer db.Close()
	key := []string{"a"}
	const text, class = "not UTF-8 without NUL", "an empty part, or a part *, in path "
	for name, c := range map[string]struct {
		action *pgqueue.Action
		want   queue.InvalidError
	}{
		"nothing":               {nil, queue.InvalidError{Field: "Action", Problem: "nil"}},
		"no keys":               {&pgqueue.Action{Name: "x"}, queue.InvalidError{Field: "Keys", Problem: "none"}},
		"no name":               {&pgqueue.Action{Keys: key}, queue.InvalidError{Field: "Name", Problem: "empty"}},
		"empty part of a class": {&pgqueue.Action{Keys: key, Name: "x", Class: "a//b"}, queue.InvalidError{Field: "Class", Problem: class + "a//b"}},
		// It would be counted as a class, and as the limit of other classes.
		"class is a star":      {&pgqueue.Action{Keys: key, Name: "x", Class: "*"}, queue.InvalidError{Field: "Class", Problem: class + "*"}},
		"class ends in a star": {&pgqueue.Action{Keys: key, Name: "x", Class: "a/*"}, queue.InvalidError{Field: "Class", Problem: class + "a/*"}},
		"class has a star":     {&pgqueue.Action{Keys: key, Name: "x", Class: "a/*/b"}, queue.InvalidError{Field: "Class", Problem: class + "a/*/b"}},
		"long class":           {&pgqueue.Action{Keys: key, Name: "x", Class: strings.Repeat("a/", 512) + "a"}, queue.InvalidError{Field: "Class", Problem: "more than 1,024 bytes"}},
		// What PostgreSQL cannot keep would end the caller's transaction.
		"key with NUL":    {&pgqueue.Action{Keys: []string{"a", "b\x00"}, Name: "x"}, queue.InvalidError{Field: "Keys", Problem: text}},
		"key not UTF-8":   {&pgqueue.Action{Keys: []string{"\xff", "a"}, Name: "x"}, queue.InvalidError{Field: "Keys", Problem: text}},
		"name with NUL":   {&pgqueue.Action{Keys: key, Name: "x\x00"}, queue.InvalidError{Field: "Name", Problem: text}},
		"class not UTF-8": {&pgqueue.Action{Keys: key, Name: "x", Class: "\xff"}, queue.InvalidError{Field: "Class", Problem: text}},
		"delay":           {&pgqueue.Action{Keys: key, Name: "x", Delay: -1}, queue.InvalidError{Field: "Delay", Problem: "negative"}},
		"timeout":         {&pgqueue.Action{Keys: key, Name: "x", Timeout: -1}, queue.InvalidError{Field: "Timeout", Problem: "negative"}},
		"attempts":        {&pgqueue.Action{Keys: key, Name: "x", Retries: pgqueue.Retries{Attempts: -1}}, queue.InvalidError{Field: "Retries", Problem: "a negative number"}},
		"pause":           {&pgqueue.Action{Keys: key, Name: "x", Retries: pgqueue.Retries{MaxDelay: -1}}, queue.InvalidError{Field: "Retries", Problem: "a negative number"}},
	} {
		t.Run("action "+name, func(t *testing.T) {
			_, err := pgqueue.Enqueue(t.Context(), db, c.action)
			require.Equal(t, &c.want, err)
		})
	}
	for name, c := range map[string]struct {
		config *pgqueue.Config
		want   queue.InvalidError
	}{
		"running actions":       {&pgqueue.Config{MaxRunning: -1}, queue.InvalidError{Field: "MaxRunning", Problem: "negative"}},
		"negative lease":        {&pgqueue.Config{Lease: -1}, queue.InvalidError{Field: "Lease", Problem: "less than 10 milliseconds"}},
		"short lease":           {&pgqueue.Config{Lease: time.Microsecond}, queue.InvalidError{Field: "Lease", Problem: "less than 10 milliseconds"}},
		"poll":                  {&pgqueue.Config{Poll: -1}, queue.InvalidError{Field: "Poll", Problem: "negative"}},
		"limit of zero":         {&pgqueue.Config{Classes: map[string]int{"a": 0}}, queue.InvalidError{Field: "Classes", Problem: "no positive limit of a"}},
		"class ends in a slash": {&pgqueue.Config{Classes: map[string]int{"a/": 1}}, queue.InvalidError{Field: "Classes", Problem: "an empty part, or one below *, in path a/"}},
		"class has a star":      {&pgqueue.Config{Classes: map[string]int{"a/*/b": 1}}, queue.InvalidError{Field: "Classes", Problem: "an empty part, or one below *, in path a/*/b"}},
		// Each claim would fail.
		"class with NUL":  {&pgqueue.Config{Classes: map[string]int{"a\x00": 1}}, queue.InvalidError{Field: "Classes", Problem: `path "a\x00" is ` + text}},
		"owner not UTF-8": {&pgqueue.Config{Owner: "\xff"}, queue.InvalidError{Field: "Owner", Problem: text}},
	} {
		t.Run("config "+name, func(t *testing.T) {
			_, err := pgqueue.New(db, nil, c.config)
			require.Equal(t, &c.want, err)
		})
	}
	_, err := pgqueue.New(db, map[string]pgqueue.Handler{"x": {}}, nil)
	require.Equal(t, &queue.InvalidError{Field: "handlers", Problem: "no Run of x"}, err)
	// A worker listens on one connection as long as it runs: with one, it never starts an action.
	db.SetMaxOpenConns(3)
	_, err = pgqueue.New(db, handler(nothing), nil)
	require.Equal(t, &queue.InvalidError{Field: "db", Problem: "a pool of 3 connections, less than 4"}, err)
	db.SetMaxOpenConns(4)
	_, err = pgqueue.New(db, handler(nothing), nil)
	require.NoError(t, err)
}

// A claim is durable before its action runs, whatever the default of the connection: a server
// that lost it could give its token to another run.
func TestClaimIsDurable(t *testing.T) {
	_, db := database(t)
	enqueue(t, db, pgqueue.Action{Keys: []string{"a"}})
	tx, err := db.Begin()
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback()) }()
	execute(t, tx, "SET LOCAL synchronous_commit = off")
	execute(t, tx, "SELECT interlock_queue_claim('worker', 60000000, '{}', '{}', 1)")
	mode := ""
	require.NoError(t, tx.QueryRow("SHOW synchronous_commit").Scan(&mode))
	require.Equal(t, "on", mode)
}

// A late end waits for a lane while its action is given to another worker. It changes
// nothing, also if a lane has gone meanwhile.
func TestLateEnd(t *testing.T) {
	_, db := database(t)
	id := enqueue(t, db, pgqueue.Action{Keys: []string{"a", "b"}})
	execute(t, db, "UPDATE interlock_queue_actions SET token = 1")
	tx, err := db.Begin()
	require.NoError(t, err)
	enqueue(t, tx, pgqueue.Action{Keys: []string{"a"}})
	late := make(chan bool, 1)
	go func() {
		var done bool
		if err := db.QueryRow("SELECT interlock_queue_leave($1, 1)", id).Scan(&done); err == nil {
			late <- done
		}
	}()
	awaitLock(t, db)
	execute(t, db, "UPDATE interlock_queue_actions SET token = 2")
	require.NoError(t, tx.Commit())
	require.False(t, next(t, late))
	lanes := func() (lanes string) {
		require.NoError(t, db.QueryRow("SELECT coalesce(string_agg(key || n, ' ' ORDER BY key), '') FROM interlock_queue_lanes").Scan(&lanes))
		return lanes
	}
	require.Equal(t, "a2 b1", lanes())
	removed := false
	require.NoError(t, db.QueryRow("SELECT interlock_queue_leave($1, 2)", id).Scan(&removed))
	require.True(t, removed)
	require.Equal(t, "a1", lanes())
	run(t, db, handler(nothing), nil)
	idle(t, db)
}
