package lifecycle_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// failing is work that fails a number of times, each after a second, and notes when its
// attempts begin.
func failing(log *calls, times int) lifecycle.Handler {
	start := time.Now()
	return func(context.Context, []byte) error {
		log.note(time.Since(start).Round(time.Second).String())
		time.Sleep(time.Second)
		if times--; times >= 0 {
			return fmt.Errorf("%w: %d more", errBoom, times)
		}
		return nil
	}
}

// TestRetries: work that fails is tried again, and one outcome is written.
func TestRetries(t *testing.T) {
	for name, owned := range map[string]bool{"owner": true, "no owner": false} {
		inBubble(t, name, func(t *testing.T) {
			var log calls
			store := lifecycle.NewMemoryStore()
			config := lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{"boot": failing(&log, 2)}}
			if owned {
				config.Owner = join(t, store, "p", 24*time.Hour)
			}
			m := workers(store, config)
			stopped(t, m, "a")
			ticket := do(t, m, "a", "start", user, lifecycle.Work{
				Handler: "boot", Retries: lifecycle.Retries{Attempts: 3, Delay: 5 * time.Minute, MaxDelay: 8 * time.Minute},
			}, nil)
			synctest.Wait()
			first := explain(t, m, "a")
			require.Equal(t, []any{1, 3, time.Time{}, ""}, []any{first.Attempt, first.Attempts, first.NextAttempt, first.LastError})
			require.Contains(t, first.String(), "\n  work: boot; attempt 1 of 3\n")

			time.Sleep(time.Second)
			synctest.Wait()
			second := explain(t, m, "a")
			require.Equal(t, []any{2, 3, "boom: 1 more"}, []any{second.Attempt, second.Attempts, second.LastError})
			pause := time.Until(second.NextAttempt)
			require.Less(t, pause, 5*time.Minute+1)
			require.Greater(t, pause, 3*time.Minute)
			require.Contains(t, second.String(), fmt.Sprintf(
				"\n  work: boot; attempt 2 of 3, next at %s; last error: boom: 1 more\n", second.NextAttempt.Format(time.RFC3339)))
			require.Equal(t, pause+time.Minute, time.Until(second.Deadline), "the pause extends the deadline")
			require.NoError(t, m.Heartbeat(t.Context(), "a"))
			require.Equal(t, pause+time.Minute, time.Until(get(t, m, "a").Deadline), "a heartbeat does not shorten it")
			require.Empty(t, sweep(t, m))
			require.Equal(t, 1, len(story(t, m, "a", 2)), "an attempt has no history row")

			time.Sleep(pause)
			synctest.Wait()
			second = explain(t, m, "a")
			require.Zero(t, second.NextAttempt, "it has begun")
			require.NotContains(t, string(stored(t, store, "a").WorkOptions), "next", "if the process dies now, the attempt counts")
			require.Equal(t, time.Minute, time.Until(second.Deadline))
			require.EqualValues(t, "running", wait(t, ticket).State)
			require.Len(t, log.list, 3)
			require.Equal(t, []string{
				"2: stopped -start-> starting by user", "2: starting -done-> running by worker",
			}, story(t, m, "a", 2))
			require.Nil(t, stored(t, store, "a").WorkOptions)
			require.Zero(t, explain(t, m, "a").Attempts)
		})
	}
}

// TestLastAttempt: after the last attempt, or a permanent error, the outcome is the
// failure of that attempt.
func TestLastAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		work     func(context.Context) error
		timeout  time.Duration
		outcome  lifecycle.Outcome
		attempts int
	}{
		"failed":    {func(context.Context) error { return errBoom }, 0, lifecycle.Failed, 3},
		"timed out": {untilEnded, time.Second, lifecycle.TimedOut, 3},
		"permanent": {func(context.Context) error { return fmt.Errorf("no: %w", lifecycle.Permanent(errBoom)) }, 0, lifecycle.Failed, 1},
		"panicked":  {func(context.Context) error { panic(errBoom) }, 0, lifecycle.Panicked, 1},
	} {
		inBubble(t, name, func(t *testing.T) {
			m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
			stopped(t, m, "a")
			attempts := 0
			ticket := do(t, m, "a", "start", user, lifecycle.Work{
				Run:     func(ctx context.Context) error { attempts++; return c.work(ctx) },
				Timeout: c.timeout, Retries: lifecycle.Retries{Attempts: 3},
			}, nil)
			failed := outcomeOf(t, ticket)
			require.Equal(t, c.outcome, failed.Outcome)
			require.NoError(t, failed.Unwritten)
			require.Equal(t, c.attempts, attempts)
			require.EqualValues(t, "stopped", get(t, m, "a").State)
			if c.outcome == lifecycle.Failed {
				require.ErrorIs(t, failed, errBoom)
			}
		})
	}
	require.NoError(t, lifecycle.Permanent(nil))
	require.EqualError(t, lifecycle.Permanent(errBoom), errBoom.Error())
}

