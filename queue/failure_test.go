package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

func TestRetry(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		start := time.Now()
		var at []time.Duration
		act := &queue.Action{
			Retry: queue.Retry{Attempts: 5, Backoff: pauses(time.Second, time.Minute)},
			Run: func(ctx context.Context) error {
				at = append(at, time.Since(start))
				if queue.Current[string](ctx).Info().Attempt < 4 {
					return errBoom
				}
				return nil
			},
		}
		ticket := submit(t, q, "a", act)
		behind := submit(t, q, "a", takes("behind", 0, nil))
		time.Sleep(time.Millisecond)
		info := ticket.Info()
		require.Equal(t, queue.Retrying, info.State)
		require.Equal(t, errBoom, info.Err)
		require.Equal(t, queue.Pending, info.Outcome)
		require.NoError(t, behind.Wait(t.Context()))
		require.Equal(t, queue.OK, ticket.Outcome(), "it was not overtaken")
		require.NoError(t, ticket.Err())
		s := time.Second
		require.Equal(t, []time.Duration{0, s, 61 * s, 121 * s}, at)
	})
}

func TestRetryIf(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		calls := 0
		act := takes("act", 0, errBoom)
		act.Retry = queue.Retry{Attempts: 3, If: func(err error) bool { calls++; return err != errBoom }}
		require.Equal(t, errBoom, submit(t, q, "a", act).Wait(t.Context()))
		require.Equal(t, 1, calls)
		// The queue retries time-outs and does not retry panics.
		attempts := 0
		panics := &queue.Action{Retry: queue.Retry{Attempts: 3}, Run: func(context.Context) error { attempts++; panic(1) }}
		require.ErrorIs(t, submit(t, q, "a", panics).Wait(t.Context()), queue.ErrPanic)
		require.Equal(t, 1, attempts)
		late := takes("late", time.Hour, nil)
		late.Timeout = time.Minute
		late.Retry.Attempts = 3
		ticket := submit(t, q, "a", late)
		start := time.Now()
		require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrTimeout)
		require.Equal(t, 3*time.Minute, time.Since(start))
		require.Equal(t, 3, ticket.Info().Attempt)
		requireEmpty(t, q)
	})
}

// unwrapPanics is an error whose Unwrap panics with a nil pointer.
type unwrapPanics struct{ err *error }

func (unwrapPanics) Error() string { return "unwrap panics" }

func (u unwrapPanics) Unwrap() error { return *u.err }

// The queue compares the error of an action that was ended from outside. A panic in a method of
// the error ends the action as Panicked, like one of the action.
func TestErrorPanics(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		act := &queue.Action{Retry: queue.Retry{Attempts: 2}, Run: func(ctx context.Context) error {
			<-ctx.Done()
			return unwrapPanics{}
		}}
		ticket := submit(t, q, "a", act)
		behind := submit(t, q, "a", takes("behind", 0, nil))
		synctest.Wait()
		ticket.Cancel(nil)
		require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrPanic)
		require.Equal(t, queue.Panicked, ticket.Outcome())
		require.NoError(t, behind.Wait(t.Context()))
		requireEmpty(t, q)
	})
}

// problems is an error that Go cannot compare.
type problems []error

func (p problems) Error() string { return errors.Join(p...).Error() }

// The text of an EndError does not repeat that of the cause, and is there for every type of error.
func TestEndErrorText(t *testing.T) {
	for cause, text := range map[string]string{"boom": "queue: canceled: boom", "late": "queue: canceled: late: boom"} {
		t.Run(cause, func(t *testing.T) {
			in(t, func(t *testing.T) {
				q := makeQueue(t, nil)
				act := takes("act", 0, problems{errBoom})
				act.Retry = queue.Retry{Attempts: 2, Backoff: pauses(time.Hour)}
				ticket := submit(t, q, "a", act)
				synctest.Wait()
				ticket.Cancel(problems{errors.New(cause)})
				require.EqualError(t, ticket.Wait(t.Context()), text)
			})
		})
	}
}

