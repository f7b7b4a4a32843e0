package queue_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/queue"
)

// A delayed action holds up no other one. It enters its lanes at their ends.
func TestDelay(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		start := time.Now()
		later := takes("later", time.Second, nil)
		later.Delay = time.Minute
		later.QueueTimeout = 2 * time.Second // counts from the end of the delay
		first, err := q.SubmitAll(t.Context(), []string{"a", "b"}, later)
		require.NoError(t, err)
		seq := first.Seq()
		require.NoError(t, submit(t, q, "a", takes("now", 0, nil)).Wait(t.Context()))

		info := first.Info()
		require.Equal(t, queue.Delayed, info.State)
		require.Equal(t, start.Add(time.Minute), info.Due)
		require.Equal(t, queue.Stats{Keys: 2, Waiting: 1, Delayed: 1}, q.Stats(), "it waits for nothing, so it is not the oldest")
		for key, lane := range q.All() {
			require.Equal(t, queue.LaneInfo{Waiting: 1, Delayed: 1}, lane, key)
		}

		time.Sleep(time.Minute - time.Millisecond)
		front := submit(t, q, "b", takes("front", time.Second, nil))
		time.Sleep(2 * time.Millisecond)
		require.Equal(t, queue.Waiting, first.Info().State)
		require.Equal(t, 1, first.Info().Ahead)
		require.Greater(t, first.Seq(), front.Seq(), "its place is behind")
		require.Greater(t, first.Seq(), seq)
		require.Equal(t, time.Millisecond, q.Stats().OldestWaiting, "since the end of its delay")
		require.Equal(t, info.Due, maps.Collect(q.All())["a"].WaitingSince)
		require.NoError(t, first.Wait(t.Context()))
		require.Equal(t, start.Add(time.Minute+2*time.Second-time.Millisecond), time.Now())
		requireEmpty(t, q)
	})
}

// A delayed action counts under the limits from its acceptance, so that it has room
// when it is due.
func TestDelayedActionsCountUnderLimits(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 2, MaxWaiting: 3})
		later := takes("later", 0, nil)
		later.Delay = time.Minute
		submit(t, q, "a", later)
		submit(t, q, "a", later)
		_, err := q.Submit(t.Context(), "a", later)
		require.EqualError(t, err, "queue: full: key a: later refused, 2 waiting")
		submit(t, q, "b", later)
		_, err = q.Submit(t.Context(), "c", later)
		require.ErrorIs(t, err, queue.ErrFull, "three wait")
		require.NoError(t, q.Terminate(t.Context()))
	})
}

// Each way to end a waiting action ends a delayed one.
func TestDelayedActionsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*queue.Queuer[string], *queue.Ticket[string])
		want queue.Outcome
	}{
		"cancel":    {func(_ *queue.Queuer[string], t *queue.Ticket[string]) { t.Cancel(errBoom) }, queue.Canceled},
		"abort":     {func(q *queue.Queuer[string], _ *queue.Ticket[string]) { q.Abort(errBoom) }, queue.Aborted},
		"terminate": {func(q *queue.Queuer[string], _ *queue.Ticket[string]) { _ = q.Terminate(context.Background()) }, queue.OK},
		"stop":      {func(q *queue.Queuer[string], _ *queue.Ticket[string]) { _ = q.Stop(context.Background(), "a") }, queue.OK},
		"preempt": {func(q *queue.Queuer[string], _ *queue.Ticket[string]) {
			act := takes("delete", 0, nil)
			act.Preempt = queue.PreemptQueued
			_, _ = q.Submit(context.Background(), "a", act)
		}, queue.Superseded},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				q := makeQueue(t, nil)
				act := takes("later", 0, nil)
				act.Delay = time.Minute
				settled := 0
				act.Settle = func(context.Context, queue.Outcome, error) { settled++ }
				ticket := submit(t, q, "a", act)
				c.end(q, ticket)
				synctest.Wait()
				require.Equal(t, c.want, ticket.Outcome())
				require.Equal(t, 1, settled)
				time.Sleep(time.Hour)
				require.Equal(t, 1, settled)
				requireEmpty(t, q)
			})
		})
	}
}

// A drain reports the delayed actions that it waits for.
func TestStopWaitsForDelayedActions(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		act := takes("later", 0, nil)
		act.Delay = time.Minute
		submit(t, q, "a", act)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.EqualError(t, q.Stop(ctx, "a"), "queue: not drained: key a: 1 waiting, 0 running: context deadline exceeded")
		_, err := q.Submit(t.Context(), "a", act)
		require.ErrorIs(t, err, queue.ErrStopping)
		require.NoError(t, q.Stop(t.Context(), "a"))
		requireEmpty(t, q)
	})
}

// The place of a delayed action is not known yet, so it may come behind the action that
// waits for it, see wouldDeadlock.
func TestWaitForADelayedActionInsideAnAction(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		act := takes("later", 0, nil)
		act.Delay = time.Minute
		later := submit(t, q, "b", act)
		inside := submit(t, q, "a", &queue.Action{Run: func(ctx context.Context) error { return later.Wait(ctx) }})
		require.ErrorIs(t, inside.Wait(t.Context()), queue.ErrWouldDeadlock)
	})
}