// TestLateSuccess: an attempt that returns nil after its time-out has succeeded.
func TestLateSuccess(t *testing.T) {
	inBubble(t, "late", func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		late := func(ctx context.Context) error { <-ctx.Done(); return nil }
		work := lifecycle.Work{Run: late, Timeout: time.Second, Retries: lifecycle.Retries{Attempts: 3}}
		require.EqualValues(t, "running", wait(t, do(t, m, "a", "start", user, work, nil)).State)
	})
}

// TestAttemptsOfADeadProcess: a sweep that does the work again goes on counting. The
// attempt that the dead process was making has failed. A pause or a wait is not an attempt.
func TestAttemptsOfADeadProcess(t *testing.T) {
	hangs := func(ctx context.Context, _ []byte) error { return untilEnded(ctx) }
	work := lifecycle.Work{Handler: "reboot", Retries: lifecycle.Retries{Attempts: 3, Delay: time.Hour}}
	for name, c := range map[string]struct {
		first lifecycle.Handler // of the dead process
		want  int               // the attempt that the heir makes
	}{
		"waiting":           {hangs, 1},
		"the first attempt": {hangs, 2},
		"in the pause":      {func(context.Context, []byte) error { return errBoom }, 2},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			q := queue.Must(&queue.Config[lifecycle.Key]{})
			t.Cleanup(func() { q.Abort(nil) })
			if name == "waiting" {
				require.NoError(t, q.PauseClass(""))
			}
			m := workers(store, lifecycle.Config[event]{
				Owner: join(t, store, "first", time.Second), Queue: q, Handlers: map[string]lifecycle.Handler{"reboot": c.first},
			})
			running(t, m, "a")
			do(t, m, "a", "reboot", user, work, nil)
			synctest.Wait()
			n := heir(t, store, map[string]lifecycle.Handler{"reboot": hangs})
			found := sweepFor(t, n, time.Second)
			require.Len(t, found, 1)
			require.Equal(t, lifecycle.Redone, found[0].Resolution)
			synctest.Wait()
			x := explain(t, n, "a")
			require.Equal(t, []any{c.want, 3, "second", time.Time{}}, []any{x.Attempt, x.Attempts, x.Owner, x.NextAttempt})
			override(t, n, "a", "running", user, "end of the test", nil)
		})
	}
}

// TestNoAttemptLeft: work that kills its process is not done again without end.
func TestNoAttemptLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := dying(t, store, store)
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Work{Handler: "reboot", Retries: lifecycle.Retries{Attempts: 1}}, nil)
		synctest.Wait()
		n := heir(t, store, map[string]lifecycle.Handler{"reboot": func(context.Context, []byte) error {
			t.Error("the work is done a second time")
			return nil
		}})
		require.Len(t, sweepFor(t, n, time.Second), 1)
		synctest.Wait()
		rec := get(t, n, "a")
		require.EqualValues(t, "failed", rec.State)
		require.Equal(t, "lifecycle: the work has no attempt left: all 1 have failed; last error: the attempt was not completed", rec.Reason)
	})
}

// TestPauseEndsWithOperation: an operation that is taken away or cancelled between two
// attempts ends at once, and the next operation does not wait for the pause.
func TestPauseEndsWithOperation(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*testing.T, *sizedManager, *lifecycle.Ticket[state, size])
		want lifecycle.Outcome
	}{
		"taken away": {func(t *testing.T, m *sizedManager, _ *lifecycle.Ticket[state, size]) {
			override(t, m, "a", "stopped", user, "it takes too long", nil)
		}, lifecycle.Lost},
		"cancelled": {func(_ *testing.T, _ *sizedManager, ticket *lifecycle.Ticket[state, size]) { ticket.Cancel(errBoom) }, lifecycle.Canceled},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := workers(store, lifecycle.Config[event]{Owner: join(t, store, "p", 24*time.Hour)})
			stopped(t, m, "a")
			work := lifecycle.Work{
				Run: untilEnded, Timeout: time.Second, // the attempt before timed out, and the operation did not
				Retries: lifecycle.Retries{Attempts: 2, Delay: time.Hour},
			}
			ticket := do(t, m, "a", "start", user, work, nil)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			require.NotZero(t, explain(t, m, "a").NextAttempt)
			c.end(t, m, ticket)
			begun := time.Now()
			require.Equal(t, c.want, outcomeOf(t, ticket).Outcome)
			wait(t, do(t, m, "a", "start", user, lifecycle.Func(fine), nil))
			require.Equal(t, begun, time.Now())
		})
	}
}

