package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// versioned is a manager of disks in bytes, of version 2, with these older versions.
func versioned(store lifecycle.Store, older ...lifecycle.Version) *newDisks {
	return lifecycle.Must(disk2, store, &lifecycle.Config[string]{Undo: []string{"undo"}, Version: "2", Older: older})
}

// plainDisk is an older version with the names and payloads of the manager.
func plainDisk(name string) lifecycle.Version {
	return lifecycle.Version{Name: name, States: map[string]string{
		"None": "None", "Available": "Available", "Connecting": "Connecting", "Attached": "Attached", "Broken": "Broken",
	}}
}

// TestConversionFails: a payload that cannot be converted is never read or written as one of
// the other version, also where it would be valid there.
func TestConversionFails(t *testing.T) {
	refuse := func([]byte) ([]byte, error) { return nil, errBoom }
	keep := func(payload []byte) ([]byte, error) { return payload, nil }
	for name, c := range map[string]struct {
		upgrade, downgrade func([]byte) ([]byte, error)
		want               error
	}{
		"Upgrade":   {refuse, keep, lifecycle.ErrForeign},
		"Downgrade": {keep, refuse, errBoom},
	} {
		t.Run(name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			create(t, lifecycle.Must(disk2, store, &lifecycle.Config[string]{Version: "1"}), "a", "create", "user", diskBytes{Bytes: 1})
			before := diskAt(t, store, "a")
			older := plainDisk("1")
			older.Upgrade, older.Downgrade = c.upgrade, c.downgrade
			m := versioned(store, older)
			_, err := m.Fire(t.Context(), "a", "grow", "user", growTo(2))
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, err, errBoom)
			_, err = m.Get(t.Context(), "a")
			if c.want == lifecycle.ErrForeign {
				require.ErrorIs(t, err, lifecycle.ErrForeign)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, before, diskAt(t, store, "a"))
		})
	}
}

// TestStateIsNotOfTheVersion: a record of an older version is in a state that only the
// manager's table has.
func TestStateIsNotOfTheVersion(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(disk2, store, &lifecycle.Config[string]{Version: "1"})
	create(t, m, "a", "create", "user", diskBytes{})
	fire(t, m, "a", "pause", "user", nil)
	_, err := versioned(store, plainDisk("1")).Get(t.Context(), "a")
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.EqualError(t, err, `lifecycle: get disk "a": foreign record: Config.Older: version "1" has no state "Paused"`)
}

// TestNewObjectInAStateThatTheVersionLacks: a record that does not exist is never migrated. The
// error names the configuration that lacks the state.
func TestNewObjectInAStateThatTheVersionLacks(t *testing.T) {
	_, err := versioned(lifecycle.NewMemoryStore(), plainDisk("1")).Add(t.Context(), "a", "Paused", "user", diskBytes{}, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	require.EqualError(t, err, `lifecycle: add disk "a" by user: not allowed: Config.Older: version "1", `+
		`which new objects have until Config.Switch is set, has no state "Paused"`)
}

// TestRecordWithoutAVersion: a record that a program without a version has written is foreign
// to a manager that has a version and no such older one.
func TestRecordWithoutAVersion(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	create(t, lifecycle.Must(disk2, store, nil), "a", "create", "user", diskBytes{})
	_, err := versioned(store, plainDisk("1")).Get(t.Context(), "a")
	unknown, ok := errors.AsType[*lifecycle.VersionError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, lifecycle.VersionError{Record: "", Manager: "2"}, *unknown)
}

// TestOlderVersionsOfOtherStates: each older version has a state that the other one lacks. A
// change of the map after New has no effect.
func TestOlderVersionsOfOtherStates(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	first, second := plainDisk("0"), plainDisk("1")
	delete(first.States, "Attached")
	first.States["Used"] = "Attached"
	second.States["Halted"] = "Paused"
	m := versioned(store, first, second)
	clear(second.States)
	require.Equal(t, "1", create(t, m, "a", "create", "user", diskBytes{}).Version)
	fire(t, m, "a", "pause", "user", nil)
	require.Equal(t, "Halted", diskAt(t, store, "a").State)
	require.Equal(t, "Paused", get(t, m, "a").State)
}

// TestIgnoredInAnOlderVersion: the table ignores an event, and its first state is not one of
// the record's version. Nothing is refused.
func TestIgnoredInAnOlderVersion(t *testing.T) {
	pings := fsm.Must[size](fsm.Spec[string, string]{
		Name: "pinged", Initial: "Idle", Actors: []fsm.Actor{"user"},
		States: []fsm.State[string]{{Name: "New"}, {Name: "Idle"}},
		Rows: fsm.Rows(
			fsm.Ignore("Idle", "ping"),
			fsm.Move("Idle", "renew", "New"),
			fsm.Move("New", "rest", "Idle"),
		),
	})
	store := lifecycle.NewMemoryStore()
	m := lifecycle.Must(pings, store, &lifecycle.Config[string]{
		Version: "2", Older: []lifecycle.Version{{Name: "1", States: map[string]string{"Idle": "Idle"}}},
	})
	add(t, m, "a", "user", size{})
	require.Equal(t, "Idle", fire(t, m, "a", "ping", "user", nil).State)
	_, err := m.Fire(t.Context(), "a", "renew", "user", nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
}
