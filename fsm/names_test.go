package fsm_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// level is what generated enums look like: a number with names.
type level int32

func (l level) String() string { return [...]string{"LOW", "HIGH", "LOW"}[l] }

type point struct{ X, Y int }

// roundTrip drives a ring of states of any type by events of any type.
func roundTrip[S, E comparable](t *testing.T, states []S, events []E) {
	m := mustNew(t, ring(states, events))
	in := m.Instance()
	for i, e := range events {
		require.Equal(t, states[i], in.State())
		_, err := in.Fire(t.Context(), e, user, nil)
		require.NoError(t, err)
		require.Equal(t, i, m.StateIndex(states[i]))
		require.Equal(t, i, m.EventIndex(e))
		require.Equal(t, states[i], m.StateAt(i))
		require.Equal(t, e, m.EventAt(i))
		require.Equal(t, fmt.Sprint(states[i]), m.Table().States[i].Name)
		require.Equal(t, fmt.Sprint(e), m.Table().Events[i])
		at, err := m.ParseStatus(fmt.Sprint(states[i]), "")
		require.NoError(t, err)
		require.Equal(t, m.At(states[i]), at)
	}
	require.Equal(t, states[0], in.State())
}

func TestStatesAndEventsAreAnyComparable(t *testing.T) {
	a, b := new(int), new(int)
	t.Run("string", func(t *testing.T) { roundTrip(t, []string{"a", "b"}, []string{"x", "y"}) })
	t.Run("enum", func(t *testing.T) { roundTrip(t, []level{0, 1}, []level{1, 2}) })
	t.Run("int", func(t *testing.T) { roundTrip(t, []int{-7, 7}, []uint8{0, 255}) })
	t.Run("float", func(t *testing.T) { roundTrip(t, []float64{0.5, 1e300}, []float32{1, 2}) })
	t.Run("bool", func(t *testing.T) { roundTrip(t, []bool{false, true}, []bool{true, false}) })
	t.Run("struct", func(t *testing.T) { roundTrip(t, []point{{1, 2}, {2, 1}}, []struct{ n int }{{1}, {2}}) })
	t.Run("array", func(t *testing.T) { roundTrip(t, [][2]int{{1, 2}, {2, 1}}, [][1]string{{"x"}, {"y"}}) })
	t.Run("pointer", func(t *testing.T) { roundTrip(t, []*int{a, b}, []*int{b, a}) })
	t.Run("interface", func(t *testing.T) { roundTrip(t, []any{"a", 1}, []fmt.Stringer{level(0), level(1)}) })
}

func TestNamesComeFromTheStringerOrTheString(t *testing.T) {
	m := mustNew(t, ring([]level{1, 0}, []string{"up", "down"}))
	require.Equal(t, "HIGH", m.Table().States[0].Name)
	require.Equal(t, "LOW", m.Table().States[1].Name)
	require.Equal(t, []string{"up", "down"}, m.Table().Events)

	_, err := m.Next(t.Context(), m.At(1), "down", user, nil)
	require.EqualError(t, err, "fsm: not allowed: ring: down in HIGH by user")
}

func TestNamesAreUnique(t *testing.T) {
	_, err := fsm.New[none](ring([]level{0, 1, 2}, []string{"x", "y", "z"}))
	require.ErrorIs(t, err, fsm.ErrInvalid)
	require.ErrorContains(t, err, `state 2: name "LOW" is taken`)

	_, err = fsm.New[none](ring([]string{"a", "b", "c"}, []level{0, 1, 2}))
	require.ErrorIs(t, err, fsm.ErrInvalid)
	require.ErrorContains(t, err, `event 2: name "LOW" is taken`)
}

