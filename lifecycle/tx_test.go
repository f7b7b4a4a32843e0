package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// two is a manager of VMs and one of leases over one store, with a VM that is
// Ready and a lease that is Active.
func two(t *testing.T) (*sizedManager, *sizedManager, *hooked) {
	m, store := vms(t)
	leases := lifecycle.Must(lease, store, nil)
	ready(t, m, "v")
	add(t, leases, "l", user, size{})
	fire(t, leases, "l", "start", agent, nil)
	return m, leases, store
}

// everythingOf is what a store has of VMs and leases, and their history.
func everythingOf(t *testing.T, store lifecycle.Store) (list []any) {
	for _, machine := range []string{"vm", "lease"} {
		records, err := store.List(t.Context(), lifecycle.Query{Machine: machine, Limit: 100})
		require.NoError(t, err)
		for _, r := range records {
			rows, err := store.(lifecycle.Historian).History(t.Context(), r.Key, 0, 100)
			require.NoError(t, err)
			list = append(list, r.Key, r.Revision, r.State, rows)
		}
	}
	got, err := store.(lifecycle.Outbox).Messages(t.Context(), 100)
	require.NoError(t, err)
	return append(list, got)
}

func TestTx(t *testing.T) {
	m, leases, store := two(t)
	var changes []lifecycle.HistoryRow
	watched := lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{Observer: lifecycle.Observer{
		Changed: func(_ context.Context, row lifecycle.CommittedChange) { changes = append(changes, row.HistoryRow) },
	}})
	v := firing(watched, "v", "update", user, &lifecycle.Change[size]{
		Edit: func(s *size) error { s.N = 7; return nil }, Reason: "grow",
		Require:  []lifecycle.Precondition{leases.Require("l", "Active")},
		Messages: []lifecycle.Message{{Topic: "first"}},
	})
	l := firing(leases, "l", "end", user, &lifecycle.Change[size]{Messages: []lifecycle.Message{{Topic: "second"}}})
	w := creating(watched, "w", "create", user, size{N: 3}, &lifecycle.Change[size]{Reason: "a twin"})
	n := adding(leases, "n", user, size{N: 4}, nil)
	ignored := firing(leases, "l2", "start", agent, nil)
	add(t, leases, "l2", user, size{})
	fire(t, leases, "l2", "start", agent, nil)
	require.NoError(t, commitAll(t.Context(), v, l, w, n, ignored))

	for _, c := range []struct {
		m     *sizedManager
		got   lifecycle.Record[state, size]
		state state
		size  int
	}{
		{m, v.Record(), "Updating", 7},
		{leases, l.Record(), "Ending", 0},
		{m, w.Record(), "Creating", 3},
		{leases, n.Record(), "Starting", 4},
		{leases, ignored.Record(), "Active", 0},
	} {
		require.Equal(t, c.state, c.got.State)
		require.Equal(t, c.size, c.got.Payload.N)
		require.Empty(t, cmp.Diff(get(t, c.m, c.got.ID), c.got))
	}
	require.Equal(t, "a twin", w.Record().Reason)
	require.Len(t, changes, 2)
	tokens := map[lifecycle.Token]bool{}
	for _, of := range []struct {
		m  *sizedManager
		id string
	}{{m, "v"}, {leases, "l"}, {m, "w"}, {leases, "n"}} {
		rows := rowsOf(t, of.m, of.id, 0, 0)
		tokens[rows[len(rows)-1].Token] = true
	}
	require.Len(t, tokens, 1, "one commit")
	messages, err := store.Messages(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, messages, 2)
	require.Equal(t, "first", messages[0].Topic)
}

