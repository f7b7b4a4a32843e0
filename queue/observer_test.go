package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

func TestObserver(t *testing.T) {
	in(t, func(t *testing.T) {
		var log notes
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, Observer: queue.Observer[string]{
			Accepted: func(_ context.Context, e queue.Accepted[string]) {
				log.add(fmt.Sprint(e.Name, " accepted ", e.Keys, e.Ahead))
			},
			Started: func(_ context.Context, e queue.Started[string]) {
				log.add(fmt.Sprint(e.Name, " started attempt ", e.Attempt))
			},
			Retried: func(_ context.Context, e queue.FailedAttempt[string]) {
				log.add(fmt.Sprint(e.Name, " ", e.Failed, " ", e.Reason, " ", e.Backoff))
			},
			Finished: func(_ context.Context, e queue.Finished[string]) {
				log.add(fmt.Sprint(e.Name, " ", e.Outcome, " after attempts: ", e.Attempt))
			},
		}})
		fails := takes("fails", time.Second, errBoom)
		fails.Retry = queue.Retry{Attempts: 2, Backoff: pauses(time.Minute)}
		submit(t, q, "a", fails)
		synctest.Wait()
		next := submit(t, q, "a", takes("next", time.Second, nil))
		last := submit(t, q, "a", takes("last", time.Second, nil))
		last.Cancel(nil)
		refused := takes("no", 0, nil)
		refused.Admit = func(context.Context) error { return errBoom }
		_, err := q.SubmitAll(t.Context(), []string{"a", "b"}, refused)
		require.Error(t, err)
		require.NoError(t, next.Wait(t.Context()))
		require.Equal(t, []string{
			"fails accepted [a] 0",
			"fails started attempt 1",
			"next accepted [a] 1",
			"last accepted [a] 2",
			"last canceled after attempts: 0",
			"fails error boom 1m0s",
			"fails started attempt 2",
			"fails error after attempts: 2",
			"next started attempt 1",
			"next ok after attempts: 1",
		}, log.all())
	})
}

// The queue holds no lock while observers, Settle, Guard and Admit run. All of them may
// call the queue.
func TestObserverCallsBack(t *testing.T) {
	in(t, func(t *testing.T) {
		var q *queue.Queuer[string]
		look := func() {
			q.Stats()
			q.Inspect("a")
			q.Resume("a")
			for range q.All() {
			}
		}
		q = makeQueue(t, &queue.Config[string]{HaltOnFailure: true, Observer: queue.Observer[string]{
			Accepted: func(context.Context, queue.Accepted[string]) { look() },
			Started:  func(context.Context, queue.Started[string]) { look() },
			Retried:  func(context.Context, queue.FailedAttempt[string]) { look() },
			Finished: func(context.Context, queue.Finished[string]) { look() },
			Halted:   func(context.Context, queue.Halted[string]) { look() },
		}})
		act := &queue.Action{
			Admit:  func(context.Context) error { look(); return nil },
			Guard:  func(context.Context) error { look(); return nil },
			Settle: func(context.Context, queue.Outcome, error) { look() },
			Retry:  queue.Retry{Attempts: 2, If: func(error) bool { look(); return true }},
			Run:    func(context.Context) error { look(); return errBoom },
		}
		require.Equal(t, errBoom, submit(t, q, "a", act).Wait(t.Context()))
		_, err := q.Submit(t.Context(), "a", nil)
		require.Error(t, err)
		q.Resume("a")
		requireEmpty(t, q)
	})
}

func TestInspect(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxPerKey: 3, Classes: map[string]queue.Limit{"x/y": {}}})
		start := time.Now()
		act := takes("run", time.Minute, nil)
		act.ID, act.Class = "id", "x/y"
		ticket, err := q.SubmitAll(t.Context(), []string{"a", "b"}, act)
		require.NoError(t, err)
		synctest.Wait()
		time.Sleep(time.Second)
		submit(t, q, "a", takes("wait", 0, nil))
		time.Sleep(time.Second)
		require.Equal(t, queue.Info[string]{
			Keys: []string{"a", "b"}, Name: "run", ID: "id", Class: "x/y", Seq: 1, State: queue.Running,
			Attempt: 1, Accepted: start, Started: start,
		}, q.Inspect("a")[0])
		require.Equal(t, queue.Info[string]{
			Keys: []string{"a"}, Name: "wait", Seq: 2, State: queue.Waiting, Ahead: 1, Accepted: start.Add(time.Second),
		}, q.Inspect("a")[1])
		require.Len(t, q.Inspect("b"), 1)
		require.Empty(t, q.Inspect("c"))
		lanes := map[string]queue.LaneInfo{}
		for k, l := range q.All() {
			lanes[k] = l
		}
		require.Equal(t, map[string]queue.LaneInfo{
			"a": {Waiting: 1, Running: "run", RunningSince: start, WaitingSince: start.Add(time.Second)},
			"b": {Running: "run", RunningSince: start},
		}, lanes)
		for range q.All() {
			break
		}
		require.Equal(t, queue.Stats{
			Keys: 2, Running: 1, Waiting: 1, OldestWaiting: time.Second, LongestRunning: 2 * time.Second,
		}, q.Stats())
		require.NoError(t, q.Terminate(t.Context()))
		info := ticket.Info()
		require.Equal(t, []string{"a", "b"}, info.Keys, "also after the lanes have gone")
		require.Equal(t, start.Add(time.Minute), info.Ended)
		require.Equal(t, queue.Ended, info.State)
		require.Equal(t, queue.OK, info.Outcome)
	})
}

