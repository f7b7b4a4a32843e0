package queue_test

import (
	"context"
	"fmt"
	"runtime"
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
			Retry: queue.Retry{Attempts: 5, Backoff: []time.Duration{time.Second, time.Minute}},
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
		asked := 0
		act := takes("act", 0, errBoom)
		act.Retry = queue.Retry{Attempts: 3, If: func(err error) bool { asked++; return err != errBoom }}
		require.Equal(t, errBoom, submit(t, q, "a", act).Wait(t.Context()))
		require.Equal(t, 1, asked)
		// Panics are not tried again, time-outs are.
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

func TestTimeoutOfStubborn(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		for want, returns := range map[queue.Outcome]error{queue.OK: nil, queue.Failed: errBoom, queue.TimedOut: context.DeadlineExceeded} {
			act := stubborn("stubborn", time.Hour, returns)
			act.Timeout = time.Minute
			require.Equal(t, want, outcome(t, submit(t, q, "a", act)))
		}
	})
}

func TestHaltResume(t *testing.T) {
	in(t, func(t *testing.T) {
		var halted []string
		q := makeQueue(t, &queue.Config[string]{HaltOnFailure: true, Observer: queue.Observer[string]{
			Halted: func(_ context.Context, h queue.Halted[string]) { halted = append(halted, h.Key+" "+h.Failed.Name) },
		}})
		_, err := q.SubmitAll(t.Context(), []string{"a", "b"}, takes("fails", 0, errBoom))
		require.NoError(t, err)
		one := submit(t, q, "a", takes("one", 0, nil))
		two := submit(t, q, "a", takes("two", 0, errBoom))
		three := submit(t, q, "a", takes("three", 0, nil))
		synctest.Wait()
		require.Equal(t, []string{"a fails", "b fails"}, halted)
		require.Equal(t, queue.Stats{Keys: 2, Waiting: 3, Halted: 2}, q.Stats())
		require.True(t, q.Resume("a"))
		require.Equal(t, queue.OK, outcome(t, one))
		require.Equal(t, queue.Failed, outcome(t, two))
		require.Equal(t, queue.Pending, three.Outcome())
		require.True(t, q.Resume("a"))
		require.Equal(t, queue.OK, outcome(t, three))
		require.False(t, q.Resume("a"))
		require.True(t, q.Resume("b"))
		require.False(t, q.Resume("b"))
		requireEmpty(t, q)
	})
}

func TestAbandon(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, HaltOnFailure: true})
		require.False(t, q.Abandon("a"))
		var settled []queue.Outcome
		act := stubborn("stuck", time.Hour, nil)
		act.Settle = func(_ context.Context, o queue.Outcome, _ error) { settled = append(settled, o) }
		stuck, err := q.SubmitAll(t.Context(), []string{"a", "b"}, act)
		require.NoError(t, err)
		behind := submit(t, q, "b", takes("behind", 0, nil))
		synctest.Wait()
		require.False(t, q.Abandon("c"))
		require.True(t, q.Abandon("b"))
		require.ErrorIs(t, stuck.Wait(t.Context()), queue.ErrAbandoned)
		require.NoError(t, behind.Wait(t.Context()))
		require.Equal(t, queue.Stats{Abandoned: 1}, q.Stats())
		time.Sleep(2 * time.Hour)
		require.Equal(t, queue.Abandoned, stuck.Outcome(), "the late result is not looked at")
		require.Equal(t, []queue.Outcome{queue.Abandoned}, settled)
		require.Zero(t, q.Stats())

		// One that hangs in Settle keeps the outcome it had.
		act = takes("hangs", 0, nil)
		act.Settle = func(context.Context, queue.Outcome, error) { time.Sleep(time.Hour) }
		hangs := submit(t, q, "a", act)
		synctest.Wait()
		require.True(t, q.Abandon("a"))
		require.NoError(t, hangs.Wait(t.Context()))
		require.Equal(t, 1, q.Stats().Abandoned)
		time.Sleep(2 * time.Hour)
		require.Zero(t, q.Stats())

		// Waiting ones are not to be abandoned, but cancelled.
		fails := takes("fails", 0, errBoom)
		submit(t, q, "a", fails)
		waits := submit(t, q, "a", takes("waits", 0, nil))
		synctest.Wait()
		require.False(t, q.Abandon("a"))
		waits.Cancel(nil)
	})
}

func TestPanicsElsewhere(t *testing.T) {
	// In Guard, Settle and Retry.If: the outcome of that action, nothing else.
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		rows := map[string]*queue.Action{
			"guard":            {Guard: func(context.Context) error { panic(errBoom) }},
			"settle":           {Settle: func(context.Context, queue.Outcome, error) { panic(errBoom) }},
			"if":               {Retry: queue.Retry{Attempts: 2, If: func(error) bool { panic(errBoom) }}},
			"goexit in guard":  {Guard: func(context.Context) error { runtime.Goexit(); return nil }},
			"goexit in settle": {Settle: func(context.Context, queue.Outcome, error) { runtime.Goexit() }},
		}
		for name, act := range rows {
			act.Run = func(context.Context) error {
				if name == "if" {
					return errBoom
				}
				return nil
			}
			ticket := submit(t, q, "a", act)
			behind := submit(t, q, "a", takes("behind", 0, nil))
			require.NoError(t, behind.Wait(t.Context()), name)
			require.Equal(t, queue.Panicked, ticket.Outcome(), name)
			require.ErrorIs(t, ticket.Err(), queue.ErrPanic)
		}
		// Settle of a waiting action runs in the goroutine of the call that ends it.
		hold := submit(t, q, "a", takes("hold", time.Hour, nil))
		act := takes("waits", 0, nil)
		act.Settle = func(context.Context, queue.Outcome, error) { panic(errBoom) }
		waits := submit(t, q, "a", act)
		require.Equal(t, queue.Withdrawn, waits.Cancel(nil))
		require.ErrorIs(t, waits.Err(), queue.ErrPanic)
		hold.Cancel(nil)
		<-hold.Done()
		requireEmpty(t, q)
	})
}