func TestParseStatusMapsNamesBack(t *testing.T) {
	m := newDisks(t)
	for _, c := range []struct {
		state, origin string
		want          fsm.Status[string]
	}{
		{"CREATED", "", fsm.Status[string]{State: "CREATED", Origin: "CREATED"}},
		{"CREATED", "CREATED", fsm.Status[string]{State: "CREATED", Origin: "CREATED"}},
		{"DELETING", "CREATED", fsm.Status[string]{State: "DELETING", Origin: "CREATED"}},
		{"DELETING", "TOBEDELETED", fsm.Status[string]{State: "DELETING", Origin: "TOBEDELETED"}},
		{"DELETING", "", fsm.Status[string]{State: "DELETING", Origin: "DELETING"}},
	} {
		got, err := m.ParseStatus(c.state, c.origin)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		s, o, err := m.Table().ParseStatus(c.state, c.origin)
		require.NoError(t, err)
		require.Equal(t, c.want, fsm.Status[string]{State: m.StateAt(s), Origin: m.StateAt(o)})
	}
}

func TestParseStatusRefusesUnknownAndContradictoryNames(t *testing.T) {
	m := newDisks(t)
	for _, c := range []struct{ state, origin, reason string }{
		{"NOWHERE", "", "not declared"},
		{"", "", "not declared"},
		{"created", "", "not declared"},
		{"CREATED\x00", "", "not declared"},
		{"DELETING", "NOWHERE", `origin "NOWHERE" is not declared`},
		{"CREATED", "NOWHERE", `origin "NOWHERE" is not declared`},
		{"CREATED", "BROKEN", `rests, and cannot have the origin "BROKEN"`},
		{"CREATED", "DELETING", `rests, and cannot have the origin "DELETING"`},
	} {
		got, err := m.ParseStatus(c.state, c.origin)
		require.ErrorIs(t, err, fsm.ErrUnknownState, "%q %q", c.state, c.origin)
		require.Zero(t, got)
		te := detail(t, err)
		require.Equal(t, "disk", te.Machine)
		require.EqualError(t, te.Reason, c.reason)
		require.Equal(t, -1, te.Row)
	}
}

// A status that nobody parsed is not refused when it is made, but by whatever
// is asked about it.
func TestBareStatusIsRefusedWhereItIsUsed(t *testing.T) {
	m := newDisks(t)
	for _, at := range []fsm.Status[string]{
		m.At("NOWHERE"), {State: "CREATED", Origin: "NOWHERE"}, {State: "NOWHERE", Origin: "CREATED"}, {},
	} {
		_, err := m.Next(t.Context(), at, "delete", user, nil)
		require.ErrorIs(t, err, fsm.ErrUnknownState)
		_, err = m.NextForced(t.Context(), at, "delete", user, nil)
		require.ErrorIs(t, err, fsm.ErrUnknownState)
		_, err = m.NextTo(t.Context(), at, "DELETING", user, nil)
		require.ErrorIs(t, err, fsm.ErrUnknownState)
		require.ErrorIs(t, m.Can(t.Context(), at, "delete", user, nil), fsm.ErrUnknownState)
		_, err = m.InstanceAt(at)
		require.ErrorIs(t, err, fsm.ErrUnknownState)
		for range m.Permitted(at, user) {
			t.Fatal("a row is permitted in an undeclared status")
		}
	}
}

func TestUndeclaredValuesHaveNoIndexAndNoKind(t *testing.T) {
	m := newDisks(t)
	require.Equal(t, -1, m.StateIndex("NOWHERE"))
	require.Equal(t, -1, m.EventIndex("nothing"))
	require.Equal(t, fsm.Absent, m.Kind("NOWHERE"))
	require.Equal(t, fsm.Final, m.Kind("DELETED"))
	require.Equal(t, fsm.Failed, m.Kind("BROKEN"))

	_, ok := m.Table().StateIndex("NOWHERE")
	require.False(t, ok)
	_, ok = m.Table().EventIndex("nothing")
	require.False(t, ok)
	_, ok = m.Table().ActorIndex("nobody")
	require.False(t, ok)
	i, ok := m.Table().ActorIndex(guest)
	require.True(t, ok)
	require.Equal(t, 2, i)
}
