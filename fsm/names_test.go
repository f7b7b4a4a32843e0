package fsm_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
)

// level is a generated enumeration: a number with names.
type level int32

func (l level) String() string { return [...]string{"LOW", "HIGH", "LOW"}[l] }

type point struct{ X, Y int }

// raw is a string with any bytes. Its name is their hexadecimal form.
type raw string

func (r raw) String() string { return "x" + hex.EncodeToString([]byte(r)) }

// roundTrip fires a ring of states of any type by events of any type.
func roundTrip[S, E comparable](t *testing.T, name string, states []S, events []E, others ...S) {
	t.Run(name, func(t *testing.T) {
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
		for _, s := range others {
			require.Equal(t, -1, m.StateIndex(s))
		}
	})
}

func TestStatesAndEventsAreAnyComparable(t *testing.T) {
	a, b := new(int), new(int)
	roundTrip(t, "string", []string{"a", "b"}, []string{"x", "y"}, "", "A")
	roundTrip(t, "not UTF-8", []raw{"", "\x00", "\xff", "\xff\xfe"}, []raw{"a", "ab", "b", "\x00\x00"}, "\xfe")
	roundTrip(t, "enum", []level{0, 1}, []level{1, 2}, 2)
	roundTrip(t, "int", []int{-7, 7, math.MaxInt, math.MinInt}, []uint8{0, 255, 1, 2}, 0, -1)
	roundTrip(t, "float", []float64{0.5, 1e300}, []float32{1, 2}, 0, math.NaN())
	roundTrip(t, "bool", []bool{false, true}, []bool{true, false})
	roundTrip(t, "struct", []point{{1, 2}, {2, 1}}, []struct{ n int }{{1}, {2}}, point{})
	roundTrip(t, "struct without fields", []struct{}{{}}, []struct{}{{}})
	roundTrip(t, "array", [][2]int{{1, 2}, {2, 1}}, [][1]string{{"x"}, {"y"}}, [2]int{})
	roundTrip(t, "pointer", []*int{a, b}, []*int{b, a}, nil)
	roundTrip(t, "interface", []any{"a", 1}, []fmt.Stringer{level(0), level(1)}, any(int8(1)))
}

func TestNamesComeFromTheStringerOrTheString(t *testing.T) {
	m := mustNew(t, ring([]level{1, 0}, []string{"up", "down"}))
	require.Equal(t, "HIGH", m.Table().States[0].Name)
	require.Equal(t, "LOW", m.Table().States[1].Name)
	_, err := m.Next(t.Context(), m.At(1), "down", user, nil)
	require.EqualError(t, err, "fsm: not allowed: ring: down in HIGH by user")
}

// A table keeps no name that stands for a panic. In a fault or a refusal such a text is of
// use.
func TestPanicOfAName(t *testing.T) {
	require.Panics(t, func() { _, _ = fsm.New[none](ring([]level{0, 3}, []string{"x", "y"})) })
	require.Panics(t, func() { _, _ = fsm.New[none](ring([]string{"a", "b"}, []level{0, 3})) })

	spec := ring([]level{0, 1}, []level{1, 2})
	spec.Initial = 3
	_, err := fsm.New[none](spec)
	require.ErrorIs(t, err, fsm.ErrInvalid)
	m := mustNew(t, ring([]level{0, 1}, []level{1, 2}))
	_, err = m.Next(t.Context(), m.At(3), 1, user, nil)
	require.ErrorIs(t, err, fsm.ErrUnknownState)
	_, err = m.Next(t.Context(), m.At(0), 3, user, nil)
	require.ErrorIs(t, err, fsm.ErrUnknownEvent)
}

func TestNamesAreUnique(t *testing.T) {
	_, err := fsm.New[none](ring([]level{0, 1, 2}, []string{"x", "y", "z"}))
	require.ErrorIs(t, err, fsm.ErrInvalid)
	require.ErrorContains(t, err, `state 2: name "LOW" is taken`)

	_, err = fsm.New[none](ring([]string{"a", "b", "c"}, []level{0, 1, 2}))
	require.ErrorIs(t, err, fsm.ErrInvalid)
	require.ErrorContains(t, err, `event 2: name "LOW" is taken`)
}

func TestParseStatus(t *testing.T) {
	m := newDisks(t)
	for _, c := range []struct {
		state, origin string
		want          fsm.Status[string]
	}{
		{"CREATED", "", m.At("CREATED")},
		{"CREATED", "CREATED", m.At("CREATED")},
		{"DELETING", "CREATED", status("DELETING", "CREATED")},
		{"DELETING", "", m.At("DELETING")},
	} {
		t.Run(fmt.Sprintf("%q %q", c.state, c.origin), func(t *testing.T) {
			got, err := m.ParseStatus(c.state, c.origin)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			s, o, err := m.Table().ParseStatus(c.state, c.origin)
			require.NoError(t, err)
			require.Equal(t, c.want, status(m.StateAt(s), m.StateAt(o)))
		})
	}
	for _, c := range []struct{ state, origin, reason string }{
		{"NOWHERE", "", "not declared"},
		{"", "", "not declared"},
		{"created", "", "not declared"},
		{"DELETING", "NOWHERE", `origin "NOWHERE" is not declared`},
		{"CREATED", "NOWHERE", `origin "NOWHERE" is not declared`},
		{"CREATED", "BROKEN", `the state rests, and cannot have the origin "BROKEN"`},
		{"CREATED", "DELETING", `the state rests, and cannot have the origin "DELETING"`},
	} {
		t.Run(fmt.Sprintf("%q %q", c.state, c.origin), func(t *testing.T) {
			got, err := m.ParseStatus(c.state, c.origin)
			require.ErrorIs(t, err, fsm.ErrUnknownState)
			require.Zero(t, got)
			te := detail(t, err)
			require.Equal(t, "disk", te.Machine)
			require.EqualError(t, te.Reason, c.reason)
			require.Equal(t, strconv.Quote(c.state), te.From)
			require.Equal(t, -1, te.Row)
		})
	}
}

// A Status is a plain struct. Every method refuses undeclared values in one.
func TestUndeclaredStatusIsRefused(t *testing.T) {
	m := newDisks(t)
	for _, at := range []fsm.Status[string]{
		m.At("NOWHERE"), status("CREATED", "NOWHERE"), status("NOWHERE", "CREATED"), {},
	} {
		_, err := m.Next(t.Context(), at, "delete", user, nil)
		require.ErrorIs(t, err, fsm.ErrUnknownState)
		_, err = m.NextTo(t.Context(), at, "DELETING", user, nil)
		require.ErrorIs(t, err, fsm.ErrUnknownState)
		_, err = m.InstanceAt(at)
		require.ErrorIs(t, err, fsm.ErrUnknownState)
		for range m.Permitted(at, user) {
			t.Fatal("an event is permitted in an undeclared status")
		}
	}
	require.Equal(t, -1, m.StateIndex("NOWHERE"))
	require.Equal(t, -1, m.EventIndex("nothing"))
	require.Equal(t, fsm.Absent, m.Kind("NOWHERE"))
	require.Equal(t, fsm.Final, m.Kind("DELETED"))
	require.Equal(t, fsm.Stable, mustNew(t, sound()).Kind("open"), "the first state")
}