// TestEditOutcomeAfterItsAttempt: a goroutine that outlives its attempt does not change what
// a later attempt writes, and learns that it comes too late.
func TestEditOutcomeAfterItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		attempts, taken := 0, make(chan bool, 2)
		work := lifecycle.Func(func(ctx context.Context) error {
			edit := func() { taken <- lifecycle.EditOutcome(ctx, func(s *size) error { s.N = 77; return nil }) }
			attempts++
			if attempts == 1 {
				time.AfterFunc(time.Minute, edit)
				return errBoom
			}
			time.AfterFunc(2*time.Hour, edit)
			time.Sleep(time.Hour)
			return nil
		})
		work.Retries.Attempts = 2
		before := get(t, m, "a").Payload
		require.EqualValues(t, "running", wait(t, do(t, m, "a", "start", user, work, nil)).State)
		require.False(t, <-taken)
		require.False(t, <-taken, "the outcome is written")
		require.Equal(t, before, get(t, m, "a").Payload)
	})
}

// TestEditOutcomeOfAFailedAttempt: only the last attempt changes the payload.
func TestEditOutcomeOfAFailedAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		attempt := 0
		ticket := do(t, m, "a", "start", user, lifecycle.Work{Run: func(ctx context.Context) error {
			if attempt++; attempt == 1 {
				lifecycle.EditOutcome(ctx, func(p *size) error { p.N = 77; return nil })
				return errBoom
			}
			return nil
		}, Retries: lifecycle.Retries{Attempts: 2}}, nil)
		require.Equal(t, 1, wait(t, ticket).Payload.N)
	})
}

// TestAttemptsDuringAnOutage: the store is down when an attempt fails. The next attempt
// is made when it is back, and counts as the second.
func TestAttemptsDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Owner: join(t, store.MemoryStore, "p", 24*time.Hour)})
		stopped(t, m, "a")
		var attempts atomic.Int32
		var down atomic.Bool
		store.onCommit = func(_ int, _ *lifecycle.Commit, write func() error) error {
			if down.Load() {
				return lifecycle.ErrUnavailable
			}
			return write()
		}
		ticket := do(t, m, "a", "start", user, lifecycle.Work{Run: func(context.Context) error {
			attempts.Add(1)
			down.Store(true)
			return errBoom
		}, Retries: lifecycle.Retries{Attempts: 2}}, nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 1, attempts.Load())
		down.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.EqualValues(t, 2, attempts.Load())
		down.Store(false)
		require.Equal(t, lifecycle.Failed, outcomeOf(t, ticket).Outcome)
		require.EqualValues(t, "stopped", get(t, m, "a").State)
	})
}

// TestPauseAfterAnOutage: the store is down for a moment when an attempt fails, so that the
// pause does not extend the deadline. The next attempt extends it in time.
func TestPauseAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Owner: join(t, store, "p", 24*time.Hour)})
		stopped(t, m, "a")
		attempts := 0
		ticket := do(t, m, "a", "start", user, lifecycle.Work{Run: func(context.Context) error {
			if attempts++; attempts == 1 {
				time.Sleep(10 * time.Second)
				return errBoom
			}
			time.Sleep(50 * time.Second)
			return nil
		}, Retries: lifecycle.Retries{Attempts: 5, Delay: 5 * time.Minute, MaxDelay: 5 * time.Minute}}, nil)
		time.Sleep(9 * time.Second)
		store.dead.Store(true)
		time.Sleep(3 * time.Second)
		store.dead.Store(false)
		time.Sleep(time.Minute)
		require.Empty(t, sweep(t, m))
		require.EqualValues(t, "running", wait(t, ticket).State)
		require.Equal(t, 2, attempts)
	})
}

