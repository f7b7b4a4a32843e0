package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// outage is a process whose store does not answer while it is down.
func outage(t *testing.T, config lifecycle.Config[event]) (*mortal, *sizedManager) {
	t.Helper()
	store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
	m := workers(store, config)
	stopped(t, m, "a")
	return store, m
}

// sleeping is work that takes so long.
func sleeping(d time.Duration) lifecycle.Work {
	return lifecycle.Func(func(context.Context) error {
		time.Sleep(d)
		return nil
	})
}

// halt ends the retries of outcomes, as the end of the process does.
func halt(m *sizedManager) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = lifecycle.Drain(ctx, m)
}

// TestOutcomeAfterOutage: the store is down when the work ends, and the outcome is
// written when the store is back. Before, it was dropped after one attempt, and the
// sweep moved the object back to its origin.
func TestOutcomeAfterOutage(t *testing.T) {
	for name, down := range map[string]time.Duration{"1s": time.Second, "5s": 5 * time.Second, "30s": 30 * time.Second} {
		inBubble(t, name, func(t *testing.T) {
			store, m := outage(t, lifecycle.Config[event]{})
			ticket := do(t, m, "a", "start", user, sleeping(time.Second), nil)
			synctest.Wait() // until the work has begun
			store.dead.Store(true)
			time.Sleep(time.Second + down)
			store.dead.Store(false)
			require.EqualValues(t, "running", wait(t, ticket).State)
			require.EqualValues(t, "running", get(t, m, "a").State)
			require.Empty(t, sweep(t, m))
		})
	}
}

// TestRetryHoldsNoLimit: while an outcome is written again, other work of its class
// runs, and a caller may stop waiting for it.
func TestRetryHoldsNoLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.Must(&queue.Config[lifecycle.Key]{Classes: map[string]queue.Limit{"one": {MaxRunning: 1}}})
		store, m := outage(t, lifecycle.Config[event]{Queue: q})
		work := sleeping(time.Second)
		work.Class = "one"
		op := do(t, m, "a", "start", user, work, nil)
		synctest.Wait() // until the work has begun
		store.dead.Store(true)
		time.Sleep(2 * time.Second)
		ran := false
		ticket, err := q.Submit(t.Context(), lifecycle.Key{Machine: "work-vm", ID: "b"}, &queue.Action{
			Class: "one", Run: func(context.Context) error { ran = true; return nil },
		})
		require.NoError(t, err)
		require.NoError(t, ticket.Wait(t.Context()))
		require.True(t, ran)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = op.Wait(ctx)
		require.ErrorIs(t, err, queue.ErrPending)
		store.dead.Store(false)
		require.EqualValues(t, "running", wait(t, op).State)
	})
}

// TestOutageExtendsTheDeadline: the outcome cannot be written for longer than the timeout of the
// state. In an outage every attempt extends the deadline, and the pauses between them become
// longer. After another error the deadline remains.
func TestOutageExtendsTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		extended bool
	}{
		"unavailable": {lifecycle.ErrUnavailable, true},
		"unknown":     {lifecycle.ErrUnknownOutcome, true},
		"another":     {errBoom, false},
	} {
		inBubble(t, name, func(t *testing.T) {
			store, finished := &hooked{MemoryStore: lifecycle.NewMemoryStore()}, 0
			m := workers(store, lifecycle.Config[event]{Observer: lifecycle.Observer{
				Finished: func(context.Context, lifecycle.Finished) { finished++ },
			}})
			stopped(t, m, "a")
			began, sent := time.Now(), 0
			store.onCommit = func(_ int, commit *lifecycle.Commit, write func() error) error {
				if commit.Changes[0].To.Event != "done" || commit.Changes[0].MetadataOnly || time.Since(began) > 3*time.Minute {
					return write()
				}
				sent++
				return c.err
			}
			ticket := do(t, m, "a", "start", user, lifecycle.Func(fine), nil)
			rec, err := ticket.Wait(t.Context())
			if c.extended {
				require.NoError(t, err)
				require.EqualValues(t, "running", rec.State)
			} else {
				require.ErrorIs(t, outcomeError(t, err).Unwritten, errBoom)
			}
			require.Less(t, sent, 150)
			require.Equal(t, 1, finished)
		})
	}
}

