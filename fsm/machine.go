package fsm

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
)

// Machine is a compiled table: typed states S and events E, guards over a
// payload T. [New], [Must] and [Bind] make one; the zero Machine is not usable.
// A Machine is immutable, safe for concurrent use, and shared by all objects of
// its kind; it must not be copied.
type Machine[S, E comparable, T any] struct {
	_       [0]atomic.Uint64
	base    uint64 // the column of an integer event is its value less base
	columns uint64 // of cells; 0 where there are none
	core[S, E, T]
	// The cells follow in memory: see grid.go.
}

// core is everything of a machine that has a fixed size.
type core[S, E comparable, T any] struct {
	self       *Machine[S, E, T] // itself, so that a copy of a Machine, which has no cells, does no harm
	c          *compiled         // that of table, one load nearer
	states     index[S]
	events     index[E]
	names      []S // state by index
	grid       grid
	first      [3]Actor // the first of the actors
	columnBook book     // of string events
	placeBook  book     // of string states
	values     []uint32 // places of integer states by value less base, 0 where none is
	observer   *Observer
	guards     []func(context.Context, *T) error // by row; nil where there is none
	table      *Table
	spec       []Row[S, E] // as declared, sources expanded
	eventsBy   []E         // event by index
}

// New compiles a specification. T is the payload that guards look at; S and E
// are inferred:
//
//	doors, err := fsm.New[Door](fsm.Spec[State, Event]{...})
//
// The error is an [*InvalidError], matches [ErrInvalid] and lists every
// [Problem] of the specification at once: what makes a table unsound, and a
// transitional state without deadline or Manual.
func New[T any, S, E comparable](spec Spec[S, E]) (*Machine[S, E, T], error) {
	b := newBuilder[S, E, T](spec)
	problems := append(b.problems, b.table.Problems()...)
	if len(problems) > 0 {
		return nil, &InvalidError{Machine: spec.Name, Problems: problems}
	}
	b.table.compiled = compile(b.table)
	return b.machine(), nil
}

// Must is [New] for package variables. It panics with the error.
func Must[T any, S, E comparable](spec Spec[S, E]) *Machine[S, E, T] {
	m, err := New[T](spec)
	if err != nil {
		panic(err.Error())
	}
	return m
}

// Bind makes a machine of a table that came from a file. States and events are
// converted from their names; every guard name of the table needs one guard
// here, and every guard here a row. Bind refuses what [New] refuses, with the
// same error.
func Bind[T any, S, E ~string](t *Table, guards ...Guard[T]) (*Machine[S, E, T], error) {
	spec := Spec[S, E]{Name: t.Name, Title: t.Title, Actors: t.Actors}
	problems := t.Problems()
	byName := make(map[string]AnyGuard, len(guards))
	for _, g := range guards {
		if byName[g.Name()] != nil {
			problems = append(problems, Problem{Code: BadGuard, Row: -1, Text: fmt.Sprintf("guard %q is given twice", g.Name())})
		}
		byName[g.Name()] = g
	}
	used := make(map[string]bool)
	for i := range t.Rows {
		name := t.Rows[i].Guard
		if name != "" && byName[name] == nil && !used[name] {
			problems = append(problems, Problem{
				Code: BadGuard, Row: i,
				Text: fmt.Sprintf("row %d (%s): guard %q is not bound", i, t.describe(i), name),
			})
		}
		used[name] = name != ""
	}
	for _, g := range guards {
		if !used[g.Name()] {
			problems = append(problems, Problem{Code: BadGuard, Row: -1, Text: fmt.Sprintf("guard %q: no row asks for it", g.Name())})
		}
	}
	if len(problems) > 0 {
		return nil, &InvalidError{Machine: t.Name, Problems: problems}
	}
	pick := func(list []int) []S {
		names := make([]S, len(list))
		for i, s := range list {
			names[i] = S(t.States[s].Name)
		}
		return names
	}
	spec.Initial = S(t.States[t.Initial].Name)
	for _, s := range t.States {
		st := State[S]{Name: S(s.Name), Kind: s.Kind, Manual: s.Manual, Doc: s.Doc}
		if s.Target >= 0 {
			st.Target = new(S(t.States[s.Target].Name))
		}
		spec.States = append(spec.States, st)
	}
	for _, r := range t.Rows {
		row := Row[S, E]{
			From: pick(r.From), Any: r.Any, Except: pick(r.Except), Origin: pick(r.Origin),
			Event: E(t.Events[r.Event]), Guard: byName[r.Guard], Then: r.Then,
			Forced: r.Forced, Supersede: r.Supersede, Within: r.Within, Doc: r.Doc,
		}
		if r.Then == ThenMove {
			row.To = S(t.States[r.To].Name)
		}
		for _, a := range r.Actors {
			row.Actors = append(row.Actors, t.Actors[a])
		}
		spec.Rows = append(spec.Rows, row)
	}
	// The rows are expanded already, and the table stays the caller's own, with
	// everything in it that a Spec has no word for.
	b := &builder[S, E, T]{spec: spec, table: t}
	b.number()
	b.eventsBy = make([]E, len(t.Events))
	for i, e := range t.Events {
		b.eventsBy[i] = E(e)
	}
	b.events = newIndex(b.eventsBy)
	b.guard()
	if len(b.problems) > 0 {
		return nil, &InvalidError{Machine: t.Name, Problems: b.problems}
	}
	if t.compiled == nil {
		bound := *t
		bound.compiled = compile(&bound)
		b.table = &bound
	}
	return b.machine(), nil
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

// Rows returns the rows in order of declaration with wildcards expanded. The
// slices in them are shared and read only.
func (m *Machine[S, E, T]) Rows() iter.Seq[Row[S, E]] { return slices.Values(m.spec) }

// Kind returns the kind of a state. An undeclared state is Absent.
func (m *Machine[S, E, T]) Kind(s S) Kind {
	if i := m.states.of(s); i >= 0 {
		return m.table.States[i].Kind
	}
	return Absent
}

// Observe returns a machine of the same table whose instances tell this
// observer, and no other; the receiver is unchanged.
func (m *Machine[S, E, T]) Observe(o Observer) *Machine[S, E, T] {
	watched := m.core
	watched.observer = &o
	return place(watched)
}

// StateIndex returns the index of a state in the [Table], or -1 if it is not
// declared.
func (m *Machine[S, E, T]) StateIndex(s S) int { return int(m.states.of(s)) }

// EventIndex returns the index of an event in the [Table], or -1 if no row names
// it.
func (m *Machine[S, E, T]) EventIndex(e E) int { return int(m.events.of(e)) }

// StateAt returns the state with an index of the [Table]. It panics if there is
// none.
func (m *Machine[S, E, T]) StateAt(i int) S { return m.names[i] }

// EventAt returns the event with an index of the [Table]. It panics if there is
// none.
func (m *Machine[S, E, T]) EventAt(i int) E { return m.eventsBy[i] }

// Check runs the guard of one row, if it has one. The error is the guard's
// own reason.
func (m *Machine[S, E, T]) Check(ctx context.Context, row int, payload *T) error {
	guard := m.guards[row]
	if guard == nil {
		return nil
	}
	return guard(ctx, payload)
}
