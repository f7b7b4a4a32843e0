package lifecycle_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// TestHeartbeat: the sweeper leaves work alone that sends heartbeats, however long
// it takes.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m, other := workers(store, lifecycle.Config[event]{}), workers(store, lifecycle.Config[event]{})
		running(t, m, "a")
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
			for range 10 {
				time.Sleep(50 * time.Second)
				before, err := m.Get(ctx, "a")
				require.NoError(t, err)
				require.NoError(t, lifecycle.TaskOf(ctx).Heartbeat(ctx))
				after, err := m.Get(ctx, "a")
				require.NoError(t, err)
				require.Equal(t, time.Now().Add(time.Minute), after.Deadline)
				require.NotEqual(t, before.Revision, after.Revision)
				before.Deadline, before.Revision = after.Deadline, after.Revision
				require.Equal(t, before, after)
			}
			return nil
		}), nil)
		for range 20 {
			time.Sleep(20 * time.Second)
			require.Empty(t, sweep(t, other))
		}
		wait(t, ticket)
		require.Equal(t, []string{"3: running -stop-> stopping by user", "3: stopping -done-> stopped by worker"}, story(t, m, "a", 4))
	})
}

// TestHeartbeatOfStore: what the store answers to a heartbeat.
func TestHeartbeatOfStore(t *testing.T) {
	cases := map[string]struct {
		onCommit func(t *testing.T, s *hooked) func(n int, c *lifecycle.Commit, write func() error) error
		is       error
	}{
		"an answer is lost": {onCommit: func(t *testing.T, s *hooked) func(int, *lifecycle.Commit, func() error) error {
			return func(n int, c *lifecycle.Commit, write func() error) error {
				if n == 1 {
					return s.lose(t, c)
				}
				return write()
			}
		}},
		"no answer is ever seen": {is: lifecycle.ErrUnknownOutcome, onCommit: func(t *testing.T, s *hooked) func(int, *lifecycle.Commit, func() error) error {
			return func(_ int, c *lifecycle.Commit, _ func() error) error { return s.lose(t, c) }
		}},
		"it fails": {is: errBoom, onCommit: func(*testing.T, *hooked) func(int, *lifecycle.Commit, func() error) error {
			return func(int, *lifecycle.Commit, func() error) error { return errBoom }
		}},
	}
	for name, c := range cases {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			m := workers(store, lifecycle.Config[event]{})
			running(t, m, "a")
			ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
				time.Sleep(time.Second)
				store.reset()
				store.onCommit = c.onCommit(t, store)
				err := lifecycle.TaskOf(ctx).Heartbeat(ctx)
				store.reset()
				require.ErrorIs(t, err, c.is)
				require.NoError(t, ctx.Err(), "the operation was not taken away")
				return nil
			}), nil)
			wait(t, ticket)
			require.Len(t, story(t, m, "a", 4), 2)
		})
	}
}

// TestRudeWork: work ignores its context and never returns. The sweeper takes the
// operation away at the deadline. The work keeps its turn in the queue until it is
// abandoned.
func TestRudeWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := new(queue.Queuer[lifecycle.Key])
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
		running(t, m, "a")
		never := make(chan struct{})
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
			<-never
			lifecycle.EditOutcome(ctx, func(s *size) error { s.N = 99; return nil })
			return nil
		}), nil)
		time.Sleep(time.Minute + 1)
		require.Equal(t, lifecycle.Moved, sweep(t, m)[0].Resolution)
		next := do(t, m, "a", "stop", user, lifecycle.Func(fine), nil)
		time.Sleep(time.Second)
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := next.Wait(soon)
		require.ErrorIs(t, err, queue.ErrPending, "never two at once")

		require.True(t, q.Abandon(lifecycle.Key{Machine: "work-vm", ID: "a"}))
		require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
		rec := wait(t, next)
		close(never)
		synctest.Wait()
		require.Equal(t, rec, get(t, m, "a"), "what it returned at last counts for nothing")
	})
}

