package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// TestWorkWithMisconfigured: work that cannot be done is refused, also if other objects take
// part in the operation.
func TestWorkWithMisconfigured(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := workers(store, lifecycle.Config[event]{Owner: join(t, store, "p", 0)})
	stopped(t, m, "a")
	stopped(t, m, "b")
	other := workers(store, lifecycle.Config[event]{Owner: join(t, store, "q", 0)})
	before := all(t, store, "work-vm", "a", "b")
	_, err := doWith(t.Context(), m, "a", "start", user, lifecycle.Named("unknown", nil), nil, firing(m, "b", "start", user, nil))
	require.ErrorIs(t, err, lifecycle.ErrMisconfigured)
	_, err = doWith(t.Context(), m, "a", "start", user, lifecycle.Func(fine), nil, firing(other, "b", "start", user, nil))
	require.ErrorIs(t, err, lifecycle.ErrMisconfigured)
	require.ErrorContains(t, err, "the manager of work-vm has another Owner")
	require.Equal(t, before, all(t, store, "work-vm", "a", "b"))
}

// TestWorkWithContinues: another object's change continues an operation of a peer, which a sweep
// may start again. The peer's operation is not part of the work, so it needs no handler.
func TestWorkWithContinues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		running(t, m, "b")
		fire(t, m, "b", "reboot", user, nil)
		wait(t, doParts(t, m, "a", "start", user, lifecycle.Func(fine), nil, firing(m, "b", "progress", "worker", nil)))
		require.Equal(t, state("running"), get(t, m, "a").State)
		require.Equal(t, state("rebooting"), get(t, m, "b").State)
	})
}

// TestPreemptEndsTheOccupant: work that pre-empts ends the work that occupies the turn.
func TestPreemptEndsTheOccupant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		occupant := occupy(t, m, "a", "migrate", lifecycle.Func(untilEnded))
		synctest.Wait()
		wait(t, do(t, m, "a", "delete", user, lifecycle.Work{Run: fine, Preempt: queue.PreemptRunning}, nil))
		require.ErrorIs(t, occupant.Wait(t.Context()), queue.ErrPreempted)
		absent(t, m, "a")
	})
}

// TestOccupyForeign: no work starts for an object whose state the table does not have.
func TestOccupyForeign(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	foreignRow(t, store, "a", "melting", "melting", "")
	m := lifecycle.Must(sizedVM, store, nil)
	for _, while := range [][]state{nil, {"Ready"}} {
		_, err := lifecycle.Occupy(t.Context(), m, "a", "migrate", lifecycle.Func(fine), while...)
		require.ErrorIs(t, err, lifecycle.ErrForeign)
	}
}

// TestFullQueueOfAllKeys: the queue has no room for any object. The object is not read.
func TestFullQueueOfAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
			Queue: queue.Must(&queue.Config[lifecycle.Key]{MaxWaiting: 1}),
		})
		running(t, m, "a")
		first := occupy(t, m, "a", "migrate", sleeping(time.Minute))
		second := occupy(t, m, "a", "migrate", lifecycle.Func(fine))
		synctest.Wait()
		_, err := m.Do(t.Context(), "a", "create", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, queue.ErrFull)
		require.NotErrorIs(t, err, lifecycle.ErrExists)
		require.NoError(t, first.Wait(t.Context()))
		require.NoError(t, second.Wait(t.Context()))
	})
}

// TestEndedWhileOthersAreAdmitted: the caller's context ends while the commit of a request
// in front of the full queue is under way.
func TestEndedWhileOthersAreAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Queue: queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 1})})
		running(t, m, "a")
		store.reset()
		store.onCommit = func(n int, _ *lifecycle.Commit, commit func() error) error {
			if n == 1 {
				time.Sleep(time.Minute)
			}
			return commit()
		}
		admitted := make(chan *lifecycle.Ticket[state, size])
		go func() {
			ticket, _ := m.Do(context.Background(), "a", "stop", user, lifecycle.Func(fine), nil)
			admitted <- ticket
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ticket, err := m.Do(ctx, "a", "stop", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, queue.ErrFull)
		require.Nil(t, ticket)
		require.EqualValues(t, "stopped", wait(t, <-admitted).State)
	})
}

// TestTurnSetsTheDeadline: the operation of an object waits for its turn without a deadline,
// together with an object whose states have none. The turn sets the deadline.
func TestTurnSetsTheDeadline(t *testing.T) {
	calm := fsm.Must[size](fsm.Spec[state, event]{
		Name: "calm", Initial: "idle", Actors: []fsm.Actor{user, "worker"},
		States: []fsm.State[state]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional, Manual: "it takes as long as it takes"}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("idle", "go", "busy").By(user),
			fsm.Move[state, event]("busy", "done", "idle").By("worker"),
		),
	})
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		owner := join(t, store, "p", time.Hour)
		q, free := blocked(t, "work-vm")
		m := workers(store, lifecycle.Config[event]{Owner: owner, Queue: q})
		n := lifecycle.Must(calm, store, &lifecycle.Config[event]{Owner: owner, Queue: q, WorkerActor: "worker", Done: []event{"done"}})
		stopped(t, m, "a")
		add(t, n, "c", user, size{})
		ticket := doParts(t, m, "a", "start", user, sleeping(time.Second), nil, firing(n, "c", "go", user, nil))
		require.Zero(t, get(t, m, "a").Deadline)
		free()
		synctest.Wait()
		require.Equal(t, time.Minute, time.Until(get(t, m, "a").Deadline))
		wait(t, ticket)
		require.Equal(t, state("idle"), get(t, n, "c").State)
	})
}

// TestCanceledAttemptIsNotRepeated: work that is ended from outside has no further attempt,
// and the observer receives none.
func TestCanceledAttemptIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		retried := 0
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Observer: lifecycle.Observer{
			Retried: func(context.Context, lifecycle.FailedAttempt) { retried++ },
		}})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Work{Run: untilEnded, Retries: lifecycle.Retries{Attempts: 3}}, nil)
		synctest.Wait()
		ticket.Cancel(errBoom)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Canceled, failed.Outcome)
		require.Zero(t, retried)
	})
}

// TestTakenAwayBeforeItsStart: the reason why work did not start is in its error.
func TestTakenAwayBeforeItsStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &between{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{})
		stopped(t, m, "a")
		store.run = func() { fire(t, m, "a", "delete", user, nil) }
		store.armed.Store(true)
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error { t.Error("it ran"); return nil }), nil)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Lost, failed.Outcome)
		require.ErrorIs(t, failed, lifecycle.ErrStale)
	})
}