// TestRetryEnds: an outcome is not written again after the deadline, after the end
// of the queue's context, and after a refusal. The caller writes it later, by the
// number of its operation.
func TestRetryEnds(t *testing.T) {
	for name, end := range map[string]struct {
		after time.Duration
		stop  func(*sizedManager, context.CancelFunc)
	}{
		"deadline": {after: time.Minute, stop: func(*sizedManager, context.CancelFunc) {}},
		"base":     {stop: func(_ *sizedManager, stop context.CancelFunc) { stop() }},
		"halt":     {stop: func(m *sizedManager, _ context.CancelFunc) { halt(m) }},
	} {
		inBubble(t, name, func(t *testing.T) {
			base, stop := context.WithCancel(t.Context())
			defer stop()
			q := queue.Must(&queue.Config[lifecycle.Key]{Base: base})
			store, m := outage(t, lifecycle.Config[event]{Queue: q})
			began := time.Now()
			ticket := do(t, m, "a", "start", user, sleeping(time.Second), nil)
			synctest.Wait() // until the work has begun
			store.dead.Store(true)
			time.Sleep(30 * time.Second)
			end.stop(m, stop)
			failed := outcomeOf(t, ticket)
			require.Equal(t, max(end.after, 30*time.Second), time.Since(began))
			require.Equal(t, lifecycle.Succeeded, failed.Outcome)
			require.ErrorIs(t, failed.Unwritten, errDead)
			store.dead.Store(false)
			change := &lifecycle.Change[size]{Admission: failed.Admission}
			verdict, err := m.Report(t.Context(), "a", failed.Operation, "done", "worker", change)
			require.NoError(t, err)
			require.Equal(t, lifecycle.Applied, verdict)
		})
	}
}

// TestRetryAfterPanic: user code that panics in a later attempt ends the retry, and
// nothing else.
func TestRetryAfterPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var panics bool
		store, m := outage(t, lifecycle.Config[event]{BeforeCommit: func(context.Context, *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			if panics {
				panic("the hook")
			}
			return nil, nil
		}})
		ticket := do(t, m, "a", "start", user, sleeping(time.Second), nil)
		synctest.Wait() // until the work has begun
		store.dead.Store(true)
		time.Sleep(2 * time.Second)
		panics = true
		store.dead.Store(false)
		var p *queue.PanicError
		require.ErrorAs(t, outcomeOf(t, ticket).Unwritten, &p)
		require.Equal(t, "the hook", p.Value)
	})
}

// TestHookDelaysOutcome: an error of BeforeCommit may go away too. It does not
// extend the deadline.
func TestHookDelaysOutcome(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"short": 10 * time.Second, "long": time.Hour} {
		inBubble(t, name, func(t *testing.T) {
			var end time.Time
			_, m := outage(t, lifecycle.Config[event]{BeforeCommit: func(_ context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
				if ch.To.Event == "done" && time.Now().Before(end) {
					return nil, errBoom
				}
				return nil, nil
			}})
			end = time.Now().Add(lasts)
			ticket := do(t, m, "a", "start", user, lifecycle.Func(fine), nil)
			if name == "short" {
				require.EqualValues(t, "running", wait(t, ticket).State)
				return
			}
			began := time.Now()
			require.ErrorIs(t, outcomeOf(t, ticket).Unwritten, errBoom)
			require.Equal(t, time.Minute, time.Since(began))
		})
	}
}

