package queue_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
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
	act.Retry = queue.Retry{Attempts: 3, Backoff: pauses(time.Hour)}
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
			Retried: func(context.Context, queue.FailedAttempt[string]) { did = ticket.Cancel(context.Canceled) },
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

// A running action goes into its back-off while the queue settles the waiting actions that
// Abort ends. It ends there, and its error has the cause.
func TestAbortBetweenAttempts(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		first := submit(t, q, "a", retries("first"))
		slow := takes("slow", 0, nil)
		slow.Settle = func(context.Context, queue.Outcome, error) { time.Sleep(time.Minute) }
		submit(t, q, "a", slow)
		synctest.Wait()
		q.Abort(context.Canceled)
		require.Equal(t, queue.Aborted, first.Outcome())
		require.ErrorIs(t, first.Err(), context.Canceled)
		require.ErrorIs(t, first.Err(), errBoom, "the last attempt's error is kept")
		requireEmpty(t, q)
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

// An EndError of another queue, whose action has the context that is the base, is the cause of
// the end of the base and not of a time-out or an abort of this action.
func TestBaseEndsWithAnEndError(t *testing.T) {
	for kind, cause := range map[string]error{
		"plain":   &queue.EndError{Outcome: queue.TimedOut},
		"wrapped": fmt.Errorf("outer action: %w", &queue.EndError{Outcome: queue.TimedOut}),
	} {
		for returned, err := range contextErrors {
			t.Run(kind+", the action returns "+returned, func(t *testing.T) {
				in(t, func(t *testing.T) {
					base, end := context.WithCancelCause(t.Context())
					q := makeQueue(t, &queue.Config[string]{Base: base, HaltOnFailure: true})
					ticket := submit(t, q, "a", &queue.Action{Timeout: time.Hour, Run: func(ctx context.Context) error {
						<-ctx.Done()
						return err(ctx)
					}})
					synctest.Wait()
					end(cause)
					require.ErrorIs(t, ticket.Wait(t.Context()), cause)
					require.Equal(t, queue.Canceled, ticket.Outcome())
					requireEmpty(t, q)
				})
			})
		}
	}
}

// An action that ends after the base has halted no lane, however it ends.
func TestFailureAfterBaseHaltsNoLane(t *testing.T) {
	for want, run := range map[queue.Outcome]func(context.Context) error{
		queue.Failed:   func(ctx context.Context) error { <-ctx.Done(); return errBoom },
		queue.Panicked: func(ctx context.Context) error { <-ctx.Done(); panic("boom") },
		queue.TimedOut: func(ctx context.Context) error { time.Sleep(time.Hour); return ctx.Err() },
	} {
		t.Run(want.String(), func(t *testing.T) { requireNoHalt(t, want, run) })
	}
	t.Run("goexit", func(t *testing.T) {
		requireNoHalt(t, queue.Panicked, func(ctx context.Context) error { <-ctx.Done(); runtime.Goexit(); return nil })
	})
}

// requireNoHalt lets the base end while an action runs, after its time-out or before.
func requireNoHalt(t *testing.T, want queue.Outcome, run func(context.Context) error) {
	in(t, func(t *testing.T) {
		base, end := context.WithCancel(t.Context())
		q := makeQueue(t, &queue.Config[string]{Base: base, HaltOnFailure: true})
		act := &queue.Action{Run: run}
		if want == queue.TimedOut {
			act.Timeout = time.Second
		}
		running := submit(t, q, "a", act)
		behind := submit(t, q, "a", takes("behind", 0, nil))
		time.Sleep(time.Minute)
		end()
		time.Sleep(time.Hour)
		require.Equal(t, want, running.Outcome())
		require.Equal(t, queue.Canceled, behind.Outcome())
	})
}

// When the base has ended, no action starts: those that wait for a turn, behind another
// action or for the end of a back-off end as Canceled, and are settled.
func TestNoStartAfterBase(t *testing.T) {
	in(t, func(t *testing.T) {
		base, end := context.WithCancelCause(t.Context())
		started := 0
		var log notes
		q := makeQueue(t, &queue.Config[string]{Base: base, MaxRunning: 1, Observer: queue.Observer[string]{
			Started:  func(context.Context, queue.Started[string]) { started++ },
			Finished: func(_ context.Context, e queue.Finished[string]) { log.add(fmt.Sprint(e.Name, " ", e.Outcome)) },
		}})
		fails := submit(t, q, "a", retries("fails"))
		time.Sleep(time.Minute) // its back-off has begun
		submit(t, q, "b", stubborn("running", time.Hour, nil))
		synctest.Wait()
		act := func(name string) *queue.Action {
			a := takes(name, 0, nil)
			run := a.Run
			a.Run = func(ctx context.Context) error { log.add(name + " runs"); return run(ctx) }
			a.Settle = func(_ context.Context, o queue.Outcome, _ error) { log.add(fmt.Sprint(name, " settled ", o)) }
			return a
		}
		behind := submit(t, q, "b", act("behind"))
		other := submit(t, q, "c", act("other"))
		end(errBoom)
		require.Equal(t, queue.Pending, behind.Outcome(), "it ends when its turn comes")
		for _, ticket := range []*queue.Ticket[string]{behind, other} {
			err := ticket.Wait(t.Context())
			require.ErrorIs(t, err, queue.ErrCanceled)
			require.ErrorIs(t, err, errBoom, "the cause of the base")
			require.Equal(t, queue.Canceled, ticket.Outcome())
			require.Zero(t, ticket.Info().Attempt)
			require.Zero(t, ticket.Info().Started)
		}
		unbegun := act("late")
		settle := unbegun.Settle
		var stats queue.Stats
		unbegun.Settle = func(ctx context.Context, o queue.Outcome, err error) {
			stats = q.Stats()
			settle(ctx, o, err)
		}
		late := submit(t, q, "d", unbegun)
		require.ErrorIs(t, late.Wait(t.Context()), queue.ErrCanceled)
		require.Zero(t, stats.LongestRunning, "no attempt began")
		require.ErrorIs(t, fails.Wait(t.Context()), queue.ErrCanceled)
		require.Equal(t, 1, fails.Info().Attempt)
		require.Equal(t, 2, started)
		require.NotContains(t, log.all(), "behind runs")
		require.ElementsMatch(t, []string{
			"running ok", "other settled canceled", "other canceled", "behind settled canceled", "behind canceled",
			"late settled canceled", "late canceled", "fails canceled",
		}, log.all())
		require.NoError(t, q.Terminate(t.Context()))
	})
}

func TestErrorsOfTheEnd(t *testing.T) {
	for outcome, sentinel := range map[queue.Outcome]error{
		queue.TimedOut: queue.ErrTimeout, queue.Canceled: queue.ErrCanceled, queue.Superseded: queue.ErrSuperseded,
		queue.Preempted: queue.ErrPreempted, queue.Aborted: queue.ErrAborted, queue.Expired: queue.ErrExpired,
		queue.Skipped: queue.ErrSkipped, queue.Abandoned: queue.ErrAbandoned,
	} {
		require.ErrorIs(t, &queue.EndError{Outcome: outcome}, sentinel)
	}
	require.EqualError(t, &queue.PanicError{Goexit: true}, "queue: panic in action: runtime.Goexit")
	require.EqualError(t, &queue.PanicError{Value: 7}, "queue: panic in action: 7")
}

// An action that is cancelled between its time-out and the next attempt keeps its own error.
func TestCancelAfterATimeoutKeepsTheError(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Observer: queue.Observer[string]{
			Retried: func(ctx context.Context, _ queue.FailedAttempt[string]) { queue.Current[string](ctx).Cancel(nil) },
		}})
		ticket := submit(t, q, "a", &queue.Action{
			Timeout: time.Second, Retry: queue.Retry{Attempts: 2},
			Run: func(ctx context.Context) error { <-ctx.Done(); return errors.Join(errBoom, ctx.Err()) },
		})
		err := ticket.Wait(t.Context())
		require.ErrorIs(t, err, queue.ErrCanceled)
		require.ErrorIs(t, err, errBoom)
	})
}