// The panic of an observer reaches the caller that ended a waiting action, after all of
// these actions have ended.
func TestObserverPanics(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, Observer: queue.Observer[string]{
			Finished: func(_ context.Context, e queue.Finished[string]) {
				if e.Name == "panics" {
					panic(errBoom)
				}
			},
		}})
		running := submit(t, q, "a", takes("running", time.Hour, nil))
		cancelled := submit(t, q, "a", takes("panics", 0, nil))
		require.PanicsWithValue(t, errBoom, func() { cancelled.Cancel(nil) })
		require.Equal(t, queue.Canceled, cancelled.Outcome())
		first := submit(t, q, "a", takes("panics", 0, nil))
		second := submit(t, q, "a", takes("second", 0, nil))
		require.PanicsWithValue(t, errBoom, func() { q.Abort(nil) })
		require.NoError(t, q.Terminate(t.Context()))
		for _, ticket := range []*queue.Ticket[string]{running, first, second} {
			require.Equal(t, queue.Aborted, ticket.Outcome())
		}
		requireEmpty(t, q)
	})
}

// In a goroutine of the queue, the panic of an observer becomes the outcome of the
// action, and the other functions are called.
func TestObserverPanicsInTheQueue(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic(errBoom) }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				var log notes
				out := func(what, name string) {
					log.add(what + " " + name)
					if name != "next" {
						end()
					}
				}
				q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, HaltOnFailure: true, Observer: queue.Observer[string]{
					Finished: func(_ context.Context, e queue.Finished[string]) { out("finished", e.Name) },
					Halted:   func(_ context.Context, e queue.Halted[string]) { out("halted", e.Failed.Name+e.Key) },
				}})
				fails, err := q.SubmitAll(t.Context(), []string{"a", "b"}, takes("fails", time.Second, errBoom))
				require.NoError(t, err)
				works := submit(t, q, "c", takes("works", time.Minute, nil))
				late := takes("late", 0, nil)
				late.QueueTimeout = 2 * time.Second
				expires := submit(t, q, "c", late)
				for _, ticket := range []*queue.Ticket[string]{fails, works, expires} {
					require.ErrorIs(t, ticket.Wait(t.Context()), queue.ErrPanic)
					require.Equal(t, queue.Panicked, ticket.Outcome())
				}
				require.NoError(t, submit(t, q, "c", takes("next", 0, nil)).Wait(t.Context()))
				require.Equal(t, []string{
					"finished fails", "halted failsa", "halted failsb", "finished late", "finished works", "finished next",
				}, log.all())
			})
		})
	}
}

// runtime.Goexit in Retried ends the goroutine. The queue still ends the action and starts
// the next one.
func TestGoexitInRetried(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1, Observer: queue.Observer[string]{
			Retried: func(context.Context, queue.FailedAttempt[string]) { runtime.Goexit() },
		}})
		fails := takes("fails", time.Second, errBoom)
		fails.Retry.Attempts = 2
		require.ErrorIs(t, submit(t, q, "a", fails).Wait(t.Context()), queue.ErrPanic)
		require.NoError(t, submit(t, q, "a", takes("next", time.Second, nil)).Wait(t.Context()))
		requireEmpty(t, q)
	})
}

func TestFinishedHasTheTimeOfTheEnd(t *testing.T) {
	in(t, func(t *testing.T) {
		var ended time.Time
		q := makeQueue(t, &queue.Config[string]{Observer: queue.Observer[string]{
			Finished: func(_ context.Context, e queue.Finished[string]) { ended = e.Ended },
		}})
		ticket := submit(t, q, "a", takes("act", time.Second, nil))
		require.NoError(t, ticket.Wait(t.Context()))
		require.Equal(t, ticket.Info().Ended, ended)
	})
}

// A key that becomes idle during the iteration is omitted.
func TestAllOmitsAKeyThatBecameIdle(t *testing.T) {
	q := makeQueue(t, nil)
	require.NoError(t, q.PauseClass(""))
	tickets := map[string]*queue.Ticket[string]{}
	for _, key := range []string{"a", "b"} {
		tickets[key] = submit(t, q, key, takes("waits", 0, nil))
	}
	seen := 0
	for range q.All() {
		seen++
		for _, ticket := range tickets {
			ticket.Cancel(nil)
		}
	}
	require.Equal(t, 1, seen)
}