// An action that is cancelled after its time-out, before the queue has its result, ends as
// Canceled.
func TestCancelAfterTimeout(t *testing.T) {
	for name, err := range contextErrors {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				q := makeQueue(t, nil)
				ticket := submit(t, q, "a", &queue.Action{Timeout: time.Second, Run: func(ctx context.Context) error {
					<-ctx.Done()
					time.Sleep(time.Second)
					return err(ctx)
				}})
				time.Sleep(1500 * time.Millisecond)
				ticket.Cancel(errBoom)
				require.ErrorIs(t, ticket.Wait(t.Context()), errBoom)
				require.Equal(t, queue.Canceled, ticket.Outcome())
				requireEmpty(t, q)
			})
		})
	}
}

// Concurrent submits with one ID return the ticket of the first. The test runs in real
// time, because the race is between two instructions.
func TestRepeatedIDsMeetAdmissions(t *testing.T) {
	q := queue.Must[string](nil)
	for i := range 500 {
		act := &queue.Action{
			ID:    fmt.Sprint("id ", i),
			Admit: func(context.Context) error { runtime.Gosched(); return nil },
			Run:   func(context.Context) error { return nil },
		}
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				ticket, err := q.Submit(t.Context(), "a", act)
				if err != nil || ticket.Wait(t.Context()) != nil {
					t.Errorf("%v", err)
				}
			})
		}
		all.Wait()
	}
	requireEmpty(t, q)
}

// An action that is pre-empted while its guard runs ends as Preempted. A skipped action
// would restore a state that belongs to the successor.
func TestPreemptWhileGuardRuns(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		ticket := submit(t, q, "a", &queue.Action{
			Guard: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			Run:   func(context.Context) error { return nil },
		})
		synctest.Wait()
		remove := submit(t, q, "a", &queue.Action{Preempt: queue.PreemptRunning, Run: func(context.Context) error { return nil }})
		require.NoError(t, remove.Wait(t.Context()))
		require.Equal(t, queue.Preempted, ticket.Outcome())
	})
}

// A refusal names the running action, in any of the lanes.
func TestRefusalFindsTheLaneThatIsBusy(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxWaiting: 1})
		submit(t, q, "vm", takes("migrate", time.Hour, nil))
		time.Sleep(time.Second)
		no := func(context.Context) error { return errBoom }
		_, err := q.SubmitAll(t.Context(), []string{"disk", "vm"}, &queue.Action{Name: "resize", Admit: no, Run: no})
		var refused *queue.RefusedError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "vm", refused.Key)
		require.Equal(t, "migrate", refused.Running)
		require.False(t, refused.Since.IsZero())
		submit(t, q, "vm", takes("waits", 0, nil))
		_, err = q.Submit(t.Context(), "vm", &queue.Action{Name: "reboot", Run: no})
		require.ErrorIs(t, err, queue.ErrFull)
		require.ErrorAs(t, err, &refused)
		require.Nil(t, refused.Key, "the queue as a whole refuses")
		require.ErrorContains(t, err, "queue: full: reboot refused: migrate runs since ")
		require.Equal(t, "migrate", refused.Running)
		require.Equal(t, 1, refused.Waiting)
	})
}

// The model covers Resume. This test covers the events and the lanes of several keys.
func TestHaltedEvents(t *testing.T) {
	in(t, func(t *testing.T) {
		var halted []string
		q := makeQueue(t, &queue.Config[string]{HaltOnFailure: true, Observer: queue.Observer[string]{
			Halted: func(_ context.Context, h queue.Halted[string]) { halted = append(halted, h.Key+" "+h.Failed.Name) },
		}})
		_, err := q.SubmitAll(t.Context(), []string{"a", "b"}, takes("fails", 0, errBoom))
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"a fails", "b fails"}, halted)
		require.Equal(t, queue.Stats{Keys: 2, Halted: 2}, q.Stats())
		require.True(t, q.Resume("a"))
		require.True(t, q.Resume("b"))
		require.False(t, q.Resume("b"))
		requireEmpty(t, q)
	})
}

// The lane is halted when the observer receives Halted, so that it may call Resume.
func TestResumeInHalted(t *testing.T) {
	in(t, func(t *testing.T) {
		var q *queue.Queuer[string]
		resumed := map[string]bool{}
		q = makeQueue(t, &queue.Config[string]{HaltOnFailure: true, Observer: queue.Observer[string]{
			Halted: func(_ context.Context, h queue.Halted[string]) { resumed[h.Key] = q.Resume(h.Key) },
		}})
		_, err := q.SubmitAll(t.Context(), []string{"a", "b"}, takes("fails", time.Second, errBoom))
		require.NoError(t, err)
		next := submit(t, q, "a", takes("next", time.Second, nil))
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]bool{"a": true, "b": true}, resumed)
		require.Equal(t, queue.OK, next.Outcome())
		requireEmpty(t, q)
	})
}

