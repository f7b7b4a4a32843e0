package queue

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestExpireTooLate plays this schedule: the timer of QueueTimeout fires, and expire gets
// the lock after the first attempt of the action.
func TestExpireTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Must(&Config[string]{MaxRunning: 1})
		fails := &Action{
			QueueTimeout: time.Hour,
			Retry:        Retry{Attempts: 2},
			Run:          func(context.Context) error { time.Sleep(time.Second); return errors.ErrUnsupported },
		}
		first, err := q.Submit(t.Context(), "a", fails)
		require.NoError(t, err)
		_, err = q.Submit(t.Context(), "b", &Action{Run: func(context.Context) error { time.Sleep(time.Minute); return nil }})
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		require.Equal(t, Waiting, first.Info().State, "for its second turn")
		first.expire()
		require.Equal(t, errors.ErrUnsupported, first.Wait(t.Context()))
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// TestAgainTooLate plays the same schedule for the timer of a back-off.
func TestAgainTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q Queuer[string]
		ticket, err := q.Submit(t.Context(), "a", &Action{
			Retry: Retry{Attempts: 2, Backoff: Exponential(2*time.Hour, 0)},
			Run:   func(context.Context) error { return errors.ErrUnsupported },
		})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, Withdrawn, ticket.Cancel(nil))
		ticket.endBackoff()
		require.Equal(t, Canceled, ticket.Outcome())
		require.Zero(t, q.Stats())
	})
}

// TestCancelBeforeWorker plays this schedule: Cancel ends the second attempt of an action
// before its worker runs, while the worker of the first attempt runs another action.
func TestCancelBeforeWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Must(&Config[string]{MaxRunning: 2})
		sleeps := func(d time.Duration) *Action {
			return &Action{Run: func(ctx context.Context) error {
				select {
				case <-time.After(d):
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}
		}
		_, err := q.Submit(t.Context(), "other", sleeps(time.Second))
		require.NoError(t, err)
		synctest.Wait()
		retried, err := q.Submit(t.Context(), "a", &Action{
			Retry: Retry{Attempts: 2, Backoff: Exponential(2*time.Hour, 0)},
			Run:   func(context.Context) error { return errors.ErrUnsupported },
		})
		require.NoError(t, err)
		next, err := q.Submit(t.Context(), "b", sleeps(time.Minute))
		require.NoError(t, err)
		time.Sleep(2 * time.Second)
		retried.endBackoff()
		retried.Cancel(nil)
		require.NoError(t, next.Wait(t.Context()))
		require.NoError(t, q.Terminate(t.Context()))
	})
}