// TestTurnAfterOutage: the turn of an operation comes while the store is down. The
// work runs when the store is back. Before, the operation failed without its work.
func TestTurnAfterOutage(t *testing.T) {
	for _, owned := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q, free := blocked(t, "work-vm")
			config := lifecycle.Config[event]{Queue: q}
			store, m := outage(t, config)
			if owned {
				config.Owner = join(t, store, "p", time.Hour)
				m = workers(store, config)
			}
			ticket := do(t, m, "a", "start", user, lifecycle.Func(fine), nil)
			store.dead.Store(true)
			free()
			time.Sleep(10 * time.Second)
			store.dead.Store(false)
			require.EqualValues(t, "running", wait(t, ticket).State)
		})
	}
}

// TestOccupyAfterOutage: the store fails when the turn of an Occupy comes. Its work
// runs after the outage, or is skipped if the manager is shut down before.
func TestOccupyAfterOutage(t *testing.T) {
	for name, shut := range map[string]bool{"outage": false, "shutdown": true} {
		inBubble(t, name, func(t *testing.T) {
			store, m := outage(t, lifecycle.Config[event]{})
			gate := make(chan struct{})
			occupy(t, m, "a", "first", lifecycle.Func(func(context.Context) error { <-gate; return nil }))
			ran := false
			second := occupy(t, m, "a", "second", lifecycle.Func(func(context.Context) error { ran = true; return nil }))
			store.dead.Store(true)
			close(gate)
			synctest.Wait()
			require.NotEqual(t, queue.Skipped, second.Outcome())
			if shut {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.ErrorIs(t, lifecycle.Drain(ctx, m), queue.ErrNotDrained)
				require.ErrorIs(t, second.Wait(t.Context()), queue.ErrSkipped)
			} else {
				time.Sleep(time.Minute)
				store.dead.Store(false)
				require.NoError(t, second.Wait(t.Context()))
			}
			require.Equal(t, !shut, ran)
		})
	}
}

// TestDeadProcessWritesNothing: a process that was declared dead, and has not sent a
// heartbeat since, neither starts operations nor writes outcomes. Before, both were
// accepted until its next heartbeat.
func TestDeadProcessWritesNothing(t *testing.T) {
	for _, later := range []string{"expired", "left", "joined again"} {
		inBubble(t, later, func(t *testing.T) {
			store, m := outage(t, lifecycle.Config[event]{})
			stopped(t, m, "b")
			owner := join(t, store, "p", time.Minute)
			m = workers(store, lifecycle.Config[event]{Owner: owner})
			end := make(chan struct{})
			ticket := do(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error { <-end; return nil }), nil)
			synctest.Wait()
			ownerEnds(t, store, "p", later)
			before := all(t, store.MemoryStore, "work-vm", "a", "b")
			close(end)
			failed := outcomeOf(t, ticket)
			require.Equal(t, lifecycle.Lost, failed.Outcome)
			require.ErrorIs(t, failed, lifecycle.ErrStale)
			_, err := m.Do(t.Context(), "b", "start", user, lifecycle.Func(fine), nil)
			require.ErrorIs(t, err, lifecycle.ErrStale)
			require.Equal(t, before, all(t, store.MemoryStore, "work-vm", "a", "b"))
			require.ErrorIs(t, owner.Heartbeat(t.Context()), lifecycle.ErrStale)
		})
	}
}

// ownerEnds writes the record of an owner as another process does.
func ownerEnds(t *testing.T, store lifecycle.Store, name, how string) {
	t.Helper()
	if how == "joined again" {
		join(t, store, name, time.Minute)
		return
	}
	now := storedAt(t, store, lifecycle.OwnerRef{Name: name}.Key())
	change := lifecycle.StoredChange{Expect: now.Revision, From: now.State, FromOrigin: now.Origin, To: now, Remove: how == "left"}
	change.To.State, change.To.Origin, change.To.Sequence = "dead", "dead", now.Sequence+1
	require.NoError(t, store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{change}}))
}

// restored is a store that loses its newest commits at once.
type restored struct{ *lifecycle.MemoryStore }

