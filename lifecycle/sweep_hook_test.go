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

// TestObservedDeadline: Observe returns the deadline's own event. The sweep takes
// the deadline row as if there were no Observe. If the row does the work again, the
// work runs.
func TestObservedDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := lifecycle.NewMemoryStore()
		m := dying(t, store, store)
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Named("reboot", nil), nil)
		time.Sleep(time.Minute + 1)
		n := workers(store, lifecycle.Config[event]{
			Handlers: map[string]lifecycle.Handler{"reboot": log.handler("again")},
			Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) {
				return "late", fsm.Sweeper, nil
			},
		})
		found := sweep(t, n)
		synctest.Wait()
		require.Len(t, found, 1)
		require.Equal(t, lifecycle.Redone, found[0].Resolution, "%v", found[0])
		require.Equal(t, []string{"again "}, log.list)
		require.Equal(t, "running", stored(t, store, "a").State)
	})
}

// TestObservedByAnActor: Observe returns the deadline's event by an actor that has a row of it.
// The object moves as by that actor.
func TestObservedByAnActor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := lifecycle.Must(lease, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{
			Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) { return "end", agent, nil },
		})
		_, err := m.Add(t.Context(), "a", "Active", user, size{}, nil)
		require.NoError(t, err)
		fire(t, m, "a", "end", user, nil)
		time.Sleep(time.Minute + 1)
		require.Len(t, sweep(t, m), 1)
		require.Equal(t, agent, get(t, m, "a").Actor)
	})
}

// TestRunReportsTheLastSweep: Run also reports what a sweep has done before its
// context ended.
func TestRunReportsTheLastSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := lifecycle.Must(sizedVM, store, nil)
		for _, id := range []string{"a", "b"} {
			create(t, m, id, "create", user, size{})
		}
		time.Sleep(time.Hour + 1)
		ctx, stop := context.WithCancelCause(t.Context())
		store.reset()
		store.onCommit = func(_ int, _ *lifecycle.Commit, write func() error) error {
			defer stop(errBoom)
			return write()
		}
		var reported []lifecycle.SweepResult
		err := lifecycle.Run(ctx, time.Minute, func(cases []lifecycle.SweepResult, err error) {
			require.ErrorIs(t, err, errBoom)
			reported = append(reported, cases...)
		}, m)
		require.NoError(t, err)
		require.Len(t, reported, 1)
		require.Equal(t, lifecycle.Moved, reported[0].Resolution)
	})
}

// TestSweepMeetsAnotherConflict: BeforeCommit, or Config.Observe, has met a conflict of another
// object. No writer has moved the object itself.
func TestSweepMeetsAnotherConflict(t *testing.T) {
	other := &lifecycle.ConflictError{Current: lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "quota", ID: "q"}}}
	for name, config := range map[string]lifecycle.Config[event]{
		"BeforeCommit": {BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			if ch.To.Actor == fsm.Sweeper {
				return nil, other
			}
			return nil, nil
		}},
		"Observe": {Observe: func(context.Context, lifecycle.StoredRecord) (event, fsm.Actor, error) { return "", "", other }},
	} {
		inBubble(t, name, func(t *testing.T) {
			m := workers(lifecycle.NewMemoryStore(), config)
			running(t, m, "a")
			fire(t, m, "a", "stop", user, nil)
			time.Sleep(time.Minute + 1)
			found := sweep(t, m)
			require.Len(t, found, 1)
			require.Equal(t, lifecycle.NotMoved, found[0].Resolution)
			require.ErrorIs(t, found[0].Err, other)
			require.Equal(t, state("stopping"), get(t, m, "a").State)
		})
	}
}