// A panic after the attempts becomes the outcome and halts no lane.
func TestSettlePanicHaltsNoLane(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{HaltOnFailure: true})
		act := takes("act", time.Second, nil)
		act.Settle = func(context.Context, queue.Outcome, error) { panic(errBoom) }
		ticket := submit(t, q, "a", act)
		require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrPanic)
		require.Equal(t, queue.Panicked, ticket.Outcome())
		requireEmpty(t, q)
	})
}

// TestAbandon covers the counter, the late result, and an action that hangs in Settle.
// The model covers the other actions of the key.
func TestAbandon(t *testing.T) {
	for name, c := range map[string]struct {
		act  *queue.Action
		want queue.Outcome
	}{
		"Run hangs": {stubborn("hangs", time.Hour, nil), queue.Abandoned},
		"Settle hangs": {&queue.Action{
			Run:    func(context.Context) error { return nil },
			Settle: func(_ context.Context, o queue.Outcome, _ error) { time.Sleep(time.Hour) },
		}, queue.OK},
		"Settle hangs and then panics": {&queue.Action{
			Run:    func(context.Context) error { return nil },
			Settle: func(_ context.Context, o queue.Outcome, _ error) { time.Sleep(time.Hour); panic(errBoom) },
		}, queue.OK},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				q := makeQueue(t, &queue.Config[string]{HaltOnFailure: true})
				require.False(t, q.Abandon("b"))
				ticket, err := q.SubmitAll(t.Context(), []string{"a", "b"}, c.act)
				require.NoError(t, err)
				behind := submit(t, q, "b", takes("behind", 0, nil))
				synctest.Wait()
				require.True(t, q.Abandon("b"))
				if c.act.Settle == nil {
					require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrAbandoned)
				}
				require.NoError(t, behind.Wait(t.Context()))
				require.Equal(t, queue.Stats{Abandoned: 1}, q.Stats())
				time.Sleep(2 * time.Hour)
				require.Equal(t, c.want, ticket.Outcome(), "the queue ignores the late result")
				require.Zero(t, q.Stats())
			})
		})
	}
}

// The context of an abandoned action ends, also if nothing ended it before.
func TestAbandonEndsTheContext(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		var cause error
		submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		}})
		synctest.Wait()
		require.True(t, q.Abandon("a"))
		synctest.Wait()
		require.ErrorIs(t, cause, queue.ErrAbandoned)
		requireEmpty(t, q)
	})
}

// One Settle hangs, and the action behind it is abandoned before its own turn to be settled.
// It does not end a second time, which would remove the lane of a later action.
func TestAbandonBeforeSettle(t *testing.T) {
	for name, asked := range map[string]bool{"Done was called": true, "Done was not called": false} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				q := makeQueue(t, nil)
				require.NoError(t, q.PauseClass(""))
				hangs := takes("hangs", 0, nil)
				hangs.Settle = func(context.Context, queue.Outcome, error) { time.Sleep(time.Hour) }
				submit(t, q, "a", hangs)
				waits := submit(t, q, "a", takes("waits", 0, nil))
				if asked {
					waits.Done()
				}
				var panicked any
				go func() {
					defer func() { panicked = recover() }()
					remove := takes("remove", 0, nil)
					remove.Preempt = queue.PreemptQueued
					_, _ = q.Submit(t.Context(), "a", remove)
				}()
				synctest.Wait()
				require.True(t, q.Abandon("a"))
				require.True(t, q.Abandon("a"))
				require.Equal(t, queue.Superseded, waits.Outcome())
				require.NoError(t, q.ResumeClass(""))
				synctest.Wait()
				require.Equal(t, queue.Stats{Abandoned: 2}, q.Stats())
				first := submit(t, q, "a", takes("first", 3*time.Hour, nil))
				time.Sleep(2 * time.Hour) // Settle has returned
				synctest.Wait()
				require.Nil(t, panicked)
				second := submit(t, q, "a", takes("second", 0, nil))
				synctest.Wait()
				require.Equal(t, queue.Running, first.Info().State)
				require.Equal(t, queue.Waiting, second.Info().State)
				time.Sleep(2 * time.Hour)
				requireEmpty(t, q)
			})
		})
	}
}

