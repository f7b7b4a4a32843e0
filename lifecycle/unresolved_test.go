package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// on is an observer that calls a function once, after an object has entered a state.
func on(to string, do func()) lifecycle.Observer {
	done := false
	return lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.Changed) {
		if row.To == to && !done {
			done = true
			do()
		}
	}}
}

// TestObserverPanicsAtAdmission: an observer panics after the admission. The
// operation ends at once, for all its objects.
func TestObserverPanicsAtAdmission(t *testing.T) {
	for name, together := range map[string]bool{"alone": false, "together": true} {
		inBubble(t, name, func(t *testing.T) {
			m := stoppedVMs(t, lifecycle.Config[event]{Observer: on("starting", func() { panic("the observer") })})
			work := lifecycle.Func(func(context.Context) error { t.Error("it ran"); return nil })
			if together {
				work.With = txOf(firing(m, "b", "start", user, nil))
			}
			require.PanicsWithValue(t, "the observer", func() { _, _ = m.Do(t.Context(), "a", "start", user, work, nil) })
			require.Equal(t, [2]state{"stopped", "stopped"}, states(t, m))
		})
	}
}

// TestUnwrittenIsReported: work has ended, no row takes its outcome, and the state
// has no deadline. The owner is alive. Every sweep of the process reports that the
// object needs an operator, until it is moved.
func TestUnwrittenIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		owner := join(t, store, "p", time.Hour)
		m := workers(store, lifecycle.Config[event]{Owner: owner})
		running(t, m, "a")
		end := make(chan struct{})
		h := do(t, m, "a", "inspect", user, lifecycle.Func(func(context.Context) error {
			<-end
			return errBoom
		}), nil)
		synctest.Wait()
		require.Empty(t, sweep(t, m), "it is at work")
		close(end)
		_, err := h.Wait(t.Context())
		require.Error(t, outcomeError(t, err).Unwritten)
		for range 2 {
			cases := sweep(t, m)
			require.Len(t, cases, 1)
			require.Equal(t, lifecycle.NeedsOperator, cases[0].Resolution)
			require.Equal(t, "an engineer looks at it", cases[0].Manual)
			require.False(t, cases[0].OwnerDead)
		}
		override(t, m, "a", "running", user, "it is fine", nil)
		require.Empty(t, sweep(t, m))
		do(t, m, "a", "inspect", user, lifecycle.Func(fine), nil)
		synctest.Wait()
		require.Empty(t, sweep(t, m))
		require.NoError(t, owner.Leave(t.Context()))
	})
}

// TestUnknownAdmissionIsReported: the answer to an admission is lost for good. If
// the admission was written, every sweep of the process reports the object. If it
// was not, no sweep does.
func TestUnknownAdmissionIsReported(t *testing.T) {
	for name, written := range map[string]bool{"written": true, "not written": false} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			owner := join(t, store, "p", time.Hour)
			m := workers(store, lifecycle.Config[event]{Owner: owner})
			running(t, m, "a")
			store.reset()
			store.onCommit = func(n int, c *lifecycle.Commit, _ func() error) error {
				if n == 1 && written {
					return store.lose(t, c)
				}
				return lifecycle.ErrUnknownOutcome
			}
			_, err := m.Do(t.Context(), "a", "inspect", user, lifecycle.Func(fine), nil)
			require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
			store.reset()
			if !written { // the next one has the same number
				release := make(chan struct{})
				h := do(t, m, "a", "inspect", user, lifecycle.Func(func(context.Context) error {
					<-release
					return nil
				}), nil)
				require.Empty(t, sweep(t, m))
				close(release)
				wait(t, h)
			}
			for range 2 {
				cases := sweep(t, m)
				if !written {
					require.Empty(t, cases)
					continue
				}
				require.Len(t, cases, 1)
				require.Equal(t, lifecycle.NeedsOperator, cases[0].Resolution)
				require.False(t, cases[0].OwnerDead)
			}
			override(t, m, "a", "running", user, "it is fine", nil)
			do(t, m, "a", "inspect", user, lifecycle.Func(fine), nil)
			synctest.Wait()
			require.Empty(t, sweep(t, m))
			require.NoError(t, owner.Leave(t.Context()))
		})
	}
}
