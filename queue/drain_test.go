package queue_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/queue"
)

// crowd is a queue with an action in every state. Each key is named after a state.
type crowd struct {
	q *queue.Queuer[string]
	t map[string]*queue.Ticket[string]
}

func makeCrowd(t *testing.T) *crowd {
	c := &crowd{makeQueue(t, &queue.Config[string]{HaltOnFailure: true}), map[string]*queue.Ticket[string]{}}
	add := func(key string, act *queue.Action) { c.t[act.Name] = submit(t, c.q, key, act) }
	add("halted", takes("failed", 0, errBoom))
	synctest.Wait()
	add("halted", takes("behind halted", time.Second, nil))
	retrying := takes("retrying", 0, errBoom)
	retrying.Retry = queue.Retry{Attempts: 2, Backoff: pauses(time.Minute)}
	add("retrying", retrying)
	add("running", takes("running", time.Minute, nil))
	add("running", takes("waiting", time.Second, nil))
	settling := takes("settling", 0, nil)
	settling.Settle = func(context.Context, queue.Outcome, error) { time.Sleep(time.Minute) }
	add("settling", settling)
	go func() {
		admitting := takes("admitting", time.Second, nil)
		admitting.Admit = func(context.Context) error { time.Sleep(time.Minute); return nil }
		c.t["admitting"], _ = c.q.Submit(t.Context(), "admitting", admitting)
	}()
	synctest.Wait()
	s := c.q.Stats()
	require.Equal(t, []int{5, 2, 4, 1, 1, 1}, []int{s.Keys, s.Running, s.Waiting, s.Retrying, s.Admitting, s.Halted})
	return c
}

func (c *crowd) outcomes() map[string]string {
	o := map[string]string{}
	for name, ticket := range c.t {
		o[name] = ticket.Outcome().String()
	}
	return o
}

func TestTerminateInEveryState(t *testing.T) {
	in(t, func(t *testing.T) {
		c := makeCrowd(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := c.q.Terminate(ctx)
		require.ErrorIs(t, err, queue.ErrNotDrained)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, "queue: not drained: 1 waiting, 0 running: context deadline exceeded")
		_, err = c.q.Submit(t.Context(), "a", takes("late", 0, nil))
		require.EqualError(t, err, "queue: terminated: late refused, 1 waiting")
		require.True(t, c.q.Resume("halted"))
		require.NoError(t, c.q.Terminate(t.Context()))
		require.NoError(t, c.q.Terminate(t.Context()))
		synctest.Wait()
		require.Equal(t, map[string]string{
			"failed": "error", "behind halted": "ok", "retrying": "error", "running": "ok",
			"waiting": "ok", "settling": "ok", "admitting": "ok",
		}, c.outcomes())
		requireEmpty(t, c.q)
	})
}

func TestAbortInEveryState(t *testing.T) {
	in(t, func(t *testing.T) {
		c := makeCrowd(t)
		c.q.Abort(errBoom)
		c.q.Abort(nil) // the first cause counts
		require.NoError(t, c.q.Terminate(t.Context()))
		synctest.Wait()
		require.Equal(t, map[string]string{
			"failed": "error", "behind halted": "aborted", "retrying": "aborted", "running": "aborted",
			"waiting": "aborted", "settling": "ok", "admitting": "aborted",
		}, c.outcomes())
		for _, name := range []string{"waiting", "running", "admitting"} {
			require.ErrorIs(t, c.t[name].Err(), queue.ErrAborted)
			require.ErrorIs(t, c.t[name].Err(), errBoom)
		}
		requireEmpty(t, c.q)
	})
}

func TestAbortInOrder(t *testing.T) {
	in(t, func(t *testing.T) {
		q := makeQueue(t, &queue.Config[string]{MaxRunning: 1})
		var want []string
		var ended notes
		for i := range 30 {
			act := takes(fmt.Sprint(i), time.Hour, nil)
			act.Settle = func(context.Context, queue.Outcome, error) { ended.add(act.Name) }
			submit(t, q, fmt.Sprint(i%7), act)
			want = append(want, act.Name)
		}
		synctest.Wait()
		q.Abort(nil)
		require.NoError(t, q.Terminate(t.Context()))
		// Waiting actions end in the order of their submits, and then the running one.
		require.Equal(t, append(want[1:], want[0]), ended.all())
	})
}

