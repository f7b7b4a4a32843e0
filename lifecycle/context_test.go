package lifecycle_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// over checks that a context has ended, by whatever is asked first.
func over(t *testing.T, first string, ctx context.Context) {
	t.Helper()
	asks := map[string]func(){
		"err":   func() { require.ErrorIs(t, ctx.Err(), context.Canceled) },
		"cause": func() { require.Error(t, context.Cause(ctx)) },
		"done": func() {
			select {
			case <-ctx.Done():
			default:
				t.Error("not done")
			}
		},
		"child": func() {
			child, stop := context.WithTimeout(ctx, time.Hour)
			defer stop()
			require.ErrorIs(t, child.Err(), context.Canceled)
			require.Error(t, context.Cause(child))
		},
	}
	asks[first]()
	for _, ask := range asks {
		ask()
	}
}

var firstAsks = []string{"err", "cause", "done", "child"}

// TestContextAfterWork: the context of work ends with it, also if nobody asked for
// its end before, and also while the chain goes on.
func TestContextAfterWork(t *testing.T) {
	for _, first := range firstAsks {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, stop := context.WithCancel(t.Context())
				defer stop()
				m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: queue.Must(&queue.Config[lifecycle.Key]{Base: base})})
				running(t, m, "a")
				var one, two context.Context
				h := must(m.DoSteps(t.Context(), "a", user, destroy(
					lifecycle.Func(func(ctx context.Context) error { one = ctx; return nil }),
					lifecycle.Func(func(ctx context.Context) error {
						two = ctx
						over(t, first, one)
						require.NoError(t, ctx.Err())
						require.NoError(t, context.Cause(ctx))
						return nil
					}),
				), nil))(t)
				_, err := h.Wait(t.Context())
				require.NoError(t, err)
				over(t, first, two)
				require.EqualValues(t, 3, lifecycle.TaskOf(one).Operation, "its values stay")
			})
		})
	}
}

// TestContextToldBefore: work whose operation is taken away before it asks for
// anything.
func TestContextToldBefore(t *testing.T) {
	for _, first := range firstAsks {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
				stopped(t, m, "a")
				h := must(m.Do(t.Context(), "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
					must(m.Fire(t.Context(), "a", "delete", user, nil))(t)
					over(t, first, ctx)
					require.ErrorIs(t, context.Cause(ctx), lifecycle.ErrStale)
					return ctx.Err()
				}), nil))(t)
				_, err := h.Wait(t.Context())
				require.Equal(t, lifecycle.Lost, outcomeError(t, err).Outcome)
			})
		})
	}
}

// TestContextNeverComesBack: of many that ask at the moment at which the operation
// is taken away, nobody sees it ended and then not.
func TestContextNeverComesBack(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	stopped(t, m, "a")
	for range 300 {
		h := must(m.Do(t.Context(), "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
			_, err := m.Override(context.WithoutCancel(ctx), "a", "stopped", user, "again", nil)
			var wg sync.WaitGroup
			begin := make(chan struct{})
			for i := range 4 {
				wg.Go(func() {
					<-begin
					for range 200 {
						if ctx.Err() == nil || context.Cause(ctx) == nil {
							panic("it came back")
						}
						if i == 0 {
							<-ctx.Done()
						}
					}
				})
			}
			close(begin)
			wg.Wait()
			return errors.Join(err, ctx.Err())
		}), nil))(t)
		_, err := h.Wait(t.Context())
		require.Equal(t, lifecycle.Lost, outcomeError(t, err).Outcome)
	}
}

// contexts is a store that keeps the contexts of commits.
type contexts struct {
	*lifecycle.MemoryStore
	of []context.Context
}

func (s *contexts) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.of = append(s.of, ctx)
	return s.MemoryStore.Commit(ctx, c)
}

// TestContextOfOutcome: what a store leaves behind does not live on with the
// context that an outcome was written with.
func TestContextOfOutcome(t *testing.T) {
	for _, first := range firstAsks {
		t.Run(first, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &contexts{MemoryStore: lifecycle.NewMemoryStore()}
				m := workers(store, lifecycle.Config[event]{})
				running(t, m, "a")
				_, err := must(m.Do(t.Context(), "a", "stop", user, lifecycle.Func(fine), nil))(t).Wait(t.Context())
				require.NoError(t, err)
				ctx := store.of[len(store.of)-1]
				until, ok := ctx.Deadline()
				require.True(t, ok)
				require.Equal(t, 10*time.Second, time.Until(until))
				over(t, first, ctx)
			})
		})
	}
}

// patient is a store that goes on for as long as its context lets it.
type patient struct {
	*lifecycle.MemoryStore
	waits bool
}

func (s *patient) Commit(ctx context.Context, c *lifecycle.Commit) error {
	for s.waits && ctx.Err() == nil {
		time.Sleep(time.Second)
	}
	return s.MemoryStore.Commit(ctx, c)
}

// TestContextOfOutcomeAsked: a store that only asks whether it has to end, again
// and again, has to after a while.
func TestContextOfOutcomeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &patient{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{})
		running(t, m, "a")
		h := must(m.Do(t.Context(), "a", "stop", user, lifecycle.Func(func(context.Context) error {
			store.waits = true
			return nil
		}), nil))(t)
		begun := time.Now()
		_, err := h.Wait(t.Context())
		require.ErrorIs(t, outcomeError(t, err).Unwritten, context.DeadlineExceeded)
		require.Less(t, time.Since(begun), 20*time.Second)
	})
}