// A panic or runtime.Goexit of a function of the action ends this action only.
func TestPanics(t *testing.T) {
	succeeds := func(context.Context) error { return nil }
	fails := func(context.Context) error { return errBoom }
	for name, act := range map[string]*queue.Action{
		"Run":           {Run: func(context.Context) error { panic(errBoom) }},
		"Guard":         {Run: succeeds, Guard: func(context.Context) error { panic(errBoom) }},
		"Settle":        {Run: succeeds, Settle: func(context.Context, queue.Outcome, error) { panic(errBoom) }},
		"Retry.If":      {Run: fails, Retry: queue.Retry{Attempts: 2, If: func(error) bool { panic(errBoom) }}},
		"Goexit Run":    {Run: func(context.Context) error { runtime.Goexit(); return nil }},
		"Goexit Guard":  {Run: succeeds, Guard: func(context.Context) error { runtime.Goexit(); return nil }},
		"Goexit Settle": {Run: succeeds, Settle: func(context.Context, queue.Outcome, error) { runtime.Goexit() }},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				q := makeQueue(t, nil)
				ticket := submit(t, q, "a", act)
				require.NoError(t, submit(t, q, "a", takes("behind", 0, nil)).Wait(t.Context()))
				require.Equal(t, queue.Panicked, ticket.Outcome())
				require.ErrorIs(t, ticket.Err(), queue.ErrPanic)
				var p *queue.PanicError
				require.ErrorAs(t, ticket.Err(), &p)
				if !p.Goexit {
					require.ErrorIs(t, p, errBoom)
					require.Contains(t, string(p.Stack), "TestPanics")
				}
				require.Equal(t, strings.HasPrefix(name, "Goexit"), p.Goexit)
				requireEmpty(t, q)
			})
		})
	}
	t.Run("Settle of a waiting action, in the caller of Cancel", func(t *testing.T) {
		in(t, func(t *testing.T) {
			q := makeQueue(t, nil)
			submit(t, q, "a", takes("running", time.Hour, nil))
			act := takes("waits", 0, nil)
			act.Settle = func(context.Context, queue.Outcome, error) { panic(errBoom) }
			waits := submit(t, q, "a", act)
			require.Equal(t, queue.Withdrawn, waits.Cancel(nil))
			require.ErrorIs(t, waits.Err(), queue.ErrPanic)
		})
	})
}

// An action that ignores the end of its context ends by what it returns. It is not
// retried, and it does not halt its lane if it was cancelled.
func TestActionIgnoresItsContext(t *testing.T) {
	for _, c := range []struct {
		name    string
		timeout time.Duration
		returns error
		want    queue.Outcome
	}{
		{"cancelled, returns nil", 0, nil, queue.OK},
		{"cancelled, returns its own error", 0, errBoom, queue.Failed},
		{"cancelled, returns the error of the context", 0, context.Canceled, queue.Canceled},
		{"late, returns nil", time.Second, nil, queue.OK},
		{"late, returns its own error", time.Second, errBoom, queue.Failed},
		{"late, returns the error of the context", time.Second, context.DeadlineExceeded, queue.TimedOut},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				q := makeQueue(t, &queue.Config[string]{HaltOnFailure: c.timeout == 0})
				act := stubborn("stubborn", time.Minute, c.returns)
				act.Timeout = c.timeout
				if c.timeout == 0 {
					act.Retry.Attempts = 5
				}
				ticket := submit(t, q, "a", act)
				synctest.Wait()
				if c.timeout == 0 {
					require.Equal(t, queue.Signalled, ticket.Cancel(nil))
					require.Equal(t, queue.Signalled, ticket.Cancel(errBoom))
				}
				require.ErrorIs(t, ticket.Wait(t.Context()), c.returns)
				require.Equal(t, c.want, ticket.Outcome())
				require.Equal(t, 1, ticket.Info().Attempt)
				requireEmpty(t, q)
			})
		})
	}
}

