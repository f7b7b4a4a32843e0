package fsm_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

func TestInstanceIsSixteenBytes(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.EqualValues(t, 16, unsafe.Sizeof(fsm.Instance[string, string, disk]{}))
		require.EqualValues(t, 16, unsafe.Sizeof(fsm.Instance[[9]int, point, [100]byte]{}))
	}
}

func TestInstanceBeginsInTheInitialState(t *testing.T) {
	s := sound()
	s.Initial = "closed" // not the first
	doors := mustNew(t, with(s, fsm.Move("closed", "unlock", "open")))
	door := doors.Instance()
	require.Equal(t, "closed", door.State())
	require.Equal(t, doors.At("closed"), door.Status())
	require.Equal(t, doors.At("closed"), doors.Start())
}

func TestInstanceAtKeepsStateAndOrigin(t *testing.T) {
	m := newDisks(t)
	for s := range m.States() {
		for o := range m.States() {
			in := instanceAt(t, m, status(s, o))
			require.Equal(t, status(s, o), in.Status())
			require.Equal(t, s, in.State())
		}
	}
}

func TestInstancesOfOneMachineAreIndependent(t *testing.T) {
	m := newDisks(t)
	a, b := m.Instance(), m.Instance()
	_, err := a.Fire(t.Context(), "create", user, nil)
	require.NoError(t, err)
	require.Equal(t, "CREATING", a.State())
	require.Equal(t, "ABSENT", b.State())
}

func TestZeroInstancePanics(t *testing.T) {
	var in fsm.Instance[string, string, disk]
	require.Panics(t, func() { _, _ = in.Fire(t.Context(), "create", user, nil) })
	require.Panics(t, func() { _ = in.State() })
}