// TestAbandoned: work that is abandoned while its operation is still its own has
// been cancelled, also if it ends at that moment.
func TestAbandoned(t *testing.T) {
	for name, obeys := range map[string]bool{"obeys": true, "does not": false} {
		inBubble(t, name, func(t *testing.T) {
			q := new(queue.Queuer[lifecycle.Key])
			m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q, Handlers: map[string]lifecycle.Handler{}})
			running(t, m, "a")
			never := make(chan struct{})
			work := lifecycle.Func(func(ctx context.Context) error {
				if obeys {
					return untilEnded(ctx)
				}
				<-never
				return nil
			})
			ticket := do(t, m, "a", "stop", user, work, nil)
			synctest.Wait()
			require.True(t, q.Abandon(lifecycle.Key{Machine: "work-vm", ID: "a"}))
			rec, err := ticket.Wait(t.Context())
			require.Equal(t, lifecycle.Canceled, outcomeError(t, err).Outcome)
			require.ErrorIs(t, err, queue.ErrAbandoned)
			require.Equal(t, state("running"), rec.State)
			close(never)
			synctest.Wait()
			require.Equal(t, rec, get(t, m, "a"))
		})
	}
}

// TestOwnObject: work that turns to the manager for its own object. It is refused
// as others are, and never waits for itself.
func TestOwnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		running(t, m, "a")
		stopped(t, m, "b")
		var ticket *lifecycle.Ticket[state, size]
		begin := make(chan struct{})
		op := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
			<-begin
			_, err := m.Do(ctx, "a", "stop", user, lifecycle.Func(fine), nil)
			require.ErrorIs(t, err, lifecycle.ErrBusy)
			_, err = ticket.Wait(ctx)
			require.ErrorIs(t, err, queue.ErrWouldDeadlock)
			other, err := m.Do(ctx, "b", "start", user, lifecycle.Func(fine), nil)
			require.NoError(t, err)
			rec, err := other.Wait(ctx)
			require.NoError(t, err)
			require.Equal(t, state("running"), rec.State)
			return nil
		}), nil)
		ticket = op
		close(begin)
		wait(t, ticket)
	})
}

// TestOwnObjectBehind: what the table lets in from inside waits behind, and cannot
// be waited for.
func TestOwnObjectBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		var drop *lifecycle.Ticket[state, size]
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
			var err error
			drop, err = m.Do(ctx, "a", "delete", user, lifecycle.Func(fine), nil)
			require.NoError(t, err)
			require.ErrorIs(t, context.Cause(ctx), lifecycle.ErrStale, "it has taken the operation from itself")
			_, err = drop.Wait(ctx)
			require.ErrorIs(t, err, queue.ErrWouldDeadlock)
			return nil
		}), nil)
		require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
		wait(t, drop)
	})
}

// TestPanicsLeaveNothing: a queue whose works panic and exit goes on.
func TestPanicsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		running(t, m, "a")
		for i := range 10 {
			ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(context.Context) error {
				if i%2 == 0 {
					panic(i)
				}
				runtime.Goexit()
				return nil
			}), nil)
			require.Equal(t, lifecycle.Panicked, outcomeOf(t, ticket).Outcome)
		}
		wait(t, do(t, m, "a", "stop", user, lifecycle.Func(fine), nil))
	})
}

// TestAbandonedWhileTheStoreHangs: the store hangs in the commit of the outcome, and
// an operator abandons the object's turn. Wait returns an error with Unwritten until
// the store answers, and the result after that.
func TestAbandonedWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, answer := new(queue.Queuer[lifecycle.Key]), make(chan struct{})
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			if n == 2 {
				<-answer
			}
			return write()
		}
		m := workers(store, lifecycle.Config[event]{Queue: q})
		ticket := do(t, m, "a", "create", user, lifecycle.Func(fine), nil)
		synctest.Wait()
		require.True(t, q.Abandon(lifecycle.Key{Machine: "work-vm", ID: "a"}))
		rec, err := ticket.Wait(t.Context())
		unwritten := outcomeError(t, err)
		require.Error(t, unwritten.Unwritten)
		require.Equal(t, state("creating"), rec.State)
		close(answer)
		synctest.Wait()
		require.Equal(t, state("stopped"), wait(t, ticket).State)
	})
}