// TestSweepBehindItself: the sweep does not start work again that waits for its turn
// in this process, however long the work in front of it hangs.
func TestSweepBehindItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		q := queue.Must[lifecycle.Key](nil)
		end := make(chan struct{})
		begun := 0
		m := workers(store, lifecycle.Config[event]{Queue: q, Handlers: map[string]lifecycle.Handler{
			"reboot": func(context.Context, []byte) error { begun++; <-end; return nil }, // deaf
		}})
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Named("reboot", nil), nil)
		time.Sleep(time.Minute + 1)
		require.Equal(t, lifecycle.Redone, sweep(t, m)[0].Resolution)
		for range 20 {
			time.Sleep(time.Minute + 1)
			found := sweep(t, m)
			require.Len(t, found, 1)
			require.Equal(t, `work-vm "a" in rebooting, operation 4: not moved, because deadline 2000-01-01T00:02:00Z has passed: lifecycle: its work waits for its turn in this process`, found[0].String())
		}
		require.Equal(t, 1, q.Stats().Waiting)
		close(end)
		synctest.Wait()
		require.Equal(t, 2, begun)
		require.Equal(t, "running", stored(t, store, "a").State)
		require.EqualValues(t, 4, stored(t, store, "a").Operation)
	})
}

// TestRedoneOrNot: the answer to starting the work again is lost for good. If it was
// written and the new state has no deadline, every sweep of this process reports
// that it needs an operator.
func TestRedoneOrNot(t *testing.T) {
	machine := fsm.Must[size](fsm.Spec[state, event]{
		Name: "job", Initial: "idle", Actors: []fsm.Actor{user, "worker"},
		States: []fsm.State[state]{
			{Name: "idle"},
			{Name: "trying", Kind: fsm.Transitional},
			{Name: "trying last", Kind: fsm.Transitional, Manual: "an operator looks"},
		},
		Rows: fsm.Rows(
			fsm.Move[state, event]("idle", "try", "trying").By(user),
			fsm.Return[state, event]("trying", "done").AlsoFrom("trying last").By("worker"),
			fsm.Move[state, event]("trying", "late", "trying last").After(time.Minute).Superseding(),
		),
	})
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		owner := join(t, store, "p", 24*time.Hour)
		config := &lifecycle.Config[event]{
			WorkerActor: "worker", Done: []event{"done"}, Handlers: map[string]lifecycle.Handler{"try": log.handler("try")},
			Owner: owner,
		}
		m := lifecycle.Must(machine, store, config)
		add(t, m, "a", user, size{})
		dead := join(t, store, "dead", time.Hour)
		theirs := *config
		theirs.Owner, theirs.Handlers = dead, map[string]lifecycle.Handler{"try": func(ctx context.Context, _ []byte) error { return untilEnded(ctx) }}
		do(t, lifecycle.Must(machine, store, &theirs), "a", "try", user, lifecycle.Named("try", nil), nil)
		time.Sleep(time.Minute + 1)
		synctest.Wait()
		store.reset()
		store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
			if n == 1 {
				return store.lose(t, c)
			}
			return lifecycle.ErrUnknownOutcome
		}
		found := sweep(t, m)
		require.Len(t, found, 1)
		require.ErrorIs(t, found[0].Err, lifecycle.ErrUnknownOutcome)
		store.reset()
		for range 3 {
			found = sweep(t, m)
			require.Len(t, found, 1)
			require.Equal(t, `job "a" in trying last, operation 2: needs an operator, because this process could not write the outcome: an operator looks`, found[0].String())
		}
		require.Empty(t, log.list)
		require.NoError(t, dead.Leave(t.Context()))
	})
}

// TestSweepOfTwoAtOnce: two sweeps of one process find the same object. One does the
// work again, the other reports a conflict, although the work waits.
func TestSweepOfTwoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		end := make(chan struct{})
		var inner []lifecycle.SweepResult
		var m *sizedManager
		m = workers(store, lifecycle.Config[event]{
			Handlers: map[string]lifecycle.Handler{"reboot": func(context.Context, []byte) error { <-end; return nil }}, // deaf
			Observe: func(ctx context.Context, _ lifecycle.StoredRecord) (event, fsm.Actor, error) {
				if inner == nil {
					inner = []lifecycle.SweepResult{}
					found, err := m.Sweep(ctx)
					require.NoError(t, err)
					inner = found
				}
				return "", "", nil
			},
		})
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Named("reboot", nil), nil)
		time.Sleep(time.Minute + 1)
		outer := sweep(t, m)
		require.Equal(t, lifecycle.Redone, inner[0].Resolution)
		require.Equal(t, lifecycle.Overtaken, outer[0].Resolution, "%v", outer[0])
		close(end)
	})
}
