package crashtest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// TestPath checks that the problems of a history are found, and that a sound history has
// none. The faults of TestFaultsAreFound show the others, and package fsm/history tests what
// a table allows.
func TestPath(t *testing.T) {
	row := func(sequence uint64, op lifecycle.OpID, from, fromOrigin string, e event, by fsm.Actor, to, origin string) lifecycle.HistoryRow {
		return lifecycle.HistoryRow{
			Key: key("a"), Sequence: sequence, Token: lifecycle.NewToken(), Operation: op,
			From: from, FromOrigin: fromOrigin, Event: string(e), Actor: by, To: to, Origin: origin,
		}
	}
	created := row(1, 1, "", "", "create", "user", "creating", "none")
	stopped := row(2, 1, "creating", "none", "done", "worker", "stopped", "stopped")
	starting := row(3, 2, "stopped", "stopped", "start", "user", "starting", "stopped")
	running := row(4, 2, "starting", "stopped", "done", "worker", "running", "running")
	deleting := row(3, 2, "stopped", "stopped", "delete", "user", "deleting", "stopped")
	removed := row(4, 2, "deleting", "stopped", "done", "worker", "none", "none")
	for name, test := range map[string]struct {
		rows []lifecycle.HistoryRow
		want string
	}{
		"life":               {[]lifecycle.HistoryRow{created, stopped, starting, running}, ""},
		"first rows missing": {[]lifecycle.HistoryRow{starting, running}, ""},
		"removed":            {[]lifecycle.HistoryRow{created, stopped, deleting, removed}, ""},
		"created again": {
			[]lifecycle.HistoryRow{created, stopped, deleting, removed, row(5, 3, "", "", "create", "user", "creating", "none")}, "",
		},
		"overridden": {
			[]lifecycle.HistoryRow{created, row(2, 2, "creating", "none", lifecycle.Overridden, "user", "running", "running")}, "",
		},
		"operation back": {[]lifecycle.HistoryRow{created, row(2, 0, "creating", "none", "done", "worker", "stopped", "stopped")}, "it follows operation 1"},
		"operation left out": {
			[]lifecycle.HistoryRow{created, stopped, row(3, 3, "stopped", "stopped", "start", "user", "starting", "stopped")},
			"it follows operation 1",
		},
		"another operation": {
			[]lifecycle.HistoryRow{created, row(2, 2, "creating", "none", "done", "worker", "stopped", "stopped")},
			"outcome-without-intent",
		},
		"another origin": {
			[]lifecycle.HistoryRow{created, stopped, row(3, 2, "stopped", "stopped", "start", "user", "starting", "failed")},
			"wrong-origin",
		},
	} {
		t.Run(name, func(t *testing.T) {
			last := &test.rows[len(test.rows)-1]
			r := &lifecycle.StoredRecord{
				Key: last.Key, State: last.To, Sequence: last.Sequence, Operation: last.Operation,
			}
			if last.To == "none" {
				r.State = ""
			}
			problem := path(r, vm.Table(), test.rows)
			require.Equal(t, test.want == "", problem == "", problem)
			require.Contains(t, problem, test.want)
		})
	}
	gap := []lifecycle.HistoryRow{created, row(2, 1, "stopped", "stopped", "start", "user", "starting", "stopped")}
	require.Contains(t, path(&lifecycle.StoredRecord{}, nil, gap), "it does not begin where the one before has ended")
	require.Equal(t, "it is empty", path(&lifecycle.StoredRecord{State: "running", Sequence: 1}, vm.Table(), nil))
}

func TestAudit(t *testing.T) {
	store := &bent{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}}
	m := lifecycle.Must(vm, store, nil)
	_, err := m.Create(t.Context(), "a", "create", "user", struct{}{}, nil)
	require.NoError(t, err)
	for range 130 { // more than a page
		_, err = m.Override(t.Context(), "a", "stopped", "user", "for the length of it", nil)
		require.NoError(t, err)
	}
	rows, err := Audit(t.Context(), store, vm.Table(), "a")
	require.NoError(t, err)
	require.Len(t, rows, 131)

	store.get = func(r *lifecycle.StoredRecord) { r.State = "running" }
	rows, err = Audit(t.Context(), store, vm.Table(), "a")
	require.ErrorContains(t, err, `the history of vm "a": the record is running at #131`)
	require.NotEmpty(t, rows)

	_, err = Audit(t.Context(), struct{ lifecycle.Store }{store}, vm.Table(), "a")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	store.get = nil
	_, err = Audit(t.Context(), store, vm.Table(), "b")
	require.NoError(t, err, "nothing is known of it, and nothing is wrong")
	require.NoError(t, store.Close())
	_, err = Audit(t.Context(), store, vm.Table(), "a")
	require.ErrorIs(t, err, lifecycle.ErrClosed)
}