// TestRetriesOfOccupy: work that is not an operation is repeated by the queue.
func TestRetriesOfOccupy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
		stopped(t, m, "a")
		for _, c := range []struct {
			err  error
			want int
		}{{errBoom, 3}, {lifecycle.Permanent(errBoom), 1}} {
			ticket := occupy(t, m, "a", "migrate", lifecycle.Work{
				Run: func(context.Context) error { return c.err }, Retries: lifecycle.Retries{Attempts: 3, Delay: time.Minute},
			})
			require.ErrorIs(t, ticket.Wait(t.Context()), errBoom)
			require.Equal(t, c.want, ticket.Info().Attempt)
		}
		var seen []string
		m = workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{
			"migrate": func(_ context.Context, args []byte) error {
				seen = append(seen, string(args))
				args[0] = 'x'
				return errBoom
			},
		}})
		stopped(t, m, "a")
		work := lifecycle.Named("migrate", []byte("node"))
		work.Retries = lifecycle.Retries{Attempts: 2}
		require.ErrorIs(t, occupy(t, m, "a", "migrate", work).Wait(t.Context()), errBoom)
		require.Equal(t, []string{"node", "node"}, seen)
	})
}

// TestBadRetries: a negative number is refused, and nothing is written.
func TestBadRetries(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	stopped(t, m, "a")
	for _, r := range []lifecycle.Retries{{Attempts: -1}, {Delay: -1}, {MaxDelay: -1}} {
		_, err := m.Do(t.Context(), "a", "start", user, lifecycle.Work{Run: fine, Retries: r}, nil)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	require.EqualValues(t, "stopped", get(t, m, "a").State)
}

// TestExplainPausedClass: the reason why an action waits is shown.
func TestExplainPausedClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[lifecycle.Key]{Classes: map[string]queue.Limit{"aws": {}}})
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: q})
		stopped(t, m, "a")
		require.NoError(t, q.PauseClass("aws"))
		ticket := do(t, m, "a", "start", user, lifecycle.Work{Run: fine, Class: "aws"}, nil)
		require.Equal(t, []string{`queue: start is waiting, class "aws" is paused`}, explain(t, m, "a").Blocked)
		bare := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: struct{ lifecycle.Queue }{q}})
		stopped(t, bare, "a")
		require.Empty(t, explain(t, bare, "a").Blocked, "a queue that shows nothing")
		require.NoError(t, q.ResumeClass("aws"))
		wait(t, ticket)

		hold := make(chan struct{})
		ticket = do(t, m, "a", "stop", user, lifecycle.Work{Run: func(context.Context) error { <-hold; return nil }, Class: "aws"}, nil)
		synctest.Wait()
		require.NoError(t, q.PauseClass("aws"))
		require.Equal(t, []string{"queue: stop is running since 2000-01-01T00:00:00Z"}, explain(t, m, "a").Blocked, "a pause does not stop it")
		require.NoError(t, q.ResumeClass("aws"))
		close(hold)
		wait(t, ticket)

		_, err := q.Submit(t.Context(), lifecycle.Key{Machine: "work-vm", ID: "a"}, &queue.Action{Name: "look", Delay: time.Minute, Run: fine})
		require.NoError(t, err)
		due := time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
		require.Equal(t, []string{"queue: look is delayed until " + due}, explain(t, m, "a").Blocked)
	})
}

// TestRetriesOfSeveralObjects: a pause extends the deadlines of all objects of the
// operation.
func TestRetriesOfSeveralObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{Owner: join(t, store, "p", 24*time.Hour)})
		stopped(t, m, "a")
		stopped(t, m, "b")
		attempts := 0
		ticket := doParts(t, m, "a", "start", user, lifecycle.Work{Run: func(context.Context) error {
			if attempts++; attempts < 3 {
				return errBoom
			}
			return nil
		}, Retries: lifecycle.Retries{Attempts: 3, Delay: time.Hour, MaxDelay: time.Hour}}, nil, firing(m, "b", "start", user, nil))
		synctest.Wait()
		for _, id := range []string{"a", "b"} {
			require.Greater(t, time.Until(get(t, m, id).Deadline), 45*time.Minute, id)
		}
		time.Sleep(30 * time.Minute)
		require.Empty(t, sweep(t, m))
		require.EqualValues(t, "running", wait(t, ticket).State)
		require.EqualValues(t, "running", get(t, m, "b").State)
		require.Equal(t, 3, attempts)
	})
}

