package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestRepeatedLongAfter: a report is recognized however far back in the history
// of its operation it was accepted.
func TestRepeatedLongAfter(t *testing.T) {
	for _, c := range [][2]int{{0, 120}, {97, 120}, {98, 120}, {99, 120}, {150, 120}, {0, 99}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			before, after := c[0], c[1]
			m, _ := vms(t)
			create(t, m, "a", "import", user, size{})
			for range before {
				fire(t, m, "a", "touch", user, nil)
			}
			fire(t, m, "a", "update", user, nil)
			report := func(e event) lifecycle.Verdict {
				return report(t, m, "a", 1, e, agent, "")
			}
			require.Equal(t, lifecycle.Applied, report("progress"))
			require.Equal(t, lifecycle.Applied, report("done"))
			for range after {
				fire(t, m, "a", "touch", user, nil)
			}
			require.Equal(t, lifecycle.Repeated, report("progress"))
			require.Equal(t, lifecycle.Repeated, report("done"))
			require.Equal(t, lifecycle.Refused, report("fail"))
			require.Equal(t, lifecycle.Refused, report("late"), "by another actor")
		})
	}
}

// TestRepeatedOfThisOperation: what an earlier operation accepted repeats
// nothing in this one.
func TestRepeatedOfThisOperation(t *testing.T) {
	m, _ := vms(t)
	updating(t, m, "a") // "done" was accepted in operation 1
	require.Equal(t, lifecycle.Applied, report(t, m, "a", 2, "fail", agent, ""))
	require.Equal(t, lifecycle.Refused, report(t, m, "a", 2, "done", agent, ""))
}

// TestRepeatedWithoutHistory: without history, only the last change can be
// recognized as repeated.
func TestRepeatedWithoutHistory(t *testing.T) {
	m := lifecycle.Must(sizedVM, struct{ lifecycle.Store }{lifecycle.NewMemoryStore()}, nil)
	updating(t, m, "a")
	report := func(e event) lifecycle.Verdict {
		return report(t, m, "a", 2, e, agent, "")
	}
	require.Equal(t, lifecycle.Applied, report("progress"))
	require.Equal(t, lifecycle.Applied, report("done"))
	require.Equal(t, lifecycle.Repeated, report("done"))
	require.Equal(t, lifecycle.Refused, report("progress"), "it was accepted, but the store does not have it")
}

// noHistory fails to read the history.
type noHistory struct{ *lifecycle.MemoryStore }

var errHistory = errors.New("the history cannot be read")

func (noHistory) History(context.Context, lifecycle.Key, uint64, int) ([]lifecycle.HistoryRow, error) {
	return nil, errHistory
}

// TestHistoryFails: without the history, a repeated report cannot be distinguished
// from a refused one.
func TestHistoryFails(t *testing.T) {
	m := lifecycle.Must(sizedVM, noHistory{lifecycle.NewMemoryStore()}, nil)
	updating(t, m, "a")
	verdict, err := m.Report(t.Context(), "a", 2, "late", agent, nil)
	require.ErrorIs(t, err, errHistory)
	require.Equal(t, lifecycle.Refused, verdict)
	require.EqualError(t, err, `lifecycle: report vm "a": late by agent in Updating: the history cannot be read`)
	require.Equal(t, lifecycle.Applied, report(t, m, "a", 2, "done", agent, ""))
	require.Equal(t, lifecycle.Repeated, report(t, m, "a", 2, "done", agent, ""))
	require.Equal(t, lifecycle.Stale, report(t, m, "a", 1, "late", agent, ""))
	require.Equal(t, lifecycle.Refused, report(t, m, "a", 3, "late", agent, ""))
}

// TestReportStartsNoOperation: no report starts an operation, for any actor.
func TestReportStartsNoOperation(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	updating(t, m, "b")
	before := all(t, store.MemoryStore, "vm", "a", "b")
	require.Equal(t, lifecycle.Refused, report(t, m, "a", 1, "update", user, ""))
	require.Equal(t, lifecycle.Refused, report(t, m, "a", 1, "delete", user, ""))
	require.Equal(t, lifecycle.Refused, report(t, m, "b", 2, "delete", user, ""), "superseding")
	require.Equal(t, before, all(t, store.MemoryStore, "vm", "a", "b"))
}

// TestReportRunsGuardsOnce: a report that a guard refuses is compared with those
// before, and the guard does not run again for that.
func TestReportRunsGuardsOnce(t *testing.T) {
	runs := 0
	first := fsm.When("first", func(context.Context, *size, *size) error {
		if runs++; runs > 1 {
			return errBoom
		}
		return nil
	})
	m := lifecycle.Must(fsm.Must[size](fsm.Spec[state, event]{
		Name: "counted", Initial: "None", Actors: []fsm.Actor{user, agent},
		States: []fsm.State[state]{{Name: "None", Kind: fsm.Absent}, {Name: "Creating", Kind: fsm.Transitional}, {Name: "Ready", Kind: fsm.Final}},
		Rows: fsm.Rows(
			fsm.Move[state, event]("None", "create", "Creating").By(user),
			fsm.Move[state, event]("Creating", "progress", "Creating").By(agent).If(first),
			fsm.Move[state, event]("Creating", "done", "Ready").By(agent).After(time.Minute),
		),
	}), lifecycle.NewMemoryStore(), nil)
	create(t, m, "a", "create", user, size{})
	require.Equal(t, lifecycle.Applied, report(t, m, "a", 1, "progress", agent, ""))
	require.Equal(t, lifecycle.Repeated, report(t, m, "a", 1, "progress", agent, ""))
	require.Equal(t, 2, runs)
}

func TestVerdictString(t *testing.T) {
	for v, want := range map[lifecycle.Verdict]string{
		lifecycle.Applied: "applied", lifecycle.Repeated: "repeated", lifecycle.Stale: "stale",
		lifecycle.Refused: "refused", 99: "verdict?",
	} {
		t.Run(want, func(t *testing.T) { require.Equal(t, want, v.String()) })
	}
}

// A report about the last operation of a removed object is stale for a new object of
// the same id.
func TestReportOfAFormerLife(t *testing.T) {
	for _, store := range []lifecycle.Store{lifecycle.NewMemoryStore(), bare{lifecycle.NewMemoryStore()}} {
		m := lifecycle.Must(sizedVM, store, nil)
		create(t, m, "a", "import", user, size{})
		rec := fire(t, m, "a", "delete", user, nil)
		gone := rec.Operation
		fire(t, m, "a", "done", agent, nil)
		again := create(t, m, "a", "import", user, size{})
		for range 2 {
			for _, e := range []event{"done", "touch"} {
				require.Equal(t, lifecycle.Stale, report(t, m, "a", gone, e, agent, ""))
			}
		}
		require.Equal(t, again, get(t, m, "a"))
	}
}
