package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// The model covers what Cancel returns in every state. This test covers the errors.
func TestCancelErrors(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1})
		run := submit(t, q, "a", takes("running", time.Hour, nil))
		ready := submit(t, q, "b", takes("ready", time.Second, nil))
		synctest.Wait()
		require.Equal(t, queue.Withdrawn, ready.Cancel(errBoom))
		require.Equal(t, queue.Signalled, run.Cancel(errBoom))
		for _, ticket := range []*queue.Ticket[string]{run, ready} {
			require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrCanceled)
			require.ErrorIs(t, ticket.Err(), errBoom)
			require.Equal(t, queue.Canceled, ticket.Outcome())
		}
		fails := takes("fails", 0, errBoom)
		fails.Retry = queue.Retry{Attempts: 2, Backoff: pauses(time.Hour)}
		retrying := submit(t, q, "c", fails)
		synctest.Wait()
		require.Equal(t, queue.Retrying, retrying.Info().State)
		require.Equal(t, queue.Withdrawn, retrying.Cancel(nil))
		require.ErrorIs(t, retrying.Err(), queue.ErrCanceled)
		require.ErrorIs(t, retrying.Err(), errBoom, "the last attempt's error is kept")
		requireEmpty(t, q)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		ticket := submit(t, q, "a", takes("slow", time.Minute, errBoom))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := ticket.Wait(ctx)
		require.ErrorIs(t, err, queue.ErrPending)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, ticket.Err())
		require.Equal(t, queue.Pending, ticket.Outcome())
		require.Equal(t, errBoom, ticket.Wait(t.Context()))
		require.Equal(t, errBoom, ticket.Wait(t.Context()))
		<-ticket.Done()
	})
}

func TestContextOfAction(t *testing.T) {
	type key struct{}
	in(t, func(t *testing.T) {
		base, end := context.WithCancelCause(context.WithValue(t.Context(), key{}, "base"))
		defer end(nil)
		q := makeQueue(t, &queue.Config[string]{Base: base})
		submitter, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "submitter"))
		look := func(act *queue.Action, end func(*queue.Ticket[string])) (kept context.Context) {
			act.Run = func(ctx context.Context) error {
				kept = ctx
				require.NoError(t, ctx.Err())
				require.Equal(t, "base", ctx.Value(key{}))
				child, stop := context.WithTimeout(ctx, time.Hour)
				defer stop()
				<-child.Done()
				require.Equal(t, context.Cause(ctx), context.Cause(child))
				require.Equal(t, "base", ctx.Value(key{}))
				require.Equal(t, queue.Current[string](ctx), queue.Current[string](child))
				return context.Cause(child)
			}
			ticket, err := q.Submit(submitter, "a", act)
			require.NoError(t, err)
			synctest.Wait()
			end(ticket)
			return kept
		}
		cancel()
		look(&queue.Action{}, func(ticket *queue.Ticket[string]) {
			require.Equal(t, queue.Pending, ticket.Outcome(), "the submitter's context has ended, the action goes on")
			ticket.Cancel(errBoom)
			require.ErrorIs(t, ticket.Wait(t.Context()), errBoom)
			var e *queue.EndError
			require.ErrorAs(t, ticket.Err(), &e)
			require.Equal(t, &queue.EndError{Outcome: queue.Canceled, Cause: errBoom}, e)
		})
		look(&queue.Action{Timeout: time.Minute}, func(ticket *queue.Ticket[string]) {
			require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrTimeout)
			require.Equal(t, queue.TimedOut, ticket.Outcome())
		})
		kept := look(&queue.Action{}, func(ticket *queue.Ticket[string]) {
			end(errBoom)
			require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrCanceled)
			require.ErrorIs(t, ticket.Err(), errBoom)
		})
		require.Error(t, kept.Err())
	})
	in(t, func(t *testing.T) {
		// The context ends with its action even if the action never reads it.
		var q queue.Queuer[string]
		var kept context.Context
		ticket := submit(t, &q, "a", &queue.Action{Run: func(ctx context.Context) error { kept = ctx; return nil }})
		require.NoError(t, ticket.Wait(t.Context()))
		<-kept.Done()
		require.ErrorIs(t, kept.Err(), context.Canceled)
		require.Equal(t, ticket, queue.Current[string](kept))
		require.Nil(t, queue.Current[int](kept))
		require.Nil(t, queue.Current[string](t.Context()))
	})
	in(t, func(t *testing.T) {
		// The context of the first attempt has ended when the second attempt starts.
		var q queue.Queuer[string]
		var contexts []context.Context
		ticket := submit(t, &q, "a", &queue.Action{Retry: queue.Retry{Attempts: 2}, Run: func(ctx context.Context) error {
			contexts = append(contexts, ctx)
			if len(contexts) == 2 {
				require.Error(t, contexts[0].Err())
				require.NoError(t, ctx.Err())
			}
			return errBoom
		}})
		require.Equal(t, errBoom, ticket.Wait(t.Context()))
		require.Len(t, contexts, 2)
	})
}

// Cancel ends one action and not the next action of the same worker.
func TestCancelEndsOneAction(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1})
		for range 20 {
			first := submit(t, q, "a", takes("first", time.Hour, nil))
			next := submit(t, q, "b", takes("next", time.Second, nil))
			synctest.Wait()
			require.Equal(t, queue.Signalled, first.Cancel(nil))
			require.NoError(t, next.Wait(t.Context()))
			require.Equal(t, queue.Canceled, first.Outcome())
		}
	})
	in(t, func(t *testing.T) {
		// Cancel reaches an action whose worker has not started.
		q := makeQueue(t, nil)
		for range 200 {
			ticket := submit(t, q, "a", takes("a", time.Hour, nil))
			require.Equal(t, queue.Signalled, ticket.Cancel(nil))
			require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrCanceled)
		}
	})
}

// The context of an action has ended when the worker starts its next action.
func TestContextEndsWithAction(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1})
		var kept context.Context
		submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error {
			kept = ctx
			time.Sleep(time.Millisecond)
			return nil
		}})
		next := submit(t, q, "b", &queue.Action{Run: func(ctx context.Context) error {
			require.ErrorIs(t, kept.Err(), context.Canceled)
			require.NoError(t, ctx.Err())
			return nil
		}})
		require.NoError(t, next.Wait(t.Context()))
	})
}
