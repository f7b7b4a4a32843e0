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
	m := newDisks(t)
	in := m.Instance()
	require.Equal(t, m.At("ABSENT"), in.Status())
	require.Equal(t, "ABSENT", in.State())
	require.Equal(t, m.Start(), in.Status())

	s := sound()
	s.Initial = "closed" // not the first
	s = with(s, fsm.Move("closed", "unlock", "open"))
	doors := mustNew(t, s)
	door := doors.Instance()
	require.Equal(t, "closed", door.State())
	require.Equal(t, doors.At("closed"), doors.Start())
}

func TestInstanceAtKeepsStateAndOrigin(t *testing.T) {
	m := newDisks(t)
	for s := range m.States() {
		for o := range m.States() {
			in, err := m.InstanceAt(status(s, o))
			require.NoError(t, err)
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

func TestInstanceNextMovesNothing(t *testing.T) {
	m := newDisks(t)
	in := m.Instance()
	step, err := in.Next(t.Context(), "create", user, nil)
	require.NoError(t, err)
	pure, err := m.Next(t.Context(), m.Start(), "create", user, nil)
	require.NoError(t, err)
	require.Equal(t, pure.Status, step.Status)
	require.Equal(t, pure.Row, step.Row)
	require.Equal(t, m.Start(), in.Status())

	_, err = in.Next(t.Context(), "delete", user, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	_, err = in.Next(t.Context(), "explode", user, nil)
	require.ErrorIs(t, err, fsm.ErrUnknownEvent)
}

func TestMoveThatNobodyDecidedPanics(t *testing.T) {
	m := newDisks(t)
	in := m.Instance()
	const text = "fsm: CompareAndSwap of a move that Next of this instance did not return"
	require.PanicsWithValue(t, text, func() { _, _ = in.CompareAndSwap(fsm.Pending[string]{}) })
	require.Equal(t, m.Start(), in.Status())
}

// What was refused is no move, and panics rather than moving the object to
// wherever.
func TestMoveThatWasRefusedPanics(t *testing.T) {
	m := newDisks(t)
	in := m.Instance()
	move, err := in.Next(t.Context(), "delete", user, nil)
	require.Error(t, err)
	require.Panics(t, func() { _, _ = in.CompareAndSwap(move) })
	require.Equal(t, m.Start(), in.Status())
}

func TestZeroInstancePanics(t *testing.T) {
	var in fsm.Instance[string, string, disk]
	require.Panics(t, func() { _, _ = in.Fire(t.Context(), "create", user, nil) })
	require.Panics(t, func() { _ = in.State() })
}
