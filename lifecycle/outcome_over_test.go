package lifecycle_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// server is a table that has rows for the events of work out of states at rest too, and
// whose work passes two transitional states by the same event.
var server = fsm.Must[size](fsm.Spec[state, event]{
	Name: "server", Initial: "off", Actors: []fsm.Actor{user, agent, "worker"},
	States: []fsm.State[state]{
		{Name: "off"},
		{Name: "starting", Kind: fsm.Transitional},
		{Name: "verifying", Kind: fsm.Transitional},
		{Name: "on"},
		{Name: "broken", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move[state, event]("off", "start", "starting").By(user),
		fsm.Move[state, event]("starting", "done", "verifying").By("worker"),
		fsm.Move[state, event]("starting", "fail", "broken").By("worker"),
		fsm.Move[state, event]("starting", "up", "on").By(agent),
		fsm.Move[state, event]("starting", "late", "broken").After(time.Minute),
		fsm.Move[state, event]("verifying", "done", "on").By("worker"),
		fsm.Move[state, event]("verifying", "late", "broken").After(time.Minute),
		fsm.Move[state, event]("on", "fail", "broken").By("worker"),
		fsm.Move[state, event]("broken", "done", "on").By("worker"),
	),
})

// servers is a manager of servers that does their work.
func servers(store lifecycle.Store) *sizedManager {
	return lifecycle.Must(server, store, &lifecycle.Config[event]{
		WorkerActor: "worker", Done: []event{"done"}, Failed: []event{"fail"},
	})
}

// TestOutcomeOfAnEndedOperation: another writer has ended the operation, and the table
// has a row for the outcome out of the state at rest. Without an Owner, the record of
// the object at rest has the owner and epoch of the task: none. The operation is lost.
func TestOutcomeOfAnEndedOperation(t *testing.T) {
	for name, c := range map[string]struct {
		work error
		end  func(t *testing.T, m, other *sizedManager)
		to   state
	}{
		"by a peer": {errBoom, func(t *testing.T, _, other *sizedManager) {
			require.Equal(t, lifecycle.Applied, report(t, other, "a", 1, "up", agent, ""))
		}, "on"},
		"by a sweep of this manager": {nil, func(t *testing.T, m, _ *sizedManager) {
			time.Sleep(time.Minute + 1)
			require.Len(t, sweep(t, m), 1)
		}, "broken"},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			m := servers(store)
			add(t, m, "a", user, size{})
			end := make(chan struct{})
			ticket := do(t, m, "a", "start", user, lifecycle.Func(func(context.Context) error { <-end; return c.work }), nil)
			synctest.Wait()
			c.end(t, m, servers(store))
			close(end)
			require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
			require.Equal(t, c.to, get(t, m, "a").State)
		})
	}
}

// loseAnswers loses the answers to the next outcome, which is sent three times, and writes
// it when the n-th outcome arrives. Heartbeats fail.
func loseAnswers(t *testing.T, store *hooked, n int) {
	var first lifecycle.Commit
	outcomes := 0
	store.onCommit = func(_ int, commit *lifecycle.Commit, write func() error) error {
		if commit.Changes[0].MetadataOnly {
			return lifecycle.ErrUnavailable
		}
		if outcomes++; outcomes == 1 {
			first = *commit
			first.Changes = slices.Clone(commit.Changes)
		}
		if outcomes == n {
			_ = store.lose(t, &first)
		}
		if outcomes <= 3 {
			return lifecycle.ErrUnknownOutcome
		}
		return write()
	}
}

// TestOutcomeIsAppliedOnce: the commit of an outcome is written, and all answers to it are
// lost. The table permits the event of the outcome in the next state too, and the operation
// still goes on there. The next attempt finds what was written.
func TestOutcomeIsAppliedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		forgets bool // the history
		written int  // when this outcome arrives
	}{
		"before the next attempt":                  {written: 1},
		"before the next attempt, without history": {written: 1, forgets: true},
		"during the next attempt":                  {written: 4},
		"during the next attempt, without history": {written: 4, forgets: true},
	} {
		inBubble(t, name, func(t *testing.T) {
			store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
			var s lifecycle.Store = store
			if c.forgets {
				s = forgetful{store}
			}
			m := servers(s)
			add(t, m, "a", user, size{})
			add(t, m, "b", user, size{})
			ticket := doParts(t, m, "a", "start", user, sleeping(time.Second), nil, firing(m, "b", "start", user, nil))
			synctest.Wait()
			loseAnswers(t, store, c.written)
			require.EqualValues(t, "verifying", wait(t, ticket).State)
			require.Equal(t, [2]state{"verifying", "verifying"}, states(t, m))
		})
	}
}

