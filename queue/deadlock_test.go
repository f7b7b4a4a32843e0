package queue_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/queue"
)

// waiter is an action that waits for another one inside its Run.
type waiter struct {
	keys     []string
	class    string
	submit   int // the second
	work     int // seconds before the wait
	settle   int // seconds
	cancel   int // the second; only if it is after submit
	awaited  int // the number of the other action
	preempts bool
}

// Whatever actions wait for each other, under limits, cancels and pauses, all of them end.
func TestWaitsInsideAtRandom(t *testing.T) {
	checks(t, "3000", "300000")
	classes := []string{"", "p", "p/a", "p/b", "r"}
	draw := rapid.Custom(func(t *rapid.T) waiter {
		small := rapid.IntRange(0, 5)
		return waiter{
			keys:  rapid.SliceOfNDistinct(rapid.SampledFrom(modelKeys), 1, 2, rapid.ID).Draw(t, "keys"),
			class: rapid.SampledFrom(classes).Draw(t, "class"), submit: small.Draw(t, "submit"), work: small.Draw(t, "work"),
			settle: small.Draw(t, "settle"), cancel: small.Draw(t, "cancel"),
			awaited: rapid.IntRange(0, 9).Draw(t, "awaited"), preempts: rapid.IntRange(0, 5).Draw(t, "preempts") == 0,
		}
	})
	rapid.Check(t, func(rt *rapid.T) {
		waiters := rapid.SliceOfN(draw, 3, 10).Draw(rt, "waiters")
		most, children := rapid.IntRange(1, 4).Draw(rt, "most"), rapid.IntRange(0, 2).Draw(rt, "children")
		paused, pause := rapid.SampledFrom(classes).Draw(rt, "paused"), rapid.IntRange(0, 5).Draw(rt, "pause")
		var left error
		synctest.Test(t, func(t *testing.T) {
			q := makeQueue(t, &queue.Config[string]{Classes: map[string]queue.Limit{
				"": {MaxRunning: most}, "p": {MaxRunning: 2, MaxChildren: children}, "p/a": {}, "p/b": {}, "r": {},
			}})
			left = play(t.Context(), q, waiters, func() {
				second(pause)
				_ = q.PauseClass(paused)
				second(4)
				_ = q.ResumeClass(paused)
			})
		})
		if left != nil {
			rt.Fatal(left)
		}
	})
}

func second(n int) { time.Sleep(time.Duration(n) * time.Second) }

// play submits the actions, calls f meanwhile, and drains the queue.
func play(ctx context.Context, q *queue.Queuer[string], waiters []waiter, f func()) error {
	var mu sync.Mutex
	tickets := make([]*queue.Ticket[string], 10)
	var all sync.WaitGroup
	all.Go(f)
	for i, w := range waiters {
		act := &queue.Action{
			Class: w.class,
			Run: func(ctx context.Context) error {
				second(w.work)
				mu.Lock()
				awaited := tickets[w.awaited]
				mu.Unlock()
				if awaited == nil {
					return nil
				}
				return awaited.Wait(ctx)
			},
			Settle: func(context.Context, queue.Outcome, error) { second(w.settle) },
		}
		if w.preempts {
			act.Preempt = queue.PreemptQueued
		}
		all.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond) // no two at the same moment
			second(w.submit)
			ticket, err := q.SubmitAll(ctx, w.keys, act)
			if err != nil {
				return
			}
			mu.Lock()
			tickets[i] = ticket
			mu.Unlock()
			if w.cancel > w.submit {
				second(w.cancel - w.submit)
				ticket.Cancel(nil)
			}
		})
	}
	all.Wait()
	limited, stop := context.WithTimeout(ctx, time.Hour)
	defer stop()
	err := q.Terminate(limited)
	if err != nil { // the bubble needs the end of all actions
		q.Abort(nil)
		_ = q.Terminate(ctx)
	}
	return err
}