// A request that comes while the action waits is answered by the action. One that comes
// while it runs is answered by the next action.
func TestCoalesce(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		act := takes("look", time.Second, nil)
		act.ID, act.Coalesce = "look at a", true
		first := submit(t, q, "a", act)
		synctest.Wait()
		second := submit(t, q, "a", act)
		require.NotSame(t, first, second, "the first one runs already")
		require.Same(t, second, submit(t, q, "a", act))
		require.Same(t, second, submit(t, q, "a", act))
		require.NoError(t, first.Wait(t.Context()))
		synctest.Wait()
		third := submit(t, q, "a", act)
		require.NotSame(t, second, third)
		require.Equal(t, queue.Withdrawn, third.Cancel(nil))
		fourth := submit(t, q, "a", act)
		require.NotSame(t, third, fourth, "the third one has ended")
		require.NoError(t, fourth.Wait(t.Context()))
		requireEmpty(t, q)

		plain := takes("look", 0, nil)
		plain.ID = act.ID
		submit(t, q, "a", act)
		_, err := q.Submit(t.Context(), "a", plain)
		require.ErrorIs(t, err, queue.ErrIDInUse, "one coalesces and one does not")
	})
}

// An action between two attempts has started: a request may be newer than what the first
// attempt has seen, and the queue does not know that the next one looks again.
func TestCoalesceBehindARetry(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Minute} {
		in(t, func(t *testing.T) {
			q := makeQueue(t, &queue.Config[string]{MaxRunning: 1})
			act := takes("look", time.Second, errBoom)
			act.ID, act.Coalesce, act.Retry = "look at a", true, queue.Retry{Attempts: 2, Backoff: pauses(pause)}
			first := submit(t, q, "a", act)
			submit(t, q, "b", takes("other", time.Hour, nil)) // the second attempt waits for it
			time.Sleep(time.Second)
			synctest.Wait()
			require.Equal(t, 1, first.Info().Attempt)
			second := submit(t, q, "a", act)
			require.NotSame(t, first, second)
			require.Same(t, second, submit(t, q, "a", act))
		})
	}
}

// A Settle that submits the next request gets a new action.
func TestCoalesceInSettle(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		act := takes("look", 0, nil)
		act.ID, act.Coalesce = "look at a", true
		again := *act
		var next *queue.Ticket[string]
		again.Settle = func(ctx context.Context, _ queue.Outcome, _ error) { next, _ = q.Submit(ctx, "a", act) }
		submit(t, q, "a", takes("front", time.Second, nil))
		waits := submit(t, q, "a", &again)
		require.Equal(t, queue.Withdrawn, waits.Cancel(nil))
		require.NoError(t, next.Wait(t.Context()))
		require.NotSame(t, waits, next)
		requireEmpty(t, q)
	})
}

// A request with a shorter delay brings the action forward, one with a longer delay does
// not put it off.
func TestCoalescedDelays(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, nil)
		start := time.Now()
		look := func(delay time.Duration) *queue.Ticket[string] {
			act := takes("look", 0, nil)
			act.ID, act.Coalesce, act.Delay = "look at a", true, delay
			return submit(t, q, "a", act)
		}
		ticket := look(time.Hour)
		require.Same(t, ticket, look(time.Minute))
		require.Same(t, ticket, look(time.Hour))
		require.NoError(t, ticket.Wait(t.Context()))
		require.Equal(t, start.Add(time.Minute), time.Now())

		ticket = look(time.Hour)
		require.Same(t, ticket, look(0))
		require.Equal(t, time.Now(), ticket.Info().Due)
		require.NoError(t, ticket.Wait(t.Context()))
		require.Equal(t, start.Add(time.Minute), time.Now())

		// The time at which the longest delay ends does not overflow.
		ticket = look(math.MaxInt64)
		require.Same(t, ticket, look(time.Hour))
		require.Same(t, ticket, look(math.MaxInt64))
		require.NoError(t, ticket.Wait(t.Context()))
		require.Equal(t, start.Add(time.Minute+time.Hour), time.Now())
		time.Sleep(2 * time.Hour)
		requireEmpty(t, q)
	})
}

// TestCoalesceModel compares the runs with the naive rule: a request sets a mark with the
// time at which it is due, the earliest request counts, a run begins when the mark is due
// and none runs, and it takes the mark away.
func TestCoalesceModel(t *testing.T) {
	checks(t, "2000", "200000")
	type step struct{ delay, pause time.Duration } // pause comes first
	rapid.Check(t, func(rt *rapid.T) {
		takes := time.Duration(rapid.IntRange(0, 4).Draw(rt, "takes")) * unit
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			return step{
				pause: time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * unit,
				delay: time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")) * unit,
			}
		}), 1, 30).Draw(rt, "steps")

		// No two things happen at the same time: requests come at whole units, delays end
		// half a moment later, runs end a moment later than they should.
		var want, got []time.Duration
		now, due, until, marked := time.Duration(0), time.Duration(0), time.Duration(0), false
		run := func(to time.Duration) {
			for begins := max(due, until); marked && begins <= to; begins = max(due, until) {
				want, marked = append(want, begins), false
				until = begins + takes + moment
			}
		}
		for _, s := range steps {
			now += s.pause
			run(now)
			at := now
			if s.delay > 0 {
				at += s.delay + moment/2
			}
			if !marked || at < due {
				due, marked = at, true
			}
			run(now)
		}
		run(1000 * unit)

		synctest.Test(t, func(t *testing.T) {
			q, start := queue.Must[string](nil), time.Now()
			act := queue.Action{ID: "a", Coalesce: true, Run: func(context.Context) error {
				got = append(got, time.Since(start))
				time.Sleep(takes + moment)
				return nil
			}}
			for _, s := range steps {
				time.Sleep(s.pause)
				synctest.Wait()
				act := act
				if act.Delay = s.delay; s.delay > 0 {
					act.Delay += moment / 2
				}
				if _, err := q.Submit(t.Context(), "a", &act); err != nil {
					rt.Error(err)
				}
				synctest.Wait()
			}
			if err := q.Terminate(t.Context()); err != nil {
				rt.Error(err)
			}
		})
		if !slices.Equal(want, got) {
			rt.Fatal(fmt.Sprint("runs at ", got, ", by the rule at ", want))
		}
	})
}