func TestStopInEveryState(t *testing.T) {
	in(t, func(t *testing.T) {
		c := makeCrowd(t)
		start := time.Now()
		var stops errgroup.Group
		var mu sync.Mutex
		done := map[string]time.Duration{}
		for _, key := range []string{"retrying", "running", "settling", "admitting", "halted", "nothing"} {
			stops.Go(func() error {
				err := c.q.Stop(t.Context(), key)
				mu.Lock()
				defer mu.Unlock()
				done[key] = time.Since(start)
				return err
			})
			synctest.Wait()
			if key != "nothing" {
				_, err := c.q.Submit(t.Context(), key, takes("late", 0, nil))
				require.ErrorIs(t, err, queue.ErrStopping)
				require.True(t, maps.Collect(c.q.All())[key].Stopping, key)
			}
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		s := time.Second
		require.Equal(t, map[string]time.Duration{
			"retrying": 60 * s, "running": 61 * s, "settling": 60 * s, "admitting": 61 * s, "nothing": 0,
		}, done)
		require.True(t, c.q.Resume("halted"))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 3601*s, done["halted"].Truncate(s))
		require.NoError(t, stops.Wait())
		requireEmpty(t, c.q)
		require.NoError(t, submit(t, c.q, "halted", takes("anew", 0, nil)).Wait(t.Context()))
	})
	in(t, func(t *testing.T) {
		// Stop and Terminate remove a lane that is halted and empty.
		q := makeQueue(t, &queue.Config[string]{HaltOnFailure: true})
		require.Error(t, submit(t, q, "a", takes("fails", 0, errBoom)).Wait(t.Context()))
		require.Equal(t, queue.Stats{Keys: 1, Halted: 1}, q.Stats())
		require.NoError(t, q.Stop(t.Context(), "a"))
		requireEmpty(t, q)
		require.Error(t, submit(t, q, "a", takes("fails", 0, errBoom)).Wait(t.Context()))
		require.NoError(t, q.Terminate(t.Context()))
		requireEmpty(t, q)
	})
}

// TestDrainNeverEarly lets Terminate race with workers that pause wherever they can.
// Every accepted action has ended when Terminate returns.
func TestDrainNeverEarly(t *testing.T) {
	rounds := 10_000
	if os.Getenv("INTERLOCK_LONG") != "" {
		rounds = 200_000
	}
	for round := range rounds {
		rnd := rand.New(rand.NewPCG(uint64(round), 1))
		pause := func(n uint64) {
			for range n % 4 {
				runtime.Gosched()
			}
			if n%50 == 0 {
				time.Sleep(20 * time.Microsecond)
			}
		}
		config := &queue.Config[string]{MaxRunning: 1 + rnd.IntN(3)}
		var reported atomic.Int64
		if rnd.IntN(2) == 0 {
			config.Observer.Finished = func(_ context.Context, e queue.Finished[string]) { pause(e.Seq); reported.Add(1) }
		}
		q := queue.Must(config)
		var accepted, ran, owed, settled atomic.Int64
		n := 1 + rnd.IntN(20)
		seeds := make([]uint64, n)
		for i := range seeds {
			seeds[i] = rnd.Uint64()
		}
		started := make(chan struct{})
		go func() {
			for i, seed := range seeds {
				settles := seed%3 == 0
				act := &queue.Action{Run: func(context.Context) error {
					pause(seed)
					ran.Add(1)
					if settles {
						owed.Add(1)
					}
					return nil
				}}
				if settles {
					act.Settle = func(context.Context, queue.Outcome, error) { pause(seed / 3); settled.Add(1) }
				}
				if seed%5 == 0 {
					act.Admit = func(context.Context) error { pause(seed / 5); return nil }
				}
				accepted.Add(1)
				if _, err := q.Submit(context.Background(), fmt.Sprint(seed%4), act); err != nil {
					accepted.Add(-1)
				}
				if i == n/2 {
					close(started)
				}
			}
		}()
		<-started
		if err := q.Terminate(context.Background()); err != nil {
			t.Fatal(err)
		}
		if settled.Load() != owed.Load() {
			t.Fatalf("round %d: %d of %d were settled when the drain returned", round, settled.Load(), owed.Load())
		}
		// accepted also counts, for a moment, a submit that the queue refuses now.
		ended := ran.Load()
		if s := q.Stats(); s != (queue.Stats{}) {
			t.Fatalf("round %d: left %+v", round, s)
		}
		for q.Stats(); accepted.Load() != ended; runtime.Gosched() {
			if ran.Load() != ended {
				t.Fatalf("round %d: something ran after the drain", round)
			}
		}
		if config.Observer.Finished != nil && reported.Load() != ended {
			t.Fatalf("round %d: %d ran, %d were reported", round, ended, reported.Load())
		}
	}
}
