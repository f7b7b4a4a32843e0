package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// retries returns an action that ignores its context, fails after a second, and has a
// back-off of an hour.
func retries(name string) *queue.Action {
	act := stubborn(name, time.Second, errBoom)
	act.Retry = queue.Retry{Attempts: 3, Backoff: []time.Duration{time.Hour}}
	return act
}

func TestNoRetryAfterBase(t *testing.T) {
	in(t, func(t *testing.T) {
		base, end := context.WithCancel(t.Context())
		q := makeQueue(t, &queue.Config[string]{Base: base})
		ticket := submit(t, q, "a", retries("act"))
		synctest.Wait()
		end()
		require.Equal(t, errBoom, ticket.Wait(t.Context()))
		require.Equal(t, 1, ticket.Info().Attempt)
		require.Equal(t, queue.Failed, ticket.Outcome())
	})
}

// An action that is cancelled while the observer receives its retry is not retried.
func TestCancelWhileRetryIsReported(t *testing.T) {
	in(t, func(t *testing.T) {
		var ticket *queue.Ticket[string]
		var did queue.Cancellation
		q := makeQueue(t, &queue.Config[string]{Observer: queue.Observer[string]{
			Retried: func(context.Context, queue.Retried[string]) { did = ticket.Cancel(context.Canceled) },
		}})
		ticket = submit(t, q, "a", retries("act"))
		err := ticket.Wait(t.Context())
		require.Equal(t, queue.Signalled, did)
		require.ErrorIs(t, err, queue.ErrCanceled)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, errBoom)
		require.Equal(t, 1, ticket.Info().Attempt)
	})
}

// A running action goes into its back-off while the queue settles the waiting actions
// that a delete supersedes. The delete ends it there.
func TestPreemptBetweenAttempts(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		start := time.Now()
		first := submit(t, q, "a", retries("first"))
		slow := takes("slow", 0, nil)
		slow.Settle = func(context.Context, queue.Outcome, error) { time.Sleep(time.Minute) }
		submit(t, q, "a", slow)
		synctest.Wait()
		destroy := takes("destroy", 0, nil)
		destroy.Preempt = queue.PreemptRunning
		require.NoError(t, submit(t, q, "a", destroy).Wait(t.Context()))
		require.Equal(t, time.Minute, time.Since(start))
		require.Equal(t, queue.Superseded, first.Outcome())
		require.ErrorIs(t, first.Err(), errBoom, "the last attempt's error is kept")
		require.Equal(t, 1, first.Info().Attempt)
		requireEmpty(t, q)
	})
}
