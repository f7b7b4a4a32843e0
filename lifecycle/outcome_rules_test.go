package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// TestUnwrittenOutcomeIsObserved: the observer receives each attempt to write an outcome that
// fails for a reason which may go away.
func TestUnwrittenOutcomeIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused []error
		store, m := outage(t, lifecycle.Config[event]{Observer: lifecycle.Observer{
			Refused: func(_ context.Context, err error) { refused = append(refused, err) },
		}})
		ticket := do(t, m, "a", "start", user, sleeping(time.Second), nil)
		synctest.Wait()
		store.dead.Store(true)
		time.Sleep(time.Second + 20*time.Millisecond) // before the second attempt
		store.dead.Store(false)
		require.EqualValues(t, "running", wait(t, ticket).State)
		require.Len(t, refused, 1)
		failed, ok := errors.AsType[*lifecycle.Error](refused[0])
		require.True(t, ok)
		unwritten := outcomeError(t, failed.Err)
		require.ErrorIs(t, unwritten.Unwritten, errDead)
		require.Equal(t, lifecycle.Error{
			Verb: "outcome", Machine: "work-vm", ID: "a", From: "starting", Actor: "worker", Err: unwritten,
		}, *failed)
	})
}

// TestQueueEndsInAPause: the queue ends while work pauses before its next attempt. The error
// is that of the last attempt.
func TestQueueEndsInAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, end := context.WithCancel(context.Background())
		q := queue.Must(&queue.Config[lifecycle.Key]{Base: base})
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Work{
			Run:     func(context.Context) error { return errBoom },
			Retries: lifecycle.Retries{Attempts: 3, Delay: time.Minute},
		}, nil)
		synctest.Wait()
		end()
		failed := outcomeOf(t, ticket)
		require.ErrorIs(t, failed.Err, errBoom)
		require.Equal(t, state("stopped"), get(t, m, "a").State)
	})
}

// TestQueueEndsInAnOutage: the queue has ended when the outcome cannot be written. It is not
// written again.
func TestQueueEndsInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, end := context.WithCancel(context.Background())
		q := queue.Must(&queue.Config[lifecycle.Key]{Base: base})
		store, m := outage(t, lifecycle.Config[event]{Queue: q})
		ticket := do(t, m, "a", "start", user, lifecycle.Func(untilEnded), nil)
		synctest.Wait()
		store.dead.Store(true)
		end()
		began := time.Now()
		failed := outcomeOf(t, ticket)
		require.ErrorIs(t, failed.Unwritten, errDead)
		require.Zero(t, time.Since(began))
	})
}

// TestLostToARemoval: the object is removed while the work runs. The result has the record
// that the operation has left.
func TestLostToARemoval(t *testing.T) {
	for name, elsewhere := range map[string]bool{"by this manager": false, "by another process": true} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := workers(store, lifecycle.Config[event]{})
			stopped(t, m, "a")
			ticket := do(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
				select {
				case <-ctx.Done(): // this manager ends the work at once
				case <-time.After(time.Second):
				}
				return ctx.Err()
			}), nil)
			synctest.Wait()
			by := m
			if elsewhere {
				by = workers(store, lifecycle.Config[event]{})
			}
			override(t, by, "a", "none", user, "it burns", nil)
			rec, err := ticket.Wait(t.Context())
			require.Equal(t, lifecycle.Lost, outcomeError(t, err).Outcome)
			require.Equal(t, state("starting"), rec.State)
			require.Equal(t, size{N: 1}, rec.Payload)
		})
	}
}

// stages is a table whose first stage has no event for work that fails, and whose second one
// has.
var stages = fsm.Must[size](fsm.Spec[state, event]{
	Name: "staged", Initial: "idle", Actors: []fsm.Actor{user, agent, "worker"},
	States: []fsm.State[state]{
		{Name: "idle"},
		{Name: "first", Kind: fsm.Transitional},
		{Name: "second", Kind: fsm.Transitional},
		{Name: "late", Kind: fsm.Failed},
		{Name: "broken", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("idle", "go", "first").By(user),
		fsm.Move[state, event]("first", "next", "second").By(agent),
		fsm.Move[state, event]("first", "expire", "late").AlsoFrom("second").After(time.Hour),
		fsm.Move[state, event]("second", "fail", "broken").By("worker"),
		fsm.Move[state, event]("second", "done", "idle").By("worker"),
		fsm.Move[state, event]("late", "back", "idle").AlsoFrom("broken").By(user),
	),
})

// TestOutcomeIsChosenAgain: the outcome was to be the deadline row, by the sweeper. A peer's
// report moves the object before the commit, and the worker reports the outcome there.
func TestOutcomeIsChosenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := lifecycle.Must(stages, store, &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}, Failed: []event{"fail"}})
		add(t, m, "a", user, size{})
		peer := lifecycle.Must(stages, store.MemoryStore, nil)
		store.onCommit = func(_ int, c *lifecycle.Commit, commit func() error) error {
			if c.Changes[0].To.State == "late" {
				require.Equal(t, lifecycle.Applied, report(t, peer, "a", 1, "next", agent, ""))
			}
			return commit()
		}
		failed := outcomeOf(t, do(t, m, "a", "go", user, lifecycle.Func(func(context.Context) error { return errBoom }), nil))
		require.NoError(t, failed.Unwritten)
		require.Equal(t, state("broken"), get(t, m, "a").State)
		require.Equal(t, fsm.Actor("worker"), get(t, m, "a").Actor)
	})
}

// TestDeadlineIsCleared: a change moves the object of running work to a state without a
// deadline. The outcome is then written, however long the outage of the store is.
func TestDeadlineIsCleared(t *testing.T) {
	for name, elsewhere := range map[string]bool{"by this manager": false, "by another process": true} {
		inBubble(t, name, func(t *testing.T) {
			store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
			manager := func(store lifecycle.Store) *sizedManager {
				return lifecycle.Must(tripMachine, store, &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}})
			}
			m := manager(store)
			add(t, m, "a", user, size{})
			ticket := do(t, m, "a", "drive", user, sleeping(50*time.Second), nil)
			synctest.Wait()
			if elsewhere {
				fire(t, manager(store.MemoryStore), "a", "park", user, nil)
				sweep(t, m) // reads the records of running work
			} else {
				fire(t, m, "a", "park", user, nil)
			}
			store.dead.Store(true)
			time.Sleep(time.Hour)
			store.dead.Store(false)
			require.Equal(t, state("home"), wait(t, ticket).State)
		})
	}
}

// TestDeadlineIsReadOften: another process extends the deadline once, and this one reads it
// several times. The outcome is written again until that deadline, and no longer.
func TestDeadlineIsReadOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{
			"boot": func(context.Context, []byte) error { time.Sleep(40 * time.Second); return nil },
		}})
		running(t, m, "a")
		ticket := do(t, m, "a", "reboot", user, lifecycle.Named("boot", nil), nil)
		began := time.Now()
		time.Sleep(30 * time.Second)
		other := workers(store.MemoryStore, lifecycle.Config[event]{})
		require.Equal(t, lifecycle.Applied, report(t, other, "a", ticket.Operation(), "progress", "worker", ""))
		for range 5 {
			require.Empty(t, sweep(t, m))
		}
		store.dead.Store(true)
		require.ErrorIs(t, outcomeOf(t, ticket).Unwritten, errDead)
		require.Equal(t, 90*time.Second, time.Since(began).Round(time.Second))
	})
}
