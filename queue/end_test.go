package queue_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// retries takes a second, does not obey, fails, and would be tried again after
// an hour.
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

// An action that is interrupted while the observer receives its retry is not tried again.
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

// A pre-empting action finds one that runs, and while those that wait are
// settled that one goes into its back-off: it is ended there.
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
