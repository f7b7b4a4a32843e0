package lifecycle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// A call that goes on with an operation moves that one, and no other that has
// started since, even if the table permits it.
func TestChangeGoesOnWithAnOperation(t *testing.T) {
	m, store := vms(t)
	updating(t, m, "v")
	of := get(t, m, "v").Operation
	for _, wrong := range []lifecycle.OpID{of - 1, of + 1} {
		before := storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "v"})
		_, err := m.Fire(t.Context(), "v", "done", agent, &lifecycle.Change[size]{Operation: wrong})
		require.ErrorIs(t, err, lifecycle.ErrStale)
		err = commitAll(t.Context(), firing(m, "v", "done", agent, &lifecycle.Change[size]{Operation: wrong}))
		require.ErrorIs(t, err, lifecycle.ErrStale)
		_, err = m.Override(t.Context(), "v", "Ready", "ann", "checked by hand", &lifecycle.Change[size]{Operation: wrong})
		require.ErrorIs(t, err, lifecycle.ErrStale)
		require.Equal(t, before, storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "v"}))
	}
	require.EqualValues(t, "Ready", fire(t, m, "v", "done", agent, &lifecycle.Change[size]{Operation: of}).State)
	_, err := m.Fire(t.Context(), "missing", "done", agent, &lifecycle.Change[size]{Operation: of})
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// TestChangeNamesAnAdmissionAlone: a call with the token of another operation is stale, also
// if it names no number. The token of an operation creates no object.
func TestChangeNamesAnAdmissionAlone(t *testing.T) {
	m, store := vms(t)
	updating(t, m, "v")
	present := get(t, m, "v").Admission
	other := &lifecycle.Change[size]{Admission: lifecycle.NewToken()}
	before := storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "v"})
	_, err := m.Fire(t.Context(), "v", "done", agent, other)
	require.ErrorIs(t, err, lifecycle.ErrStale)
	_, err = m.Override(t.Context(), "v", "Ready", "ann", "checked by hand", other)
	require.ErrorIs(t, err, lifecycle.ErrStale)
	require.Equal(t, before, storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "v"}))
	require.EqualValues(t, "Ready", fire(t, m, "v", "done", agent, &lifecycle.Change[size]{Admission: present}).State)

	w := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	_, err = w.Do(t.Context(), "missing", "create", user, nothing, other)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// TestCreateNamesAnOperation: a call that continues an operation creates no object.
func TestCreateNamesAnOperation(t *testing.T) {
	m, store := vms(t)
	for name, change := range map[string]*lifecycle.Change[size]{
		"number": {Operation: 1}, "token": {Admission: lifecycle.NewToken()},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.Create(t.Context(), "v", "create", user, size{}, change)
			require.ErrorIs(t, err, lifecycle.ErrNotFound)
			_, err = m.Add(t.Context(), "v", "Ready", user, size{}, change)
			require.ErrorIs(t, err, lifecycle.ErrNotFound)
			require.Zero(t, storedAt(t, store, lifecycle.Key{Machine: "vm", ID: "v"}).Sequence)
		})
	}
	ready(t, m, "v")
	_, err := m.Create(t.Context(), "v", "create", user, size{}, &lifecycle.Change[size]{Operation: 1})
	require.ErrorIs(t, err, lifecycle.ErrExists)
}