// TestTxTwoManagersOfOneMachine: the object counts, not the manager.
func TestTxTwoManagersOfOneMachine(t *testing.T) {
	_, leases, store := two(t)
	second := lifecycle.Must(lease, store, nil)
	ignored := firing(second, "l", "start", agent, nil)
	err := commitAll(t.Context(), ignored, firing(leases, "l", "end", user, nil))
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// If one change fails, none is written, and the error names the object that failed.
func TestTxFails(t *testing.T) {
	other := lifecycle.Must(sizedVM, lifecycle.NewMemoryStore(), nil)
	for name, c := range map[string]struct {
		parts func(m, leases *sizedManager) []part
		is    error
		id    string
	}{
		"refused": {func(m, leases *sizedManager) []part {
			return []part{firing(m, "v", "update", user, nil), firing(leases, "l", "end", agent, nil)}
		}, fsm.ErrWrongActor, "l"},
		"not there": {func(m, leases *sizedManager) []part {
			return []part{firing(m, "v", "update", user, nil), firing(leases, "x", "end", user, nil)}
		}, lifecycle.ErrNotFound, "x"},
		"there already": {func(m, leases *sizedManager) []part {
			return []part{firing(leases, "l", "end", user, nil), creating(m, "v", "create", user, size{}, nil)}
		}, lifecycle.ErrExists, "v"},
		"unknown event": {func(m, leases *sizedManager) []part {
			return []part{firing(leases, "l", "end", user, nil), firing(m, "v", "fly", user, nil)}
		}, fsm.ErrUnknownEvent, "v"},
		"edit fails": {func(m, leases *sizedManager) []part {
			return []part{firing(leases, "l", "end", user, nil), firing(m, "v", "update", user, &lifecycle.Change[size]{
				Edit: func(*size) error { return errBoom },
			})}
		}, errBoom, "v"},
		"condition fails": {func(m, leases *sizedManager) []part {
			return []part{firing(leases, "l", "end", user, nil), firing(m, "v", "update", user, &lifecycle.Change[size]{
				Require: []lifecycle.Precondition{m.Require("w", "Ready")},
			})}
		}, lifecycle.ErrPrecondition, "v"},
		"condition is on the state before": {func(m, leases *sizedManager) []part {
			return []part{firing(leases, "l", "end", user, nil), firing(m, "v", "update", user, &lifecycle.Change[size]{
				Require: []lifecycle.Precondition{leases.Require("l", "Ending")},
			})}
		}, lifecycle.ErrPrecondition, "v"},
		"one object twice": {func(m, leases *sizedManager) []part {
			return []part{firing(m, "v", "update", user, nil), firing(m, "v", "delete", user, nil)}
		}, lifecycle.ErrInvalid, "v"},
		"one object twice, once ignored": {func(m, leases *sizedManager) []part {
			return []part{firing(leases, "l", "start", agent, nil), firing(leases, "l", "end", user, nil)}
		}, lifecycle.ErrInvalid, "l"},
		"one ignored, one refused": {func(m, leases *sizedManager) []part {
			return []part{firing(leases, "l", "start", agent, nil), firing(m, "v", "update", agent, nil)}
		}, fsm.ErrWrongActor, "v"},
		"two stores": {func(m, leases *sizedManager) []part {
			return []part{firing(m, "v", "update", user, nil), firing(other, "v", "update", user, nil)}
		}, lifecycle.ErrInvalid, "v"},
	} {
		t.Run(name, func(t *testing.T) {
			m, leases, store := two(t)
			before := everythingOf(t, store)
			parts := c.parts(m, leases)
			err := commitAll(t.Context(), parts...)
			require.ErrorIs(t, err, c.is)
			var e *lifecycle.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.id, e.ID)
			for _, p := range parts {
				if p, ok := p.(interface {
					Record() lifecycle.Record[state, size]
				}); ok {
					require.Zero(t, p.Record())
				}
			}
			require.Empty(t, cmp.Diff(before, everythingOf(t, store)))
		})
	}
}

// All conditions are checked, whatever the order.
func TestTxRequiresNothing(t *testing.T) {
	m, _, _ := two(t)
	var tx lifecycle.Tx
	m.In(&tx).Fire("v", "update", user, nil)
	tx.Require(m.Require("v", "Ready"), lifecycle.Precondition{Key: lifecycle.Key{Machine: "vm", ID: "w"}})
	err := tx.Commit(t.Context())
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, `lifecycle: fire vm "v": update by user: invalid request: `)
}

// Another writer moves one of the objects between load and commit.
func TestTxIsOvertaken(t *testing.T) {
	m, leases, store := two(t)
	store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
		store.onCommit = nil
		fire(t, leases, "l", "touch", user, nil)
		return write()
	}
	v, l := firing(m, "v", "update", user, nil), firing(leases, "l", "end", user, nil)
	err := commitAll(t.Context(), v, l)
	require.ErrorIs(t, err, lifecycle.ErrConflict)
	require.Equal(t, "touch", winnerOf(t, leases, err).Event)
	require.Equal(t, state("Ready"), get(t, m, "v").State)
}

// The manager resolves a lost answer by the token. Nothing is written twice.
func TestTxWithLostAnswers(t *testing.T) {
	for _, written := range []bool{true, false} {
		m, leases, store := two(t)
		store.onCommit = func(n int, c *lifecycle.Commit, write func() error) error {
			store.onCommit = nil
			if written {
				require.NoError(t, write())
			}
			return lifecycle.ErrUnknownOutcome
		}
		v, l := firing(m, "v", "update", user, nil), firing(leases, "l", "end", user, nil)
		require.NoError(t, commitAll(t.Context(), v, l))
		require.Empty(t, cmp.Diff(get(t, m, "v"), v.Record()))
		require.Empty(t, cmp.Diff(get(t, leases, "l"), l.Record()))
		require.EqualValues(t, 3, v.Record().Sequence)
	}
	// The outcome stays unknown.
	m, leases, store := two(t)
	store.onCommit = func(int, *lifecycle.Commit, func() error) error { return lifecycle.ErrUnknownOutcome }
	err := commitAll(t.Context(), firing(m, "v", "update", user, nil), firing(leases, "l", "end", user, nil))
	require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
}