func TestExpire(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1})
		submit(t, q, "a", takes("a", time.Minute, nil))
		var settled []queue.Outcome
		act := takes("b", time.Hour, errBoom)
		act.QueueTimeout = time.Second
		act.Settle = func(_ context.Context, o queue.Outcome, _ error) { settled = append(settled, o) }
		for _, key := range []string{"a", "b"} { // behind one that runs, and ready
			require.ErrorIs(t, submit(t, q, key, act).Wait(t.Context()), queue.ErrExpired)
		}
		require.Equal(t, []queue.Outcome{queue.Expired, queue.Expired}, settled)
		// Once started, it has all the time in the world, also between attempts.
		act = takes("c", time.Minute, errBoom)
		act.QueueTimeout = 2 * time.Minute
		act.Retry = queue.Retry{Attempts: 2, Backoff: []time.Duration{time.Hour}}
		require.Equal(t, errBoom, submit(t, q, "c", act).Wait(t.Context()))
		requireEmpty(t, q)
	})
}

// A back-off keeps the place in every lane: no action comes in between, in the
// second lane as little as in the first.
func TestBackoffKeepsEveryLane(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		fails := true
		act := &queue.Action{
			Retry: queue.Retry{Attempts: 2, Backoff: []time.Duration{time.Minute}},
			Run: func(context.Context) error {
				if fails {
					fails = false
					return errBoom
				}
				return nil
			},
		}
		ticket, err := q.SubmitAll(t.Context(), []string{"disk", "vm", "net"}, act)
		require.NoError(t, err)
		var behind []*queue.Ticket[string]
		for _, key := range []string{"disk", "vm", "net"} {
			behind = append(behind, submit(t, q, key, takes("behind", 0, nil)))
		}
		time.Sleep(time.Second)
		require.Equal(t, queue.Retrying, ticket.Info().State)
		for _, b := range behind {
			require.Equal(t, queue.Waiting, b.Info().State)
		}
		for _, b := range behind {
			require.NoError(t, b.Wait(t.Context()))
			require.Equal(t, queue.OK, ticket.Outcome())
		}
		requireEmpty(t, q)
	})
}

// A pre-empting action ends one that is between two attempts, at once.
func TestPreemptEndsBackoff(t *testing.T) {
	for _, preempt := range []queue.Preempt{queue.PreemptQueued, queue.PreemptRunning} {
		in(t, func(t *testing.T) {
			q := makeQueue(t, nil)
			ticket := submit(t, q, "a", &queue.Action{
				Retry: queue.Retry{Attempts: 2, Backoff: []time.Duration{time.Hour}},
				Run:   func(context.Context) error { return errBoom },
			})
			time.Sleep(time.Second)
			require.Equal(t, queue.Retrying, ticket.Info().State)
			began := time.Now()
			remove := submit(t, q, "a", &queue.Action{Preempt: preempt, Run: func(context.Context) error { return nil }})
			require.NoError(t, remove.Wait(t.Context()))
			require.Zero(t, time.Since(began))
			require.Equal(t, queue.Superseded, ticket.Outcome())
			require.ErrorIs(t, ticket.Err(), queue.ErrSuperseded)
			require.ErrorIs(t, ticket.Err(), errBoom, "the error of the last attempt is kept")
			requireEmpty(t, q)
		})
	}
}

// A repeated ID waits for the answer of the first one's admission, however the
// two meet: in real time, because the race is between two instructions.
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

// An action that waits inside for a class whose children are full of itself is
// refused, and so is one that would wait for room.
func TestWaitingInsideIsRefused(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{"aws": {MaxChildren: 1}, "aws/a": {}, "aws/b": {}}})
		outer := submit(t, q, "a", &queue.Action{Class: "aws/a", Run: func(ctx context.Context) error {
			inner, err := q.Submit(ctx, "b", &queue.Action{Class: "aws/b", Run: func(context.Context) error { return nil }})
			if err != nil {
				return err
			}
			return inner.Wait(ctx)
		}})
		require.ErrorIs(t, outer.Wait(t.Context()), queue.ErrWouldDeadlock)
	})
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, MaxWaiting: 1})
		outer := submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error {
			_, err := q.Submit(ctx, "b", &queue.Action{Wait: true, Run: func(context.Context) error { return nil }})
			return err
		}})
		submit(t, q, "c", takes("waits", 0, nil))
		require.ErrorIs(t, outer.Wait(t.Context()), queue.ErrWouldDeadlock)
	})
}

// An action that is interrupted while its guard runs ends: a pre-empted action
// must leave the state to its successor, which a skipped one would put back.
func TestPreemptWhileGuardIsAsked(t *testing.T) {
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

// A second delete gets past one that hangs.
func TestPreemptRunningPreempts(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		first := takes("delete", time.Hour, nil)
		first.Preempt = queue.PreemptQueued
		hangs := submit(t, q, "a", first)
		second := submit(t, q, "a", &queue.Action{Preempt: queue.PreemptRunning, Run: func(context.Context) error { return nil }})
		began := time.Now()
		require.NoError(t, second.Wait(t.Context()))
		require.Zero(t, time.Since(began))
		require.Equal(t, queue.Preempted, hangs.Outcome())
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
		require.Equal(t, "migrate", refused.Running)
		require.Equal(t, 1, refused.Waiting)
	})
}
