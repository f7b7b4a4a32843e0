package lifecycle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// TestManyAtOnce: of 40 requests for one object at the same moment one is admitted, and the
// object refuses the others, however short its queue is.
func TestManyAtOnce(t *testing.T) {
	for name, q := range map[string]func() lifecycle.Queue{
		"default queue": func() lifecycle.Queue { return nil },
		"short queue":   func() lifecycle.Queue { return queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 2}) },
		"one place":     func() lifecycle.Queue { return queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 1}) },
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			m := workers(store, lifecycle.Config[event]{Queue: q()})
			running(t, m, "a")
			store.onCommit = func(_ int, _ *lifecycle.Commit, commit func() error) error {
				time.Sleep(time.Second) // the commits are under way for a while
				return commit()
			}
			var admitted, conflicts atomic.Int32
			var all errgroup.Group
			for range 40 {
				all.Go(func() error {
					_, err := m.Do(t.Context(), "a", "stop", user, sleeping(time.Hour), nil)
					switch {
					case err == nil:
						admitted.Add(1)
					case lifecycle.HTTPStatus(err) == 409:
						conflicts.Add(1)
					default:
						return err
					}
					return nil
				})
			}
			require.NoError(t, all.Wait())
			require.EqualValues(t, 1, admitted.Load())
			require.EqualValues(t, 39, conflicts.Load())
			time.Sleep(2 * time.Hour)
		})
	}
}

// TestFullAndPermitted: the object would take the request, so that a later one may
// succeed.
func TestFullAndPermitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 1})
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
		running(t, m, "a")
		end := make(chan struct{})
		ticket := occupy(t, m, "a", "migrate", lifecycle.Func(func(context.Context) error { <-end; return nil }))
		_, err := m.Do(t.Context(), "a", "stop", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, queue.ErrFull)
		require.Equal(t, 429, lifecycle.HTTPStatus(err))
		_, err = m.Do(t.Context(), "a", "create", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, lifecycle.ErrExists)
		require.NotErrorIs(t, err, queue.ErrFull)
		close(end)
		require.NoError(t, ticket.Wait(t.Context()))
		outcome := do(t, m, "a", "stop", user, lifecycle.Func(fine), nil)
		wait(t, outcome)
	})
}

// TestDoInAdmission: an observer calls Do for the object whose admission it receives, and
// the queue is full. The call waits for no commit, because that admission waits for it.
func TestDoInAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *sizedManager
		var inner error
		began := time.Now()
		m = workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
			Queue: queue.Must(&queue.Config[lifecycle.Key]{MaxPerKey: 1}),
			Observer: lifecycle.Observer{Changed: func(ctx context.Context, c lifecycle.CommittedChange) {
				if c.To == "stopping" {
					ctx, cancel := context.WithTimeout(ctx, time.Hour)
					defer cancel()
					_, inner = m.Do(ctx, "a", "stop", user, lifecycle.Func(fine), nil)
				}
			}},
		})
		running(t, m, "a")
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(fine), nil)
		require.Zero(t, time.Since(began))
		require.ErrorIs(t, inner, queue.ErrFull)
		require.EqualValues(t, "stopped", wait(t, ticket).State)
	})
}

// TestDrain: a drained manager ends its work, starts none, and still reads and fires.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		running(t, m, "a")
		running(t, m, "b")
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
			require.ErrorIs(t, lifecycle.Drain(ctx, m), queue.ErrWouldDeadlock)
			time.Sleep(time.Minute)
			return ctx.Err()
		}), nil)
		synctest.Wait()
		short, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		err := lifecycle.Drain(short, m)
		require.ErrorIs(t, err, queue.ErrNotDrained)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "lifecycle: drain work-vm: queue: not drained: 0 waiting, 1 running")
		_, err = m.Do(t.Context(), "b", "stop", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, queue.ErrTerminated)
		require.Equal(t, 503, lifecycle.HTTPStatus(err))
		_, err = lifecycle.Occupy(t.Context(), m, "b", "migrate", lifecycle.Func(fine))
		require.ErrorIs(t, err, queue.ErrTerminated)
		fire(t, m, "b", "rename", user, nil)

		require.NoError(t, lifecycle.Drain(t.Context(), m))
		select {
		case <-ticket.Done():
		default:
			t.Fatal("drained, and the work goes on")
		}
		require.Equal(t, state("stopped"), get(t, m, "a").State)
		require.NoError(t, lifecycle.Drain(t.Context(), m), "again")
	})
	q := queue.Must[lifecycle.Key](nil)
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
	require.NoError(t, lifecycle.Drain(t.Context(), m))
	running(t, m, "a")
	_, err := do(t, m, "a", "stop", user, lifecycle.Func(fine), nil).Wait(t.Context())
	require.NoError(t, err, "the queue of others is not drained")
}

// TestFinished: the observer learns of the end of all work, and where it has panicked.
func TestFinished(t *testing.T) {
	var ends []lifecycle.Finished
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Observer: lifecycle.Observer{
		Finished: func(_ context.Context, e lifecycle.Finished) { ends = append(ends, e) },
	}})
	running(t, m, "a")
	ends = nil
	ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error { return panics() }), nil)
	_, err := ticket.Wait(t.Context())
	require.Len(t, ends, 1)
	require.Positive(t, ends[0].Took)
	require.Equal(t, lifecycle.Finished{
		Key: lifecycle.Key{Machine: "work-vm", ID: "a"}, Operation: ticket.Operation(), Event: "stop", Took: ends[0].Took, Err: err,
	}, ends[0])
	panicked, ok := errors.AsType[*queue.PanicError](ends[0].Err)
	require.True(t, ok)
	require.Contains(t, string(panicked.Stack), "lifecycle_test.panics")

	running(t, m, "b")
	ends = nil
	wait(t, do(t, m, "b", "stop", user, lifecycle.Func(fine), nil))
	require.Len(t, ends, 1)
	require.NoError(t, ends[0].Err)
}

func panics() error { panic("a bug") }
