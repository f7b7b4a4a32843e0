package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// tokenless is a store that keeps neither tokens nor history.
type tokenless struct{ *hooked }

func (s tokenless) Capabilities() lifecycle.Capabilities {
	return lifecycle.Capabilities{Changes: s.hooked.Capabilities().Changes}
}

func (s tokenless) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	rec, err := s.hooked.Get(ctx, key)
	rec.Admission, rec.ChangeToken = lifecycle.Token{}, lifecycle.Token{}
	return rec, err
}

// TestUnwrittenWithoutTokens: the store keeps neither history nor tokens. It does not answer
// to an outcome that was not written. The next attempt finds that and writes it.
func TestUnwrittenWithoutTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := tokenless{&hooked{MemoryStore: lifecycle.NewMemoryStore()}}
		m := workers(store, lifecycle.Config[event]{})
		stopped(t, m, "a")
		sent := 0
		store.onCommit = func(_ int, c *lifecycle.Commit, write func() error) error {
			if c.Changes[0].To.Event == "done" {
				if sent++; sent <= 3 {
					return lifecycle.ErrUnknownOutcome
				}
			}
			return write()
		}
		require.EqualValues(t, "running", wait(t, do(t, m, "a", "start", user, lifecycle.Func(fine), nil)).State)
		require.Equal(t, state("running"), get(t, m, "a").State)
	})
}

// TestAttemptsWithoutDeadline: the record has the failed attempts of an operation that has no
// deadline.
func TestAttemptsWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log calls
		m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Handlers: map[string]lifecycle.Handler{"look": failing(&log, 1)}})
		running(t, m, "a")
		ticket := do(t, m, "a", "inspect", user, lifecycle.Work{
			Handler: "look", Retries: lifecycle.Retries{Attempts: 2, Delay: time.Minute},
		}, nil)
		time.Sleep(time.Second)
		synctest.Wait()
		x := explain(t, m, "a")
		require.Equal(t, []any{2, 2, "boom: 0 more"}, []any{x.Attempt, x.Attempts, x.LastError})
		require.True(t, x.NextAttempt.After(time.Now()))
		require.Zero(t, get(t, m, "a").Deadline)
		require.Equal(t, state("running"), wait(t, ticket).State)
	})
}

// TestGuardRefusesARepeatedEvent: the event of the outcome was accepted in this operation
// before, in another state. A guard refuses it now, and the error is that of the guard.
func TestGuardRefusesARepeatedEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := fsm.Must[size](fsm.Spec[state, event]{
			Name: "guarded", Initial: "idle", Actors: []fsm.Actor{user, "worker"},
			States: []fsm.State[state]{{Name: "idle"}, {Name: "first", Kind: fsm.Transitional}, {Name: "second", Kind: fsm.Transitional}},
			Rows: fsm.Rows(
				fsm.Move[state, event]("idle", "go", "first").By(user),
				fsm.Move[state, event]("first", "done", "second").By("worker"),
				fsm.Move[state, event]("second", "progress", "second").By("worker"),
				fsm.Move[state, event]("second", "done", "idle").By("worker").If(
					fsm.When("sound", func(context.Context, *size, *size) error { return errBoom })),
				fsm.Return[state, event]("first", "late").After(time.Hour),
				fsm.Return[state, event]("second", "late").After(time.Hour),
			),
		})
		m := lifecycle.Must(table, lifecycle.NewMemoryStore(), &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}})
		add(t, m, "a", user, size{})
		ticket := do(t, m, "a", "go", user, sleeping(time.Second), nil)
		for _, e := range []event{"done", "progress"} {
			require.Equal(t, lifecycle.Applied, report(t, m, "a", ticket.Operation(), e, "worker", ""))
		}
		require.ErrorIs(t, outcomeOf(t, ticket).Unwritten, fsm.ErrGuard)
	})
}
