package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestObserver: the observer receives every call once, after the commit, with what
// it was.
func TestObserver(t *testing.T) {
	var m *sizedManager
	var changed []lifecycle.HistoryRow
	var refused []error
	var reported []lifecycle.Reported
	store := lifecycle.NewMemoryStore()
	m = lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{Observer: lifecycle.Observer{
		Changed: func(_ context.Context, row lifecycle.CommittedChange) {
			changed = append(changed, row.HistoryRow)
			if row.ID != "a" {
				return
			}
			rec, err := m.Get(t.Context(), row.ID)
			if row.To == "None" {
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
			} else {
				require.NoError(t, err)
				require.Equal(t, row.Revision, rec.Revision, "observed before the commit")
			}
			require.Empty(t, cmp.Diff([]lifecycle.HistoryRow{row.HistoryRow}, rowsOf(t, m, row.ID, row.Sequence-1, 0)))
			create(t, m, "witness of "+row.ID+" "+string(row.Revision), "import", user, size{})
		},
		Refused: func(_ context.Context, err error) {
			refused = append(refused, err)
			_, err = m.List(t.Context(), lifecycle.Select[state]{})
			require.NoError(t, err)
		},
		Reported: func(_ context.Context, r lifecycle.Reported) {
			reported = append(reported, r)
			absent(t, m, "missing")
		},
	}})
	counts := func(changes, refusals, reports int) {
		t.Helper()
		var own []lifecycle.HistoryRow
		for _, row := range changed {
			if row.ID == "a" {
				own = append(own, row)
			}
		}
		require.Len(t, own, changes)
		require.Len(t, refused, refusals)
		require.Len(t, reported, reports)
	}
	create(t, m, "a", "create", user, size{})
	counts(1, 0, 0)
	_, err := m.Create(t.Context(), "a", "create", user, size{}, nil)
	counts(1, 1, 0)
	require.Same(t, err, refused[0])
	_, err = m.Fire(t.Context(), "a", "update", user, nil)
	counts(1, 2, 0)
	require.Same(t, err, refused[1])

	// The observer receives every report; only an error is a refusal of the call.
	report(t, m, "a", 1, "done", agent, "finished")
	counts(2, 2, 1)
	key := lifecycle.Key{Machine: "vm", ID: "a"}
	require.Equal(t, lifecycle.Reported{
		Key: key, Operation: 1, Present: 1, State: "Creating", Event: "done", Actor: agent, Reason: "finished",
		Verdict: lifecycle.Applied,
	}, reported[0])
	report(t, m, "a", 1, "done", agent, "")
	counts(2, 2, 2)
	require.Equal(t, lifecycle.Repeated, reported[1].Verdict)
	require.NoError(t, reported[1].Err)
	report(t, m, "a", 1, "fail", agent, "")
	counts(2, 2, 3)
	require.Equal(t, lifecycle.Refused, reported[2].Verdict)
	require.Equal(t, "Ready", reported[2].State)
	require.ErrorIs(t, reported[2].Err, fsm.ErrNotAllowed)
	report(t, m, "a", 0, "done", agent, "")
	counts(2, 2, 4)
	require.Equal(t, lifecycle.Stale, reported[3].Verdict)
	require.ErrorIs(t, reported[3].Err, lifecycle.ErrStale)
	_, err = m.Report(t.Context(), "a", 1, "fly", agent, nil)
	counts(2, 3, 4)
	require.Same(t, err, refused[2])

	// An ignored event is not a change, and reads are not observed.
	fire(t, m, "a", "ping", user, nil)
	_, err = m.Get(t.Context(), "missing")
	require.Error(t, err)
	_, err = m.List(t.Context(), lifecycle.Select[state]{States: []state{"Elsewhere"}})
	require.Error(t, err)
	counts(2, 3, 4)

	fire(t, m, "a", "delete", user, nil)
	fire(t, m, "a", "done", agent, nil)
	counts(4, 3, 4)
	report(t, m, "a", 2, "done", agent, "")
	counts(4, 3, 5)
	require.Empty(t, reported[4].State)
	require.EqualValues(t, 2, reported[4].Present)
	for _, err := range refused {
		_, ok := err.(*lifecycle.Error) // the observer is given the error itself
		require.True(t, ok, "%T", err)
	}
}

// TestObserverOfFailures: the observer receives a commit that failed, or whose
// outcome is unknown, as refused and not as a change.
func TestObserverOfFailures(t *testing.T) {
	store := &hooked{MemoryStore: lifecycle.NewMemoryStore()}
	var changes, refusals int
	m := lifecycle.Must(sizedVM, store, &lifecycle.Config[event]{Observer: lifecycle.Observer{
		Changed: func(context.Context, lifecycle.CommittedChange) { changes++ },
		Refused: func(context.Context, error) { refusals++ },
	}})
	ready(t, m, "a")
	require.Equal(t, 2, changes)
	for i, err := range []error{errors.New("disk full"), lifecycle.ErrUnknownOutcome} {
		store.onCommit = func(int, *lifecycle.Commit, func() error) error { return err }
		_, got := m.Fire(t.Context(), "a", "update", user, nil)
		require.ErrorIs(t, got, err)
		require.Equal(t, 2, changes)
		require.Equal(t, 2*i+1, refusals)
		_, got = m.Report(t.Context(), "a", 1, "touch", agent, nil)
		require.ErrorIs(t, got, err)
		require.Equal(t, 2*i+2, refusals)
	}
}
