package lifecycle_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestTwoSweepers: two sweepers find the same object. One of them moves it; the
// other reports a conflict or finds nothing.
func TestTwoSweepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		store := lifecycle.NewMemoryStore()
		dead := join(t, store, "dead", time.Second)
		m := workers(store, lifecycle.Config[event]{Owner: dead, Handlers: map[string]lifecycle.Handler{
			"reboot": func(ctx context.Context, _ []byte) error { return untilEnded(ctx) },
		}})
		const many = 50
		for i := range many {
			id := fmt.Sprint(i)
			running(t, m, id)
			do(t, m, id, "reboot", user, lifecycle.Named("reboot", []byte(id)), nil)
		}
		results := make(chan []lifecycle.SweepResult, 2)
		for i := range 2 {
			go func() {
				o := join(t, store, fmt.Sprint("sweeper ", i), time.Hour)
				n := workers(store, lifecycle.Config[event]{Owner: o, Handlers: map[string]lifecycle.Handler{"reboot": log.handler("again")}})
				results <- sweepFor(t, n, time.Second)
			}()
		}
		redone := 0
		for range 2 {
			for _, c := range <-results {
				if c.Resolution == lifecycle.Redone {
					redone++
				} else {
					require.Equal(t, lifecycle.Overtaken, c.Resolution, "%v", c)
				}
			}
		}
		synctest.Wait()
		require.Equal(t, many, redone)
		require.Len(t, log.list, many)
		for i := range many {
			require.Equal(t, 1, strings.Count(strings.Join(log.list, "\n")+"\n", fmt.Sprintf("again %d\n", i)))
		}
		require.ErrorIs(t, dead.Heartbeat(t.Context()), lifecycle.ErrStale)
	})
}

// TestTwoDeadOwners: one sweep declares both dead.
func TestTwoDeadOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		for id, name := range map[string]string{"a": "p", "b": "q"} {
			m := workers(store, lifecycle.Config[event]{Owner: join(t, store, name, time.Second)})
			running(t, m, id)
			do(t, m, id, "stop", user, sleeping(time.Minute), nil)
		}
		require.Len(t, sweepFor(t, workers(store, lifecycle.Config[event]{}), time.Second), 2)
		time.Sleep(time.Minute) // until the work has ended
	})
}

// sweeps is a Sweeper that calls a function.
type sweeps func() error

func (f sweeps) Sweep(context.Context) ([]lifecycle.SweepResult, error) { return nil, f() }

// TestRunVaries: the time between two sweeps is up to a fifth shorter or longer. A sweep that
// the end of the context has cut short, and that has no results, is not reported.
func TestRunVaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every, times = 10 * time.Second, 400
		ctx, stop := context.WithCancel(t.Context())
		began, last, n := time.Now(), time.Now(), 0
		shortest, longest := every, every
		require.NoError(t, lifecycle.Run(ctx, every, func(_ []lifecycle.SweepResult, err error) { require.NoError(t, err) }, sweeps(func() error {
			pause := time.Since(last)
			last = time.Now()
			require.InDelta(t, every, pause, float64(every/5))
			shortest, longest = min(shortest, pause), max(longest, pause)
			if n++; n == times {
				stop()
			}
			return ctx.Err()
		})))
		require.InDelta(t, every, time.Since(began)/times, float64(every/20))
		require.Less(t, shortest, every*9/10)
		require.Greater(t, longest, every*11/10)
	})
}

// TestWrongClock: a clock for which everything is late takes operations away too
// early, and corrupts nothing: what was taken away counts for nothing, what was
// not taken goes on.
func TestWrongClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &clocked{hooked: &hooked{MemoryStore: lifecycle.NewMemoryStore()}, every: true}
		o := join(t, store, "p", time.Hour)
		m := workers(store, lifecycle.Config[event]{Owner: o})
		for _, id := range []string{"a", "b"} {
			running(t, m, id)
		}
		a := do(t, m, "a", "stop", user, sleeping(time.Second), nil)
		synctest.Wait() // the turn begins with a commit
		found := sweep(t, workers(store, lifecycle.Config[event]{}))
		require.Len(t, found, 1)
		require.Equal(t, "running", found[0].To)
		require.Equal(t, lifecycle.Lost, outcomeOf(t, a).Outcome)
		require.Equal(t, state("running"), get(t, m, "b").State)
		require.NoError(t, o.Heartbeat(t.Context()), "the clock of the store ends no ownership")
		for _, id := range []string{"a", "b"} {
			path(t, workVM, "none", rowsOf(t, m, id, 0, 0))
		}
	})
}

// TestSweepErrors: a store that fails ends the sweep. Run reports what the sweep has
// done until then.
func TestSweepErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := lifecycle.Must(sizedVM, store, nil)
		for i := range 3 {
			create(t, m, fmt.Sprint(i), "create", user, size{})
		}
		time.Sleep(time.Hour + 1)
		ctx, stop := context.WithCancelCause(t.Context())
		store.reset()
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			if n == 2 {
				stop(errBoom)
				return lifecycle.Ended(ctx)
			}
			return write()
		}
		found, err := m.Sweep(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errBoom)
		require.Len(t, found, 2)
		require.Equal(t, lifecycle.NotMoved, found[1].Resolution)
		store.reset()
		require.Len(t, sweep(t, m), 2)

		require.NoError(t, store.Close())
		_, err = m.Sweep(t.Context())
		require.ErrorIs(t, err, lifecycle.ErrClosed)
		require.ErrorIs(t, lifecycle.Run(t.Context(), -1, nil, m), lifecycle.ErrInvalid)
	})
}