func TestSkippedHasTheErrorOfTheGuard(t *testing.T) {
	in(t, func(t *testing.T) {
		act := takes("act", 0, nil)
		act.Guard = func(context.Context) error { return errBoom }
		err := submit(t, makeQueue(t, nil), "a", act).Wait(t.Context())
		require.ErrorIs(t, err, queue.ErrSkipped)
		require.ErrorIs(t, err, errBoom)
	})
}

// The successor of an action that has to end decides about its state, whatever the guard returns.
func TestCancelInsideAGuardThatRefuses(t *testing.T) {
	in(t, func(t *testing.T) {
		act := takes("act", 0, nil)
		act.Guard = func(ctx context.Context) error {
			queue.Current[string](ctx).Cancel(nil)
			return errBoom
		}
		ticket := submit(t, makeQueue(t, nil), "a", act)
		require.ErrorIs(t, ticket.Wait(t.Context()), errBoom)
		require.Equal(t, queue.Canceled, ticket.Outcome())
	})
}

// Of a QueueTimeout and a Cancel at the same moment, one ends the action.
func TestCancelAtTheQueueTimeout(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		require.NoError(t, q.PauseClass(""))
		for range 100 {
			settled := 0
			act := takes("act", 0, nil)
			act.QueueTimeout = time.Second
			act.Settle = func(context.Context, queue.Outcome, error) { settled++ }
			ticket := submit(t, q, "a", act)
			time.Sleep(time.Second)
			want := queue.Expired
			if ticket.Cancel(nil) == queue.Withdrawn {
				want = queue.Canceled
			}
			synctest.Wait()
			require.Equal(t, want, ticket.Outcome())
			require.Equal(t, 1, settled)
			requireEmpty(t, q)
		}
	})
}
