package queue_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// keeps returns an action of class "aws" that fails once, pauses for an hour with its share
// of the limits, and then runs for a minute.
func keeps(name string, started *notes) *queue.Action {
	attempts := 0
	return &queue.Action{
		Name: name, Class: "aws", Retry: queue.Retry{Attempts: 2, Backoff: pauses(time.Hour), Keep: true},
		Run: func(ctx context.Context) error {
			started.add(name)
			if attempts++; attempts == 1 {
				return errBoom
			}
			select {
			case <-time.After(time.Minute):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		},
	}
}

// awsShares returns the number of actions with a share of the limits of the class aws.
func awsShares(t *testing.T, q *queue.Queuer[string]) int {
	t.Helper()
	for _, c := range q.Classes() {
		if c.Path == "aws" {
			return c.Running
		}
	}
	t.Fatal("no class aws")
	return 0
}

// An action that keeps its share between two attempts counts under the limits and does not
// run. Its next attempt starts although the limit is lower now.
func TestKeepShare(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {MaxRunning: 2}}})
		var started notes
		first := submit(t, q, "a", keeps("first", &started))
		time.Sleep(time.Second)
		second := submit(t, q, "b", keeps("second", &started))
		synctest.Wait()
		other := keeps("other", &started)
		other.Retry = queue.Retry{Attempts: 2}
		last := submit(t, q, "c", other)
		require.NoError(t, q.SetLimit("aws", queue.Limit{MaxRunning: 1}))
		time.Sleep(time.Minute)

		require.Equal(t, "first second", started.String())
		require.Equal(t, queue.Stats{Keys: 3, Waiting: 3, Retrying: 2, OldestWaiting: time.Minute + time.Second}, q.Stats())
		require.Equal(t, 2, awsShares(t, q))
		require.Equal(t, queue.LaneInfo{Waiting: 1, WaitingSince: first.Info().Accepted}, maps.Collect(q.All())["a"])

		require.NoError(t, first.Wait(t.Context()))
		require.NoError(t, second.Wait(t.Context()))
		require.NoError(t, last.Wait(t.Context()))
		require.Equal(t, "first second first second other other", started.String())
		requireEmpty(t, q)
	})
}

// A paused class holds up the next attempt of an action that keeps its share. When the pause
// ends, the action precedes those that wait for a share.
func TestKeepInAPausedClass(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {MaxRunning: 1}}})
		var started notes
		first := submit(t, q, "a", keeps("first", &started))
		synctest.Wait()
		last := submit(t, q, "b", ofClass("aws", takes("other", time.Second, nil)))
		require.NoError(t, q.PauseClass("aws"))
		ended, stop := context.WithTimeout(t.Context(), 2*time.Hour)
		defer stop()
		var drain *queue.DrainError
		require.ErrorAs(t, q.Terminate(ended), &drain)
		require.Equal(t, 2, drain.Waiting)
		require.Zero(t, drain.Running)
		require.Equal(t, queue.Waiting, first.Info().State)
		require.NoError(t, q.ResumeClass("aws"))
		synctest.Wait()
		require.Equal(t, queue.Running, first.Info().State)
		require.Equal(t, queue.Waiting, last.Info().State)
		require.NoError(t, q.Terminate(t.Context()))
		require.Equal(t, "first first", started.String())
		requireEmpty(t, q)
	})
}

// Cancel ends the second attempt before a worker runs it. The worker of the first attempt runs
// another action by then, whose context does not end.
func TestCancelOfAKeptAttemptEndsNoOtherAction(t *testing.T) {
	in(t, func(t *testing.T) {
		for range 20 {
			q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {}}})
			var started notes
			var other *queue.Ticket[string]
			act := keeps("first", &started)
			first := act.Run
			act.Run = func(ctx context.Context) error {
				if other == nil {
					other = submit(t, q, "b", takes("other", 2*time.Hour, nil))
				}
				return first(ctx)
			}
			kept := submit(t, q, "a", act)
			synctest.Wait()
			require.NoError(t, q.PauseClass("aws"))
			time.Sleep(time.Hour + time.Second)
			require.Equal(t, queue.Waiting, kept.Info().State)
			require.NoError(t, q.ResumeClass("aws"))
			require.Equal(t, queue.Signalled, kept.Cancel(nil))
			require.ErrorIs(t, kept.Wait(t.Context()), queue.ErrCanceled)
			require.NoError(t, other.Wait(t.Context()))
		}
	})
}

// An action that is cancelled in its back-off gives its share back after its Settle.
func TestKeepUntilTheEnd(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {MaxRunning: 1}}})
		var started notes
		settles := keeps("first", &started)
		settles.Settle = func(context.Context, queue.Outcome, error) {
			require.Empty(t, maps.Collect(q.All())["a"].Running)
			require.Equal(t, 1, awsShares(t, q))
			require.Equal(t, queue.Stats{Keys: 1, Waiting: 1}, q.Stats())
		}
		first := submit(t, q, "a", settles)
		synctest.Wait()
		require.Equal(t, 1, awsShares(t, q))
		require.False(t, q.Abandon("a"), "it does not run")
		require.Equal(t, queue.Withdrawn, first.Cancel(nil))
		require.Equal(t, queue.Canceled, first.Outcome())
		require.Zero(t, awsShares(t, q))
		require.Error(t, submit(t, q, "a", takes("next", time.Second, errBoom)).Wait(t.Context()))
		requireEmpty(t, q)
	})
}
