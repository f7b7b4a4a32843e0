package lifecycle_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestObserverOfTimes: the observer receives the time in each state, the duration of
// operations, their failed attempts, and sweeps.
func TestObserverOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		notef := func(format string, args ...any) { log.note(fmt.Sprintf(format, args...)) }
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
			Handlers: map[string]lifecycle.Handler{"boot": failing(new(calls), 1)},
			Observer: lifecycle.Observer{
				Changed:  func(_ context.Context, e lifecycle.CommittedChange) { notef("%s %v", e.From, e.InState) },
				Finished: func(_ context.Context, e lifecycle.Finished) { notef("finished %s %v %v", e.Event, e.Took, e.Err) },
				Retried: func(_ context.Context, e lifecycle.FailedAttempt) {
					notef("retried %s %d %v %v", e.Event, e.Attempt, e.Err, e.Pause)
				},
				Swept: func(_ context.Context, e lifecycle.Swept) {
					notef("swept %s %d %v %v", e.Machine, len(e.Results), e.Took, e.Err)
				},
			},
		})
		create(t, m, "a", "create", user, size{N: 1})
		time.Sleep(30 * time.Second)
		require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "done", "worker", ""))
		time.Sleep(time.Hour)
		wait(t, do(t, m, "a", "start", user, lifecycle.Work{
			Handler: "boot", Retries: lifecycle.Retries{Attempts: 2, Delay: 1},
		}, nil))
		fire(t, m, "a", "stop", user, nil)
		time.Sleep(2 * time.Minute)
		sweep(t, m)
		require.Equal(t, []string{
			" 0s", "creating 30s", "stopped 1h0m0s", "retried start 1 boom: 0 more 1ns", "starting 2.000000001s",
			"finished start 2.000000001s <nil>", "running 0s", "stopping 2m0s", "swept work-vm 1 0s <nil>",
		}, log.list)

		override(t, m, "a", "none", user, "nothing uses it", nil)
		time.Sleep(time.Hour)
		create(t, m, "a", "create", user, size{N: 1})
		require.Equal(t, " 0s", log.list[len(log.list)-1], "a new object")

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := m.Sweep(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.Contains(t, log.list[len(log.list)-1], "swept work-vm 0 0s lifecycle: sweep work-vm: context canceled")
	})
}

// TestObserverOfTheStore: the observer receives every call of the store, also those that
// meet a conflict and are repeated.
func TestObserverOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Observer: lifecycle.Observer{
			Stored: func(_ context.Context, e lifecycle.StoreCall) {
				log = append(log, fmt.Sprintf("%s %s %v %v", e.Machine, e.Call, e.Took, lifecycle.Problem(e.Err).Code))
			},
		}})
		create(t, m, "a", "create", user, size{N: 1})
		require.Equal(t, []string{"work-vm get 0s ok", "work-vm commit 0s ok"}, log)

		require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "done", "worker", ""))
		fire(t, m, "a", "start", user, nil)
		require.Equal(t, lifecycle.Applied, report(t, m, "a", 2, "done", "worker", ""))
		fire(t, m, "a", "reboot", user, nil)
		log = nil
		store.reset()
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			time.Sleep(time.Second)
			if n == 1 {
				other := workers(store.MemoryStore, lifecycle.Config[event]{})
				require.Equal(t, lifecycle.Applied, report(t, other, "a", 3, "progress", "worker", ""))
			}
			return write()
		}
		require.Equal(t, lifecycle.Applied, report(t, m, "a", 3, "done", "worker", ""))
		require.Equal(t, []string{
			"work-vm get 0s ok", "work-vm commit 1s conflict", "work-vm get 0s ok", "work-vm commit 1s ok",
		}, log)

		log = nil
		_, err := m.List(t.Context(), lifecycle.Select[state]{})
		require.NoError(t, err)
		require.Equal(t, []string{"work-vm list 0s ok"}, log)
	})
}

// TestStoredPanicsAtAdmission: the observer panics after the commit of an admission. The
// operation ends at once. If the commit may have been written, sweeps find the object.
func TestStoredPanicsAtAdmission(t *testing.T) {
	for name, unknown := range map[string]bool{"written": false, "unknown outcome": true} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			owner := join(t, store, "p", time.Hour)
			armed := false
			m := workers(store, lifecycle.Config[event]{Owner: owner, Observer: lifecycle.Observer{
				Stored: func(_ context.Context, e lifecycle.StoreCall) {
					if e.Call == "commit" && armed {
						armed = false
						panic("the observer")
					}
				},
			}})
			running(t, m, "a")
			store.reset()
			if unknown {
				store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
					if n == 1 {
						return store.lose(t, c)
					}
					return lifecycle.ErrUnknownOutcome
				}
			}
			armed = true
			work := lifecycle.Func(func(context.Context) error { t.Error("it ran"); return nil })
			require.PanicsWithValue(t, "the observer", func() { _, _ = m.Do(t.Context(), "a", "inspect", user, work, nil) })
			store.reset()
			found := sweep(t, m)
			require.Len(t, found, 1)
			require.Equal(t, lifecycle.NeedsOperator, found[0].Resolution)
			require.NoError(t, owner.Leave(t.Context()))
		})
	}
}

// TestObserverAllocations: an observer whose functions are nil, also after Tee, costs no
// allocation.
func TestObserverAllocations(t *testing.T) {
	perFire := func(o lifecycle.Observer) float64 {
		m := lifecycle.Must(benchVM, &lifecycle.MemoryStore{KeepHistory: 1}, &lifecycle.Config[event]{Observer: o})
		add(t, m, "a", "user", size{})
		return testing.AllocsPerRun(100, func() {
			for _, e := range []event{"go", "done"} {
				actor := map[event]fsm.Actor{"go": "user", "done": "worker"}[e]
				_, err := m.Fire(t.Context(), "a", e, actor, nil)
				must0(err)
			}
		})
	}
	none := perFire(lifecycle.Observer{})
	require.LessOrEqual(t, perFire(lifecycle.Tee(lifecycle.Observer{}, lifecycle.Tee(), lifecycle.Observer{})), none)
	all := lifecycle.Observer{
		Changed: func(context.Context, lifecycle.CommittedChange) {},
		Stored:  func(context.Context, lifecycle.StoreCall) {},
	}
	require.LessOrEqual(t, perFire(lifecycle.Tee(all, all)), none, "events are values")
}
