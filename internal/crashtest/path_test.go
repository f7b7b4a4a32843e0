package crashtest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// What a row may be after another one.
func TestStep(t *testing.T) {
	row := func(op lifecycle.OpID, from, fromOrigin string, e event, by fsm.Actor, to, origin string) *lifecycle.HistoryRow {
		return &lifecycle.HistoryRow{
			Key: key("a"), Operation: op, From: from, FromOrigin: fromOrigin, Event: string(e), Actor: by, To: to, Origin: origin,
		}
	}
	created := row(1, "", "", "create", "user", "creating", "none")
	stopped := row(1, "creating", "none", "done", "worker", "stopped", "stopped")
	starting := row(2, "stopped", "stopped", "start", "user", "starting", "stopped")
	rebooting := row(3, "running", "running", "reboot", "user", "rebooting", "running")
	removed := row(4, "deleting", "stopped", "done", "worker", "none", "none")
	for name, test := range map[string]struct {
		before, row *lifecycle.HistoryRow
		want        string
	}{
		"created":            {nil, created, ""},
		"ends":               {created, stopped, ""},
		"begins":             {stopped, starting, ""},
		"first of many kept": {nil, starting, ""},
		"returns":            {starting, row(2, "starting", "stopped", "late", fsm.Sweeper, "stopped", "stopped"), ""},
		"again":              {rebooting, row(4, "rebooting", "running", "late", fsm.Sweeper, "rebooting", "running"), ""},
		"overridden":         {starting, row(3, "starting", "stopped", lifecycle.Overridden, "user", "running", "running"), ""},
		"created again":      {removed, row(5, "", "", "create", "user", "creating", "none"), ""},
		"elsewhere": {
			starting, row(2, "starting", "stopped", "done", "worker", "failed", "failed"), "the table leads elsewhere",
		},
		"another origin": {
			stopped, row(2, "stopped", "stopped", "start", "user", "starting", "failed"), "the table leads elsewhere",
		},
		"no such row": {
			stopped, row(1, "stopped", "stopped", "stop", "user", "stopping", "stopped"), "not allowed",
		},
		"wrong actor": {
			created, row(1, "creating", "none", "done", "user", "stopped", "stopped"), "wrong actor",
		},
		"no such event": {stopped, row(1, "stopped", "stopped", "fly", "user", "stopped", "stopped"), "the table has no such event"},
		"does not follow": {
			created, row(1, "starting", "stopped", "done", "worker", "running", "running"), "it does not begin where the one before has ended",
		},
		"overridden from elsewhere": {
			created, row(2, "starting", "stopped", lifecycle.Overridden, "user", "running", "running"), "it does not begin where the one before has ended",
		},
		"with another origin": {
			starting, row(2, "starting", "failed", "done", "worker", "running", "running"), "it does not begin where the one before has ended",
		},
		"created where it was": {stopped, created, "it does not begin where the one before has ended"},
		"begins nothing":       {stopped, row(1, "stopped", "stopped", "start", "user", "starting", "stopped"), "the operation is another one than it should be"},
		"goes on as another": {
			created, row(2, "creating", "none", "done", "worker", "stopped", "stopped"), "the operation is another one than it should be",
		},
		"goes back": {starting, row(1, "starting", "stopped", "done", "worker", "running", "running"), "it follows operation 2"},
		"leaps":     {starting, row(4, "starting", "stopped", "done", "worker", "running", "running"), "it follows operation 2"},
		"is added": {
			nil, row(0, "", "", "", "user", "stopped", "stopped"), "no row creates the object",
		},
		"unknown state": {
			nil, row(1, "stopped", "stopped", "start", "user", "flying", "stopped"),
			"unknown state",
		},
	} {
		t.Run(name, func(t *testing.T) {
			problem := step(vm.Table(), test.before, test.row)
			require.Equal(t, test.want == "", problem == "", problem)
			require.Contains(t, problem, test.want)
		})
	}
}

func TestAudit(t *testing.T) {
	store := &bent{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}}
	m := lifecycle.Must(vm, store, nil)
	_, err := m.Create(t.Context(), "a", "create", "user", struct{}{})
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