// TestOperationIDRepeats: the store is restored from a backup that does not have the
// newest operation, and the next one gets its number. The outcome and late reports of
// the lost operation have no effect, if they carry its token. Before, the outcome
// ended the other operation, whose work never ran.
func TestOperationIDRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &restored{lifecycle.NewMemoryStore()}
		backup := lifecycle.NewMemoryStore()
		m := workers(store, lifecycle.Config[event]{})
		for _, s := range []lifecycle.Store{store, backup} {
			stopped(t, workers(s, lifecycle.Config[event]{}), "a")
		}
		end := make(chan struct{})
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error { <-end; return nil }), nil)
		synctest.Wait()
		store.MemoryStore = backup
		other := fire(t, m, "a", "start", user, nil)
		require.Equal(t, ticket.Operation(), other.Operation)
		close(end)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Lost, failed.Outcome)
		require.Equal(t, other, get(t, m, "a"))

		lost := &lifecycle.Change[size]{Admission: failed.Admission}
		verdict, err := m.Report(t.Context(), "a", other.Operation, "done", "worker", lost)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Stale, verdict)
		lost.Operation = other.Operation
		_, err = m.Fire(t.Context(), "a", "delete", user, lost)
		require.ErrorIs(t, err, lifecycle.ErrStale)
		verdict, err = m.Report(t.Context(), "a", other.Operation, "done", "worker", &lifecycle.Change[size]{Admission: other.Admission})
		require.NoError(t, err)
		require.Equal(t, lifecycle.Applied, verdict)
	})
}

// TestWaitHasNoDeadline: an operation with an owner waits longer for its turn than
// its state's timeout. The commit that starts its turn sets the deadline.
func TestWaitHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, free := blocked(t, "work-vm")
		store, _ := outage(t, lifecycle.Config[event]{})
		m := workers(store, lifecycle.Config[event]{Queue: q, Owner: join(t, store, "p", 24*time.Hour)})
		ticket := do(t, m, "a", "start", user, sleeping(30*time.Second), nil)
		require.Zero(t, ticket.Admitted().Deadline)
		time.Sleep(time.Hour)
		require.NoError(t, m.Heartbeat(t.Context(), "a"))
		require.Zero(t, get(t, m, "a").Deadline)
		require.Empty(t, sweep(t, m))
		free()
		synctest.Wait()
		require.Equal(t, time.Minute, time.Until(get(t, m, "a").Deadline))
		require.EqualValues(t, "running", wait(t, ticket).State)
	})
}

// TestTurnWithoutDeadline: a table without timeouts has no deadline to set when the turn
// comes: nothing is written then.
func TestTurnWithoutDeadline(t *testing.T) {
	machine := fsm.Must[size](fsm.Spec[state, event]{
		Name: "untimed", Initial: "idle", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{{Name: "idle"}, {Name: "busy", Kind: fsm.Transitional, Manual: "the worker ends it"}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("idle", "start", "busy").By(user),
			fsm.Return[state, event]("busy", "done").By(agent),
		),
	})
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	m := lifecycle.Must(machine, store, &lifecycle.Config[event]{
		Owner: join(t, store, "p", time.Hour), WorkerActor: agent, Done: []event{"done"},
	})
	add(t, m, "a", user, size{})
	store.reset()
	wait(t, do(t, m, "a", "start", user, lifecycle.Func(fine), nil))
	require.Equal(t, 2, store.commits)
}

// TestTurnOfSeveralIsUnknown: the answer to the commit that starts the turn of
// several objects is lost.
func TestTurnOfSeveralIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		config := lifecycle.Config[event]{Owner: join(t, store, "p", time.Hour)}
		m, parts := workers(store, config), workers(store, config)
		stopped(t, m, "a")
		stopped(t, m, "b")
		store.reset()
		store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
			if n == 2 {
				return store.lose(t, c)
			}
			return write()
		}
		ticket, err := doWith(t.Context(), m, "a", "start", user, lifecycle.Func(fine), nil, firing(parts, "b", "start", user, nil))
		require.NoError(t, err)
		wait(t, ticket)
		require.EqualValues(t, "running", get(t, m, "a").State)
		require.EqualValues(t, "running", get(t, m, "b").State)
	})
}