// Many transactions swap the same two objects. Each swap is complete.
func TestTxAtOnce(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	a, b := lifecycle.Must(lease, store, nil), lifecycle.Must(sizedVM, store, nil)
	add(t, a, "x", user, size{})
	fire(t, a, "x", "start", agent, nil)
	create(t, b, "x", "import", user, size{})
	var all errgroup.Group
	won := make([]int, 8)
	add := func(s *size) error { s.N++; return nil }
	for i := range won {
		all.Go(func() error {
			for range 200 {
				x := firing(a, "x", "touch", user, &lifecycle.Change[size]{Edit: add})
				y := firing(b, "x", "touch", user, &lifecycle.Change[size]{Edit: add})
				parts := []part{x, y}
				if i%2 == 0 {
					parts[0], parts[1] = y, x
				}
				switch err := commitAll(context.Background(), parts...); {
				case err == nil:
					won[i]++
					if x.Record().Payload.N != y.Record().Payload.N {
						return errors.New("half of a commit")
					}
				case !errors.Is(err, lifecycle.ErrConflict):
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	sum := 0
	for _, n := range won {
		sum += n
	}
	require.Positive(t, sum)
	require.Equal(t, sum, get(t, a, "x").Payload.N)
	require.Equal(t, sum, get(t, b, "x").Payload.N)
}

// TestTxObserverPanics: callers that wait for another object of the transaction wake
// up although an observer panics.
func TestTxObserverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		calm := workers(store, lifecycle.Config[event]{})
		m := workers(store, lifecycle.Config[event]{Observer: on("stopped", func() { panic("the observer") })})
		stopped(t, calm, "b")
		fire(t, calm, "b", "start", user, nil)
		running(t, calm, "a")
		fire(t, calm, "a", "stop", user, nil)
		var waited time.Duration
		go func() {
			began := time.Now()
			_, _ = lifecycle.Await(t.Context(), m, "b", func(r lifecycle.Record[state, size]) bool { return r.State == "running" })
			waited = time.Since(began)
		}()
		synctest.Wait()
		a, b := firing(m, "a", "done", "worker", nil), firing(m, "b", "done", "worker", nil)
		require.PanicsWithValue(t, "the observer", func() { _ = commitAll(t.Context(), a, b) })
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Zero(t, waited)
		require.Equal(t, state("running"), b.Record().State)
	})
}

// TestTxOfNothing: a result has no record before its commit and after a commit that
// failed.
func TestTxOfNothing(t *testing.T) {
	m, _, _ := two(t)
	fire(t, m, "v", "touch", user, nil)
	ignored, missing := firing(m, "v", "ping", user, nil), firing(m, "w", "touch", user, nil)
	require.Zero(t, ignored.Record())
	require.ErrorIs(t, commitAll(t.Context(), ignored, missing), lifecycle.ErrNotFound)
	require.Zero(t, ignored.Record())
	require.Zero(t, missing.Record())

	require.NoError(t, commitAll(t.Context(), ignored))
	require.Equal(t, get(t, m, "v"), ignored.Record())
}

// An empty transaction is refused, and may be filled and committed afterwards.
func TestEmptyTx(t *testing.T) {
	m, _ := vms(t)
	var tx lifecycle.Tx
	require.ErrorIs(t, tx.Commit(t.Context()), lifecycle.ErrInvalid)
	made := m.In(&tx).Create("a", "create", user, size{N: 1}, nil)
	require.Zero(t, made.Record())
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, state("Creating"), made.Record().State)
}

// A refused report about an object at rest reads the history once.
func TestReportReadsHistoryOnce(t *testing.T) {
	store := &historyReads{MemoryStore: lifecycle.NewMemoryStore()}
	m := lifecycle.Must(sizedVM, store, nil)
	rec := ready(t, m, "a")
	require.Equal(t, lifecycle.Refused, report(t, m, "a", rec.Operation, "late", agent, ""))
	require.Equal(t, 1, store.reads)
}

type historyReads struct {
	*lifecycle.MemoryStore
	reads int
}

func (s *historyReads) History(ctx context.Context, key lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	s.reads++
	return s.MemoryStore.History(ctx, key, after, limit)
}