// TestPauseKeepsItsDeadline: a change that continues the operation in a pause between two
// attempts, and a migration, set the deadline after the pause.
func TestPauseKeepsItsDeadline(t *testing.T) {
	work := lifecycle.Work{
		Run:     func(context.Context) error { return errBoom },
		Retries: lifecycle.Retries{Attempts: 2, Delay: time.Hour, MaxDelay: time.Hour},
	}
	for name, continues := range map[string]func(t *testing.T, m, switched *sizedManager){
		"report": func(t *testing.T, m, _ *sizedManager) {
			require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "progress", agent, ""))
		},
		"migration": func(t *testing.T, _, switched *sizedManager) {
			page, err := lifecycle.Migrate(t.Context(), switched, "operator", "", 0)
			require.NoError(t, err)
			require.Equal(t, 1, page.Migrated)
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			states := map[string]string{}
			for _, s := range sizedVM.Table().States {
				states[s.Name] = s.Name
			}
			manager := func(switched bool) *sizedManager {
				return lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{
					WorkerActor: agent, Done: []event{"done"}, Failed: []event{"fail"},
					Version: "2", Older: []lifecycle.Version{{States: states}}, Switch: switched,
				})
			}
			m, switched := manager(false), manager(true)
			create(t, m, "a", "import", user, size{})
			ticket := do(t, m, "a", "update", user, work, nil)
			synctest.Wait()
			before := get(t, m, "a").Deadline
			require.Greater(t, time.Until(before), time.Hour+time.Hour/2)
			continues(t, m, switched)
			require.Equal(t, before, get(t, m, "a").Deadline)
			require.Equal(t, lifecycle.Failed, outcomeOf(t, ticket).Outcome)
		})
	}
}

// TestPauseWithoutDeadline: a change that continues the operation in a pause gives no deadline
// to a state without a timeout. The deadline of the state before ends no attempt.
func TestPauseWithoutDeadline(t *testing.T) {
	machine := fsm.Must[size](fsm.Spec[state, event]{
		Name: "untimed", Initial: "idle", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional}, {Name: "slow", Kind: fsm.Transitional, Manual: "the worker ends it"}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("idle", "start", "busy").By(user),
			fsm.Return[state, event]("busy", "late").After(time.Minute),
			fsm.Move[state, event]("busy", "progress", "slow").By(agent),
			fsm.Return[state, event]("slow", "done").By(agent),
		),
	})
	synctest.Test(t, func(t *testing.T) {
		m := lifecycle.Must(machine, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{WorkerActor: agent, Done: []event{"done"}})
		add(t, m, "a", user, size{})
		var log calls
		ticket := do(t, m, "a", "start", user, lifecycle.Work{
			Run: func(context.Context) error {
				if log.note("attempt"); len(log.list) < 3 {
					return errBoom
				}
				return nil
			},
			Retries: lifecycle.Retries{Attempts: 3, Delay: time.Hour, MaxDelay: time.Hour},
		}, nil)
		synctest.Wait()
		require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "progress", agent, ""))
		require.Zero(t, get(t, m, "a").Deadline)
		require.EqualValues(t, "idle", wait(t, ticket).State)
		require.Len(t, log.list, 3)
	})
}

// TestEndlessTimeout: a pause does not overflow the longest timeout.
func TestEndlessTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := fsm.Must[size](fsm.Spec[state, event]{
			Name: "endless", Initial: "idle", Actors: []fsm.Actor{user, agent},
			States: []fsm.State[state]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional}},
			Rows: fsm.Rows(
				fsm.Move[state, event]("idle", "start", "busy").By(user),
				fsm.Move[state, event]("busy", "progress", "busy").By(agent),
				fsm.Return[state, event]("busy", "done").By(agent),
				fsm.Return[state, event]("busy", "late").After(math.MaxInt64),
			),
		})
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		store.onCommit = func(_ int, c *lifecycle.Commit, write func() error) error {
			require.GreaterOrEqual(t, c.Changes[0].Timeout, time.Duration(0))
			return write()
		}
		m := lifecycle.Must(machine, store, &lifecycle.Config[event]{WorkerActor: agent, Done: []event{"done"}})
		add(t, m, "a", user, size{})
		attempts := 0
		ticket := do(t, m, "a", "start", user, lifecycle.Work{
			Run: func(context.Context) error {
				if attempts++; attempts < 2 {
					return errBoom
				}
				return nil
			},
			Retries: lifecycle.Retries{Attempts: 2},
		}, nil)
		synctest.Wait()
		require.Equal(t, time.Duration(math.MaxInt64), time.Until(get(t, m, "a").Deadline))
		require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "progress", agent, ""))
		require.Equal(t, time.Duration(math.MaxInt64), time.Until(get(t, m, "a").Deadline))
		require.Empty(t, sweep(t, m))
		require.EqualValues(t, "idle", wait(t, ticket).State)
	})
}
