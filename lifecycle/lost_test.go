package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// TestLost: the ways in which an operation is taken away from its work. The
// work's context ends, and nothing that it returns is written.
func TestLost(t *testing.T) {
	cases := map[string]struct {
		take func(t *testing.T, m, other *sizedManager)
		to   state
		last string
		ends bool // at once; another process is noticed at the next heartbeat, or at the end
	}{
		"by the deadline": {
			take: func(t *testing.T, m, _ *sizedManager) {
				time.Sleep(time.Minute + 1)
				require.Len(t, sweep(t, m), 1)
			},
			to: "stopped", last: "2: starting -late-> stopped by sweeper", ends: true,
		},
		"by the deadline, elsewhere": {
			take: func(t *testing.T, _, other *sizedManager) {
				time.Sleep(time.Minute + 1)
				require.Len(t, sweep(t, other), 1)
			},
			to: "stopped", last: "2: starting -late-> stopped by sweeper",
		},
		"by a delete": {
			take: func(t *testing.T, m, _ *sizedManager) {
				fire(t, m, "a", "delete", user, nil)
			},
			to: "deleting", last: "3: starting -delete-> deleting by user", ends: true,
		},
		"by an override": {
			take: func(t *testing.T, m, _ *sizedManager) {
				override(t, m, "a", "running", "ann", "it runs, I see it", nil)
			},
			to: "running", last: "3: starting -(override)-> running by ann", ends: true,
		},
		"by an override into the same state": {
			take: func(t *testing.T, m, _ *sizedManager) {
				override(t, m, "a", "starting", "ann", "begin anew", nil)
			},
			to: "starting", last: "3: starting -(override)-> starting by ann", ends: true,
		},
		"by a peer's report": {
			take: func(t *testing.T, m, _ *sizedManager) {
				require.Equal(t, lifecycle.Applied, report(t, m, "a", 2, "done", "worker", ""))
			},
			to: "running", last: "2: starting -done-> running by worker", ends: true,
		},
	}
	for name, c := range cases {
		for how, result := range map[string]error{"obeys": nil, "reports success": errDone, "fails": errBoom} {
			inBubble(t, name+" and the work "+how, func(t *testing.T) {
				store := lifecycle.NewMemoryStore()
				m, other := workers(store, lifecycle.Config[event]{}), workers(store, lifecycle.Config[event]{})
				stopped(t, m, "a")
				end := make(chan struct{})
				ticket := do(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
					select {
					case <-ctx.Done():
						require.True(t, c.ends)
						require.ErrorIs(t, context.Cause(ctx), lifecycle.ErrStale)
					case <-end:
						require.ErrorIs(t, lifecycle.TaskOf(ctx).Heartbeat(ctx), lifecycle.ErrStale)
						require.ErrorIs(t, context.Cause(ctx), lifecycle.ErrStale)
					}
					switch result {
					case nil:
						return ctx.Err()
					case errDone:
						return nil
					}
					return result
				}), nil)
				synctest.Wait()
				c.take(t, m, other)
				if !c.ends {
					close(end)
				}
				rec, err := ticket.Wait(t.Context())
				e := outcomeError(t, err)
				kept, readErr := m.Get(t.Context(), "a")
				require.NoError(t, readErr)
				require.Equal(t, kept, rec)
				require.Equal(t, c.to, kept.State)
				require.Equal(t, lifecycle.Lost, e.Outcome, "%v", err)
				require.ErrorIs(t, err, lifecycle.ErrStale)
				require.NoError(t, e.Unwritten)
				require.Equal(t, []string{"2: stopped -start-> starting by user", c.last}, story(t, m, "a", 2))
			})
		}
	}
}

var errDone = errors.New("done")

// TestLostWhileWaiting: work that was taken away before its turn does not run.
func TestLostWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		q, free := blocked(t, "work-vm")
		m := workers(store, lifecycle.Config[event]{Queue: q})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error {
			t.Error("it ran")
			return nil
		}), nil)
		override(t, workers(store, lifecycle.Config[event]{}), "a", "running", "ann", "it runs", nil)
		before := all(t, store, "work-vm", "a")
		free()
		rec, err := ticket.Wait(t.Context())
		kept, readErr := m.Get(t.Context(), "a")
		require.NoError(t, readErr)
		require.Equal(t, kept, rec)
		require.Equal(t, lifecycle.Lost, outcomeError(t, err).Outcome)
		require.ErrorIs(t, err, lifecycle.ErrStale)
		require.Equal(t, before, all(t, store, "work-vm", "a"))
	})
}

// TestTurnUnknown: the store does not answer at the work's turn whether the
// operation is still its own. The work does not run.
func TestTurnUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
		q, free := blocked(t, "work-vm")
		m := workers(store, lifecycle.Config[event]{Queue: q})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error {
			t.Error("it ran")
			return nil
		}), nil)
		store.dead.Store(true)
		free()
		e := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Canceled, e.Outcome)
		require.ErrorIs(t, e.Err, errDead)
		require.ErrorIs(t, e.Unwritten, errDead)
	})
}

// TestPreempted: a delete that pre-empts ends the work in front of it and supersedes
// its operation.
func TestPreempted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		start := do(t, m, "a", "start", user, lifecycle.Func(untilEnded), nil)
		synctest.Wait()
		wait(t, do(t, m, "a", "delete", user, lifecycle.Work{Run: fine, Preempt: queue.PreemptRunning}, nil))
		require.Equal(t, lifecycle.Lost, outcomeOf(t, start).Outcome)
		absent(t, m, "a")
	})
}
