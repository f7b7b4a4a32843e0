package lifecycle_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// on is an observer that calls a function once, after an object has entered a state.
func on(to string, do func()) lifecycle.Observer {
	done := false
	return lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.CommittedChange) {
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
		ticket := do(t, m, "a", "inspect", user, lifecycle.Func(func(context.Context) error {
			<-end
			return errBoom
		}), nil)
		synctest.Wait()
		require.Empty(t, sweep(t, m), "it is at work")
		close(end)
		require.Error(t, outcomeOf(t, ticket).Unwritten)
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

// TestAllUnwrittenAreReported: by one sweep.
func TestAllUnwrittenAreReported(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	for _, id := range []string{"a", "b"} {
		running(t, m, id)
		ticket := do(t, m, id, "inspect", user, lifecycle.Func(func(context.Context) error { return errBoom }), nil)
		require.Error(t, outcomeOf(t, ticket).Unwritten)
	}
	require.Len(t, sweep(t, m), 2)
}

// TestUnknownAdmissionWithoutAdmission: the store keeps no token of the admission. One of
// unknown outcome was not written, and the next one has its number: no sweep takes it for lost.
// An admission of another object was written, and is reported.
func TestUnknownAdmissionWithoutAdmission(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{Owner: join(t, store, "p", time.Hour)})
		for id, written := range map[string]bool{"a": false, "b": true} {
			store.reset()
			running(t, m, id)
			store.reset()
			store.onCommit = func(n int, c *lifecycle.Commit, _ func() error) error {
				c.Changes[0].To.Admission = lifecycle.Token{}
				if written && n == 1 {
					return store.lose(t, c)
				}
				return lifecycle.ErrUnknownOutcome
			}
			_, err := m.Do(t.Context(), id, "inspect", user, lifecycle.Func(fine), nil)
			require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
		}
		store.onCommit = func(_ int, c *lifecycle.Commit, write func() error) error {
			c.Changes[0].To.Admission = lifecycle.Token{}
			return write()
		}
		ticket := do(t, m, "a", "inspect", user, sleeping(time.Second), nil)
		synctest.Wait()
		found := sweep(t, m)
		wait(t, ticket)
		require.Len(t, found, 1)
		require.Equal(t, "b", found[0].ID)
	})
}

// TestSweepReadsNoEndedWork: a sweep reads the objects whose work waits or runs here, and no
// object whose work has ended.
func TestSweepReadsNoEndedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{})
		stopped(t, m, "a")
		ticket := do(t, m, "a", "start", user, sleeping(time.Second), nil)
		synctest.Wait()
		for _, reads := range []int{1, 0} {
			store.reset()
			require.Empty(t, sweep(t, m))
			require.Equal(t, reads, store.gets)
			wait(t, ticket)
		}
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
				ticket := do(t, m, "a", "inspect", user, lifecycle.Func(func(context.Context) error {
					<-release
					return nil
				}), nil)
				require.Empty(t, sweep(t, m))
				close(release)
				wait(t, ticket)
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

// TestLateAdmission: the statement of an admission of unknown outcome waits for a lock and
// commits after a sweep. The next sweep finds the operation, also if another admission of
// the object has ended in the same way meanwhile.
func TestLateAdmission(t *testing.T) {
	for name, c := range map[string]struct {
		event event
		calls int // of Do, all with unknown outcome
		to    state
	}{
		"one call":      {"start", 1, "stopped"},
		"two calls":     {"start", 2, "stopped"},
		"of a creation": {"create", 1, "failed"},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			owner := join(t, store, "p", 24*time.Hour)
			m := workers(store, lifecycle.Config[event]{Owner: owner})
			if c.event != "create" {
				stopped(t, m, "a")
			}
			var late *lifecycle.Commit
			store.onCommit = func(_ int, sent *lifecycle.Commit, _ func() error) error {
				if late == nil {
					commit := *sent
					commit.Changes = slices.Clone(sent.Changes)
					late = &commit
				}
				return lifecycle.ErrUnknownOutcome
			}
			for range c.calls {
				_, err := m.Do(t.Context(), "a", c.event, user, lifecycle.Func(fine), nil)
				require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
			}
			store.reset()
			require.Empty(t, sweep(t, m))
			require.NoError(t, store.Commit(t.Context(), late))
			found := sweep(t, m)
			require.Len(t, found, 1)
			require.Equal(t, lifecycle.Moved, found[0].Resolution)
			require.Equal(t, c.to, get(t, m, "a").State)
			require.Empty(t, sweep(t, m))
			store.reset()
			require.Empty(t, sweep(t, m))
			require.Zero(t, store.gets, "the manager has forgotten the admissions")
			require.NoError(t, owner.Leave(t.Context()))
		})
	}
}

// TestAdmissionIsForgotten: an admission of unknown outcome was never committed, and the
// object stays as it is. After an hour sweeps do not read the object any more.
func TestAdmissionIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(store, lifecycle.Config[event]{})
		stopped(t, m, "a")
		store.onCommit = func(int, *lifecycle.Commit, func() error) error { return lifecycle.ErrUnknownOutcome }
		_, err := m.Do(t.Context(), "a", "start", user, lifecycle.Func(fine), nil)
		require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
		for _, gets := range []int{1, 1, 0} { // the second sweep of the loop forgets it
			store.reset()
			require.Empty(t, sweep(t, m))
			require.Equal(t, gets, store.gets)
			time.Sleep(time.Hour)
		}
	})
}
