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
	return lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.HistoryRow) {
		if row.To == to && !done {
			done = true
			do()
		}
	}}
}

// TestObserverPanicsAtAdmission: an observer panics after the admission. The
// operation ends at once with the outcome Panicked.
func TestObserverPanicsAtAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		config := lifecycle.Config[event]{Observer: on("starting", func() { panic("the observer") })}
		never := lifecycle.Func(func(context.Context) error { t.Error("it ran"); return nil })
		m := workers(store, config)
		stopped(t, m, "a")
		require.PanicsWithValue(t, "the observer", func() { _, _ = m.Do(t.Context(), "a", "start", user, never, nil) })
		rec, err := m.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, state("stopped"), rec.State)
	})
}

// TestObserverPanicsAtAdmissionTogether: the other objects of the operation end with
// it.
func TestObserverPanicsAtAdmissionTogether(t *testing.T) {
	m := stoppedVMs(t, lifecycle.Config[event]{Observer: on("starting", func() { panic("the observer") })})
	never := lifecycle.Func(func(context.Context) error { t.Error("it ran"); return nil })
	require.PanicsWithValue(t, "the observer", func() {
		_, _ = doWith(t.Context(), m, "a", "start", user, never, nil, firing(m, "b", "start", user, nil))
	})
	require.Equal(t, [2]state{"stopped", "stopped"}, states(t, m))
}

// TestUnwrittenIsReported: work has ended, no row takes its outcome, and the state
// has no deadline. The owner is alive. Every sweep of the process reports that the
// object needs an operator, until it is moved.
func TestUnwrittenIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		owner, err := lifecycle.Join(t.Context(), store, "p", time.Hour)
		require.NoError(t, err)
		m := workers(store, lifecycle.Config[event]{Owner: owner})
		running(t, m, "a")
		end := make(chan struct{})
		h, err := m.Do(t.Context(), "a", "inspect", user, lifecycle.Func(func(context.Context) error {
			<-end
			return errBoom
		}), nil)
		require.NoError(t, err)
		synctest.Wait()
		found, err := m.Sweep(t.Context())
		require.NoError(t, err)
		require.Empty(t, found, "it is at work")
		close(end)
		_, err = h.Wait(t.Context())
		require.Error(t, outcomeError(t, err).Unwritten)
		for range 2 {
			cases, err := m.Sweep(t.Context())
			require.NoError(t, err)
			require.Len(t, cases, 1)
			require.Equal(t, lifecycle.NeedsOperator, cases[0].Resolution)
			require.Equal(t, "an engineer looks at it", cases[0].Manual)
			require.False(t, cases[0].OwnerDead)
		}
		_, err = m.Override(t.Context(), "a", "running", user, "it is fine", nil)
		require.NoError(t, err)
		found2, err := m.Sweep(t.Context())
		require.NoError(t, err)
		require.Empty(t, found2)
		_, err = m.Do(t.Context(), "a", "inspect", user, lifecycle.Func(fine), nil)
		require.NoError(t, err)
		synctest.Wait()
		found3, err := m.Sweep(t.Context())
		require.NoError(t, err)
		require.Empty(t, found3)
		require.NoError(t, owner.Leave(t.Context()))
	})
}

// TestUnknownAdmissionIsReported: the answer to an admission is lost for good. If
// the admission was written, every sweep of the process reports the object. If it
// was not, no sweep does.
func TestUnknownAdmissionIsReported(t *testing.T) {
	for name, written := range map[string]bool{"written": true, "not written": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
				owner, err := lifecycle.Join(t.Context(), store, "p", time.Hour)
				require.NoError(t, err)
				m := workers(store, lifecycle.Config[event]{Owner: owner})
				running(t, m, "a")
				store.reset()
				store.onCommit = func(n int, c *lifecycle.Commit, _ func() error) error {
					if n == 1 && written {
						return store.lose(t, c)
					}
					return lifecycle.ErrUnknownOutcome
				}
				_, err = m.Do(t.Context(), "a", "inspect", user, lifecycle.Func(fine), nil)
				require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
				store.reset()
				if !written { // the next one has the same number
					release := make(chan struct{})
					h, err := m.Do(t.Context(), "a", "inspect", user, lifecycle.Func(func(context.Context) error {
						<-release
						return nil
					}), nil)
					require.NoError(t, err)
					found, err := m.Sweep(t.Context())
					require.NoError(t, err)
					require.Empty(t, found)
					close(release)
					_, err = h.Wait(t.Context())
					require.NoError(t, err)
				}
				for range 2 {
					cases, err := m.Sweep(t.Context())
					require.NoError(t, err)
					if !written {
						require.Empty(t, cases)
						continue
					}
					require.Len(t, cases, 1)
					require.Equal(t, lifecycle.NeedsOperator, cases[0].Resolution)
					require.False(t, cases[0].OwnerDead)
				}
				_, err = m.Override(t.Context(), "a", "running", user, "it is fine", nil)
				require.NoError(t, err)
				_, err = m.Do(t.Context(), "a", "inspect", user, lifecycle.Func(fine), nil)
				require.NoError(t, err)
				synctest.Wait()
				found2, err := m.Sweep(t.Context())
				require.NoError(t, err)
				require.Empty(t, found2)
				require.NoError(t, owner.Leave(t.Context()))
			})
		})
	}
}
