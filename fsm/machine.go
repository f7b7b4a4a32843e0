package fsm

import (
	"context"
	"iter"
	"slices"
)

// Machine is a compiled table with types: states S, events E, and guards over a
// payload T. [New], [Must] and [Bind] make one. The zero Machine is not usable. A
// Machine is immutable and safe for concurrent use. All objects of its kind share
// it.
type Machine[S, E comparable, T any] struct {
	table    *Table
	c        *compiled // table.compiled
	states   index[S]
	events   index[E]
	names    []S        // state by index
	eventsBy []E        // event by index
	guards   []Guard[T] // by row; the zero Guard for none
	observer *Observer  // nil for none
}

// New compiles a specification. T is the payload of the guards. S and E are
// inferred:
//
//	doors, err := fsm.New[Door](fsm.Spec[State, Event]{...})
//
// The error is an [*InvalidError] that matches [ErrInvalid]. It lists every
// [Problem] of the specification. A transitional state with neither a timeout nor
// Manual is one. A panic of the String method of a declared state or an event of a row
// reaches the caller.
func New[T any, S, E comparable](spec Spec[S, E]) (*Machine[S, E, T], error) {
	b := newBuilder(&spec)
	guards := guardsOf[T](b, spec.Rows)
	if problems := append(b.faults.list, b.table.Problems()...); len(problems) > 0 {
		return nil, &InvalidError{Machine: spec.Name, Problems: problems}
	}
	return newMachine(b.table, b.names, b.eventsBy, guards), nil
}

// newMachine makes a machine of a table without errors. It keeps the table of another
// machine, and copies any other one.
func newMachine[T any, S, E comparable](t *Table, states []S, events []E, guards []Guard[T]) *Machine[S, E, T] {
	if t.compiled == nil {
		t = t.WithRows(t.Rows)
		t.compiled = compile(t)
	}
	return &Machine[S, E, T]{
		table: t, c: t.compiled, states: newIndex(states), events: newIndex(events),
		names: states, eventsBy: events, guards: guards,
	}
}

// Must is [New] for package variables. It panics with the text of the error of New.
func Must[T any, S, E comparable](spec Spec[S, E]) *Machine[S, E, T] {
	m, err := New[T](spec)
	if err != nil {
		panic(err.Error())
	}
	return m
}

// Name returns the machine's name.
func (m *Machine[S, E, T]) Name() string { return m.table.Name }

// Table returns the machine without type parameters. It is shared and read
// only.
func (m *Machine[S, E, T]) Table() *Table { return m.table }

// States returns the states in order of declaration.
func (m *Machine[S, E, T]) States() iter.Seq[S] { return slices.Values(m.names) }

// Events returns the events in the order in which the rows name them first.
func (m *Machine[S, E, T]) Events() iter.Seq[E] { return slices.Values(m.eventsBy) }

// Kind returns the kind of a state. An undeclared state is Absent.
func (m *Machine[S, E, T]) Kind(s S) Kind {
	if i := m.states.of(s); i >= 0 {
		return m.table.States[i].Kind
	}
	return Absent
}

// Observe returns a machine of the same table whose instances call this observer
// and no other. The receiver is unchanged.
func (m *Machine[S, E, T]) Observe(o Observer) *Machine[S, E, T] {
	watched := *m
	watched.observer = &o
	return &watched
}

// StateIndex returns the index of a state in the [Table], or -1 if it is not
// declared.
func (m *Machine[S, E, T]) StateIndex(s S) int { return m.states.of(s) }

// EventIndex returns the index of an event in the [Table], or -1 if no row names
// it.
func (m *Machine[S, E, T]) EventIndex(e E) int { return m.events.of(e) }

// StateAt returns the state with an index of the [Table]. It panics if there is
// none.
func (m *Machine[S, E, T]) StateAt(i int) S { return m.names[i] }

// EventAt returns the event with an index of the [Table]. It panics if there is
// none.
func (m *Machine[S, E, T]) EventAt(i int) E { return m.eventsBy[i] }

// Check runs the guard of a row on the payload before and after the caller's
// change. It returns nil if the row has no guard. The error is the guard's own.
func (m *Machine[S, E, T]) Check(ctx context.Context, row int, before, after *T) error {
	check := m.guards[row].check
	if check == nil {
		return nil
	}
	return check(ctx, before, after)
}