// TestOutcomeOfAnotherWriter: no answer to the outcome arrives, and it is not written. Another
// writer reports the same event. The store keeps no history, and the record has the token of
// the other commit: the operation is lost, and its edit is not in the record.
func TestOutcomeOfAnotherWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := workers(forgetful{store}, lifecycle.Config[event]{})
		running(t, m, "a")
		ticket := do(t, m, "a", "stop", user, lifecycle.Func(func(ctx context.Context) error {
			lifecycle.EditOutcome(ctx, func(s *size) error { s.N = 5; return nil })
			time.Sleep(time.Second)
			return nil
		}), nil)
		synctest.Wait()
		store.reset()
		store.onCommit = func(n int, _ *lifecycle.Commit, write func() error) error {
			if n == 3 { // the last one of the first attempt
				other := workers(store.MemoryStore, lifecycle.Config[event]{})
				require.Equal(t, lifecycle.Applied, report(t, other, "a", get(t, other, "a").Operation, "done", "worker", ""))
			}
			if n <= 3 {
				return lifecycle.ErrUnknownOutcome
			}
			return write()
		}
		require.Equal(t, lifecycle.Lost, outcomeOf(t, ticket).Outcome)
		require.Equal(t, size{N: 1}, get(t, m, "a").Payload)
	})
}

// TestFailedEditIsAppliedOnce: the edit of the outcome fails, so the failure is written, and all
// answers to it are lost. The next attempt finds a failure, and no success.
func TestFailedEditIsAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := servers(store)
		add(t, m, "a", user, size{})
		ticket := do(t, m, "a", "start", user, lifecycle.Func(func(ctx context.Context) error {
			lifecycle.EditOutcome(ctx, func(*size) error { return errBoom })
			time.Sleep(time.Second)
			return nil
		}), nil)
		synctest.Wait()
		loseAnswers(t, store, 1)
		failed := outcomeOf(t, ticket)
		require.Equal(t, lifecycle.Failed, failed.Outcome)
		require.ErrorIs(t, failed, errBoom)
		require.EqualValues(t, "broken", get(t, m, "a").State)
	})
}

// unreadable is a store whose history fails so many times.
type unreadable struct {
	*hooked
	fails int
}

func (s *unreadable) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	if s.fails > 0 {
		s.fails--
		return nil, lifecycle.ErrUnavailable
	}
	return s.hooked.History(ctx, key, after, limit)
}

// TestOutcomeWaitsForTheHistory: the outcome was written without an answer, and the history
// cannot be read for a while. The outcome is not sent again before it is.
func TestOutcomeWaitsForTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &unreadable{hooked: &hooked{MemoryStore: lifecycle.NewMemoryStore()}}
		m := servers(store)
		add(t, m, "a", user, size{})
		ticket := do(t, m, "a", "start", user, sleeping(time.Second), nil)
		synctest.Wait()
		loseAnswers(t, store.hooked, 1)
		store.fails = 2
		require.EqualValues(t, "verifying", wait(t, ticket).State)
		require.Zero(t, store.fails)
		require.EqualValues(t, "verifying", get(t, m, "a").State)
	})
}

// TestOutcomeOfAPartIsAppliedOnce: the table of the object itself refuses the outcome, so
// its commit changes another object only.
func TestOutcomeOfAPartIsAppliedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
		m := servers(store)
		parcels := lifecycle.Must(parcel, store, &lifecycle.Config[event]{WorkerActor: "worker", Done: []event{"done"}})
		add(t, m, "b", user, size{})
		add(t, parcels, "a", user, size{})
		ticket := doParts(t, parcels, "a", "send", user, sleeping(time.Second), nil, firing(m, "b", "start", user, nil))
		synctest.Wait()
		loseAnswers(t, store, 1)
		require.ErrorIs(t, outcomeOf(t, ticket).Unwritten, fsm.ErrNotAllowed)
		require.EqualValues(t, "verifying", get(t, m, "b").State)
	})
}