// The pauses double up to the longest one, and each is up to a quarter shorter.
func TestExponential(t *testing.T) {
	for name, c := range map[string]struct {
		first, longest time.Duration
		want           []time.Duration
	}{
		"doubles":               {time.Second, 5 * time.Second, []time.Duration{1e9, 2e9, 4e9, 5e9, 5e9}},
		"longest below first":   {time.Minute, time.Second, []time.Duration{60e9, 60e9}},
		"no pause":              {0, time.Second, []time.Duration{0, 0}},
		"negative":              {-time.Second, time.Second, []time.Duration{0, 0}},
		"the longest durations": {math.MaxInt64 - 1, math.MaxInt64, []time.Duration{math.MaxInt64 - 1, math.MaxInt64}},
	} {
		t.Run(name, func(t *testing.T) {
			backoff := queue.Exponential(c.first, c.longest)
			for i, want := range c.want {
				differ := map[time.Duration]bool{}
				for range 100 {
					pause := backoff(i+1, nil)
					require.LessOrEqual(t, pause, want)
					require.GreaterOrEqual(t, pause, want-want/4)
					differ[pause] = true
				}
				require.Equal(t, want > 0, len(differ) > 1, "attempt %d", i+1)
			}
			last := c.want[len(c.want)-1]
			require.LessOrEqual(t, backoff(math.MaxInt32, nil), last)
			require.GreaterOrEqual(t, backoff(math.MaxInt32, nil), last-last/4)
		})
	}
}

// A Backoff may answer by the error. It runs without a lock, its panic is that of the
// attempt, and a negative pause is none.
func TestBackoffOfTheCaller(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Observer: queue.Observer[string]{
			Retried: func(_ context.Context, e queue.FailedAttempt[string]) { require.Zero(t, e.Backoff, "-1 is no pause") },
		}})
		act := takes("a", 0, errBoom)
		act.Retry = queue.Retry{Attempts: 3, Backoff: func(attempts int, err error) time.Duration {
			require.Equal(t, errBoom, err)
			require.Equal(t, 1, q.Stats().Running, "the queue is not locked")
			if attempts == 2 {
				panic("out of pauses")
			}
			return -1
		}}
		ticket := submit(t, q, "a", act)
		require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrPanic)
		require.Equal(t, 2, ticket.Info().Attempt)
	})
}

func TestBackoffIsCalledBetweenAttempts(t *testing.T) {
	in(t, func(t *testing.T) {
		var calls []int
		act := takes("act", 0, errBoom)
		act.Retry = queue.Retry{Attempts: 3, Backoff: func(attempts int, _ error) time.Duration {
			calls = append(calls, attempts)
			return time.Second
		}}
		require.Equal(t, errBoom, submit(t, makeQueue(t, nil), "a", act).Wait(t.Context()))
		require.Equal(t, []int{1, 2}, calls, "not after the last one")
	})
}

func TestRetryOfAnErrorThatIsWorthIt(t *testing.T) {
	in(t, func(t *testing.T) {
		act := takes("act", 0, errBoom)
		act.Retry = queue.Retry{Attempts: 3, If: func(err error) bool { return err == errBoom }}
		ticket := submit(t, makeQueue(t, nil), "a", act)
		require.Equal(t, errBoom, ticket.Wait(t.Context()))
		require.Equal(t, 3, ticket.Info().Attempt)
	})
}

func TestLaneInfoOfAHaltedKey(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{HaltOnFailure: true})
		_ = submit(t, q, "a", takes("act", 0, errBoom)).Wait(t.Context())
		lanes := maps.Collect(q.All())
		require.Equal(t, map[string]queue.LaneInfo{"a": {Halted: true}}, lanes)
	})
}

func TestEveryFailureHaltsItsKey(t *testing.T) {
	for outcome, run := range map[queue.Outcome]func(context.Context) error{
		queue.Failed:   func(context.Context) error { return errBoom },
		queue.Panicked: func(context.Context) error { panic("boom") },
		queue.TimedOut: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		in(t, func(t *testing.T) {
			q := makeQueue(t, &queue.Config[string]{HaltOnFailure: true})
			ticket := submit(t, q, "a", &queue.Action{Timeout: time.Second, Run: run})
			require.Error(t, ticket.Wait(t.Context()))
			require.Equal(t, outcome, ticket.Outcome())
			require.True(t, q.Resume("a"), outcome)
		})
	}
}
