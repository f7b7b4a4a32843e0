package queue_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// An action that is abandoned before its worker takes it does not start after its end. The
// scheduler may let the worker take it between Submit and Abandon, but not in every round.
func TestAbandonedBeforeItsAttempt(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the worker does not run beside Submit and Abandon
	in(t, func(t *testing.T) {
		right := 0
		for range 100 {
			var log notes
			q := makeQueue(t, &queue.Config[string]{Observer: queue.Observer[string]{
				Started:  func(context.Context, queue.Started[string]) { log.add("started") },
				Finished: func(context.Context, queue.Finished[string]) { log.add("finished") },
			}})
			submit(t, q, "a", takes("a", time.Second, nil))
			q.Abandon("a")
			require.NoError(t, submit(t, q, "a", takes("b", time.Second, nil)).Wait(t.Context()))
			synctest.Wait()
			if slices.Equal(log.all(), []string{"finished", "started", "finished"}) {
				right++
			}
		}
		require.Positive(t, right)
	})
}

// The end of Base while the guard runs is not a refusal by the guard.
func TestBaseEndsInTheGuard(t *testing.T) {
	in(t, func(t *testing.T) {
		errBase := errors.New("the process ends")
		base, end := context.WithCancelCause(t.Context())
		q := makeQueue(t, &queue.Config[string]{Base: base})
		ticket := submit(t, q, "a", &queue.Action{
			Guard: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			Run:   func(context.Context) error { return nil },
		})
		synctest.Wait()
		end(errBase)
		require.ErrorIs(t, ticket.Wait(t.Context()), errBase)
		require.Equal(t, queue.Canceled, ticket.Outcome())
	})
}

// Ended is the end of the last attempt until the next one starts.
func TestEndedOfAnAttempt(t *testing.T) {
	in(t, func(t *testing.T) {
		var ended []bool
		q := makeQueue(t, &queue.Config[string]{Observer: queue.Observer[string]{
			Started: func(_ context.Context, s queue.Started[string]) { ended = append(ended, !s.Ended.IsZero()) },
		}})
		ticket := submit(t, q, "a", &queue.Action{
			Run:   func(context.Context) error { return errors.New("again") },
			Retry: queue.Retry{Attempts: 2, Backoff: func(int, error) time.Duration { return time.Minute }},
		})
		time.Sleep(time.Second)
		require.False(t, ticket.Info().Ended.IsZero(), "in the pause")
		require.Error(t, ticket.Wait(t.Context()))
		require.Equal(t, []bool{false, false}, ended)
	})
}
