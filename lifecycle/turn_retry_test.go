package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// lateTurn is an operation whose turn cannot start, because the store is down. The
// function returns how it has ended after the store has come back, and whether its work ran.
func lateTurn(t *testing.T) (m *sizedManager, back func(after time.Duration) (*lifecycle.OutcomeError, bool)) {
	t.Helper()
	q, free := blocked(t, "work-vm")
	store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
	m = workers(store, lifecycle.Config[event]{Queue: q, Owner: join(t, store, "p", 24*time.Hour)})
	stopped(t, m, "a")
	ran := false
	ticket := do(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error { ran = true; return nil }), nil)
	store.dead.Store(true)
	free()
	synctest.Wait() // until the first attempt to start the turn has failed
	return m, func(after time.Duration) (*lifecycle.OutcomeError, bool) {
		time.Sleep(after)
		store.dead.Store(false)
		failed := outcomeOf(t, ticket)
		return failed, ran
	}
}

// TestDrainEndsTurn: the context of Drain ends while the start of a turn is tried
// again. The turn does not start when the store is back.
func TestDrainEndsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, back := lateTurn(t)
		halt(m)
		failed, ran := back(time.Hour)
		require.False(t, ran)
		require.Equal(t, lifecycle.Canceled, failed.Outcome)
		require.Error(t, failed.Unwritten)
	})
}

// TestTurnHangs: the store does not answer the start of a turn. The start is tried again,
// and the work runs.
func TestTurnHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, free := blocked(t, "work-vm")
		store := &hanging{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Queue: q, Owner: join(t, store, "p", 24*time.Hour)})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Func(fine), nil)
		store.commits.Store(1)
		free()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		rec, err := ticket.Wait(ctx)
		require.NoError(t, err)
		require.EqualValues(t, "running", rec.State)
	})
}

// TestOccupiedTurnHangs: the store does not answer the read at the start of the turn of an
// Occupy. It is read again, and the work runs.
func TestOccupiedTurnHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, free := blocked(t, "work-vm")
		store := &hanging{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Queue: q})
		stopped(t, m, "a")
		ticket := occupy(t, m, "a", "migrate", lifecycle.Func(fine))
		store.gets.Store(1)
		free()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		require.NoError(t, ticket.Wait(ctx))
	})
}
