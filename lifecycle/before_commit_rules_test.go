package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// hookOf is a manager of VMs with this BeforeCommit.
func hookOf(hook func(change *lifecycle.StoredChange) (*lifecycle.Tx, error)) *sizedManager {
	return workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{
		BeforeCommit: func(_ context.Context, change *lifecycle.StoredChange) (*lifecycle.Tx, error) { return hook(change) },
	})
}

// TestBeforeCommitOfHeartbeats: a heartbeat changes no object, so BeforeCommit does not run.
func TestBeforeCommitOfHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		m := hookOf(func(*lifecycle.StoredChange) (*lifecycle.Tx, error) { runs++; return nil, nil })
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
			before := runs
			require.NoError(t, lifecycle.TaskOf(ctx).Heartbeat(ctx))
			require.Equal(t, before, runs)
			return nil
		}), nil)
		wait(t, ticket)
		require.Equal(t, 4, runs, "two changes of the table, the admission and the outcome")
	})
}

// TestBeforeCommitReturnsBoth: BeforeCommit returns an error beside its changes. The error
// counts.
func TestBeforeCommitReturnsBoth(t *testing.T) {
	m := hookOf(func(change *lifecycle.StoredChange) (*lifecycle.Tx, error) {
		if change.To.State == "starting" {
			return new(lifecycle.Tx), errBoom
		}
		return nil, nil
	})
	stopped(t, m, "a")
	_, err := m.Fire(t.Context(), "a", "start", user, nil)
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, state("stopped"), get(t, m, "a").State)
}

// TestBeforeCommitRefusesEveryOutcome: BeforeCommit refuses success, and the failure that
// takes its place too. The outcome is not written.
func TestBeforeCommitRefusesEveryOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		m := hookOf(func(change *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			if change.From == "starting" {
				if runs++; runs > 10 {
					return nil, nil // ends a recursion
				}
				return nil, lifecycle.ErrPrecondition
			}
			return nil, nil
		})
		stopped(t, m, "a")
		failed := outcomeOf(t, do(t, m, "a", "start", user, lifecycle.Func(fine), nil))
		require.Equal(t, lifecycle.Failed, failed.Outcome)
		require.ErrorIs(t, failed.Unwritten, lifecycle.ErrPrecondition)
		require.Equal(t, 2, runs)
		require.Equal(t, state("starting"), get(t, m, "a").State)
	})
}

// TestBeforeCommitPanicsAtAdmission: the caller of Do receives the panic, and no operation
// starts.
func TestBeforeCommitPanicsAtAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := true
		m := hookOf(func(change *lifecycle.StoredChange) (*lifecycle.Tx, error) {
			if panics && change.To.State == "starting" {
				panic("a bug in the hook")
			}
			return nil, nil
		})
		stopped(t, m, "a")
		require.PanicsWithValue(t, "a bug in the hook", func() {
			_, _ = m.Do(t.Context(), "a", "start", user, lifecycle.Func(fine), nil)
		})
		require.Equal(t, state("stopped"), get(t, m, "a").State)
		panics = false
		require.EqualValues(t, "running", wait(t, do(t, m, "a", "start", user, lifecycle.Func(fine), nil)).State)
	})
}
