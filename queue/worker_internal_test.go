package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A cancelled action is abandoned while its Settle hangs in the goroutine of Cancel. No worker
// is lost then, and none starts.
func TestAbandonedSettleIsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Must(&Config[string]{MaxRunning: 1})
		end := make(chan struct{})
		running, err := q.Submit(t.Context(), "a", &Action{Run: func(context.Context) error { <-end; return nil }})
		require.NoError(t, err)
		waiting, err := q.Submit(t.Context(), "b", &Action{
			Run:    func(context.Context) error { return nil },
			Settle: func(context.Context, Outcome, error) { <-end },
		})
		require.NoError(t, err)
		go waiting.Cancel(nil)
		synctest.Wait()
		require.True(t, q.Abandon("b"))
		q.mu.Lock()
		q.startWorkers()
		workers := q.workers
		q.mu.Unlock()
		close(end)
		require.NoError(t, running.Wait(t.Context()))
		require.Equal(t, 1, workers)
	})
}

// Abandon takes the goroutine in which the action hangs out of the workers only if it is one.
func TestAbandonCountsWorkers(t *testing.T) {
	cancel := func(_ *Queuer[string], t *Ticket[string]) { t.Cancel(nil) }
	abandon := func(q *Queuer[string], _ *Ticket[string]) { q.Abandon("a") }
	for name, c := range map[string]struct {
		paused      bool // the action waits
		runHangs    bool
		settleHangs bool
		before      func(*Queuer[string], *Ticket[string])
		strays      int
	}{
		"Run":                        {false, true, false, nil, 1},
		"Settle in a worker":         {false, false, true, nil, 1},
		"Settle in Cancel":           {true, false, true, cancel, 1},
		"Settle in the expiry timer": {true, false, true, nil, 1},
		"Run, and Settle in Abandon": {false, true, true, abandon, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := Must[string](nil)
				requireWorkers := func(n int) {
					q.mu.Lock()
					defer q.mu.Unlock()
					require.Equal(t, n, q.running())
					require.Equal(t, n, q.workers)
				}
				end := make(chan struct{})
				defer close(end)
				act := &Action{Run: func(context.Context) error { return nil }, QueueTimeout: time.Hour}
				if c.runHangs {
					act.Run = func(context.Context) error { <-end; return nil }
				}
				if c.settleHangs {
					act.Settle = func(context.Context, Outcome, error) { <-end }
				}
				if c.paused {
					require.NoError(t, q.PauseClass(""))
				}
				hangs, err := q.Submit(t.Context(), "a", act)
				require.NoError(t, err)
				synctest.Wait()
				if c.before != nil {
					go c.before(q, hangs)
				}
				time.Sleep(2 * time.Hour)
				require.NoError(t, q.ResumeClass(""))
				require.True(t, q.Abandon("a"))
				requireWorkers(0)
				require.Equal(t, Stats{Abandoned: c.strays}, q.Stats())
				_, err = q.Submit(t.Context(), "b", &Action{Run: func(context.Context) error { time.Sleep(time.Hour); return nil }})
				require.NoError(t, err)
				requireWorkers(1)
				time.Sleep(2 * time.Hour)
				requireWorkers(0)
			})
		})
	}
}

// The context of a long action ends with it, also if the worker takes an action next that
// started in the meantime, because a new worker did not run in time.
func TestContextEndsBeforeAnActionThatHasStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Must[string](nil)
		workers := func(add int) { // startWorkers starts none while there seems to be one more
			q.mu.Lock()
			defer q.mu.Unlock()
			q.workers += add
		}
		var long context.Context
		var next *Ticket[string]
		_, err := q.Submit(t.Context(), "a", &Action{Run: func(ctx context.Context) (err error) {
			long = ctx
			workers(1)
			defer workers(-1)
			next, err = q.Submit(ctx, "b", &Action{Run: func(context.Context) error { return long.Err() }})
			time.Sleep(contextAge)
			return err
		}})
		require.NoError(t, err)
		synctest.Wait()
		require.ErrorIs(t, next.Wait(t.Context()), context.Canceled)
	})
}
