package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestDeadlineOfAnotherProcess: a report that another process applies extends the deadline
// while the work runs. When the work ends, its first deadline has passed, and the present one
// has not: an attempt that fails is followed by another one, and a success is written after
// an outage of the store.
func TestDeadlineOfAnotherProcess(t *testing.T) {
	for name, c := range map[string]struct {
		fails   int32 // attempts
		outage  bool  // of commits when the work ends
		silent  bool  // the store does not answer at all when the work ends
		sweeps  bool  // before that
		overdue bool  // no report has extended the deadline
	}{
		"attempt":                  {fails: 1},
		"overdue attempt":          {fails: 1, overdue: true},
		"outage of commits":        {outage: true},
		"outage after a sweep":     {outage: true, silent: true, sweeps: true},
		"attempt before an outage": {fails: 1, outage: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			dead := &mortal{MemoryStore: store.MemoryStore}
			var down atomic.Bool
			var attempts atomic.Int32
			store.onCommit = func(_ int, _ *lifecycle.Commit, write func() error) error {
				if down.Load() {
					return lifecycle.ErrUnavailable
				}
				return write()
			}
			var line lifecycle.Store = store
			if c.silent {
				line = dead
			}
			m := workers(line, lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{"reboot": func(context.Context, []byte) error {
				time.Sleep(70 * time.Second)
				if attempts.Add(1) <= c.fails {
					return errBoom
				}
				return nil
			}}})
			running(t, m, "a")
			ticket := do(t, m, "a", "reboot", user, lifecycle.Work{Handler: "reboot", Retries: lifecycle.Retries{Attempts: 2}}, nil)
			other := workers(store.MemoryStore, lifecycle.Config[event]{})
			time.Sleep(50 * time.Second)
			if !c.overdue {
				require.Equal(t, lifecycle.Applied, report(t, other, "a", ticket.Operation(), "progress", "worker", ""))
			}
			time.Sleep(15 * time.Second)
			if c.sweeps {
				require.Empty(t, sweep(t, m))
			}
			down.Store(c.outage)
			dead.dead.Store(c.outage)
			time.Sleep(10 * time.Second)
			down.Store(false)
			dead.dead.Store(false)
			require.EqualValues(t, "running", wait(t, ticket).State)
			require.Equal(t, c.fails+1, attempts.Load())
		})
	}
}

// TestDeadlineOfALateRead: a sweep reads an operation that waits for its turn and has no deadline
// yet. It gets the answer when the turn has set one. The outcome is given up at that deadline.
func TestDeadlineOfALateRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, free := blocked(t, "work-vm")
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Queue: q, Owner: join(t, store, "p", 24*time.Hour)})
		running(t, m, "a")
		ticket := do(t, m, "a", "stop", user, sleeping(time.Second), nil)
		late := make(chan struct{})
		store.reset()
		store.afterGet = func(n int) {
			if n == 1 {
				<-late
			}
		}
		var swept errgroup.Group
		swept.Go(func() error { _, err := m.Sweep(t.Context()); return err })
		synctest.Wait()
		free()
		synctest.Wait() // the work has begun
		require.False(t, get(t, m, "a").Deadline.IsZero())
		close(late)
		require.NoError(t, swept.Wait())
		store.onCommit = func(int, *lifecycle.Commit, func() error) error { return lifecycle.ErrUnavailable }
		began := time.Now()
		require.ErrorIs(t, outcomeOf(t, ticket).Unwritten, lifecycle.ErrUnavailable)
		require.LessOrEqual(t, time.Since(began), time.Minute)
	})
}
