package fsm

import (
	"context"
	"fmt"
	"reflect"
	"slices"
)

// builder makes a Table of a Spec, and the Machine over it.
type builder[S, E comparable, T any] struct {
	spec     Spec[S, E]
	table    *Table
	states   index[S]
	events   index[E]
	actors   names
	eventsBy []E
	guards   []func(ctx context.Context, before, after *T) error
	problems []Problem // those that the Table does not contain
}

func newBuilder[S, E comparable, T any](spec Spec[S, E]) *builder[S, E, T] {
	spec.Rows = slices.Clone(spec.Rows)
	for i := range spec.Rows {
		r := &spec.Rows[i]
		r.From, r.Except, r.Origin = slices.Clone(r.From), slices.Clone(r.Except), slices.Clone(r.Origin)
		r.Actors = slices.Clone(r.Actors)
	}
	b := &builder[S, E, T]{spec: spec}
	b.number()
	b.table = &Table{Name: spec.Name, Title: spec.Title, Actors: b.declaredActors()}
	b.actors = newNames(convert[string](b.table.Actors))
	b.table.Initial = b.state(spec.Initial)
	for _, s := range spec.States {
		st := TableState{Name: nameOf(s.Name), Kind: s.Kind, Manual: s.Manual, Target: -1, Doc: s.Doc}
		if s.Target != nil {
			st.Target = b.state(*s.Target)
		}
		b.table.States = append(b.table.States, st)
	}
	for _, e := range b.eventsBy {
		b.table.Events = append(b.table.Events, nameOf(e))
	}
	for i := range b.spec.Rows {
		r := &b.spec.Rows[i]
		fault := ""
		switch {
		case r.Any && len(r.From) > 0:
			fault = "names sources beside the wildcard"
		case !r.Any && len(r.Except) > 0:
			fault = "excludes states without a wildcard"
		}
		b.expand(r)
		b.table.Rows = append(b.table.Rows, b.row(r))
		b.fault(BadRow, i, fault)
	}
	b.table.UndeclaredActors = convert[Actor](b.actors.others)
	b.guard()
	return b
}

// nameOf returns the name of a value: the result of its String method, or the value itself.
func nameOf(v any) string { return fmt.Sprint(v) }

// number gives states and events their indexes. If a state is declared twice, the
// table reports it and either index may be used.
func (b *builder[S, E, T]) number() {
	var states []S
	for _, s := range b.spec.States {
		states = append(states, s.Name)
	}
	seen := make(map[E]bool)
	for _, r := range b.spec.Rows {
		if !seen[r.Event] {
			seen[r.Event] = true
			b.eventsBy = append(b.eventsBy, r.Event)
		}
	}
	b.states, b.events = newIndex(states), newIndex(b.eventsBy)
}

// state returns the index of a state. An undeclared state gets an index after the
// declared ones, so that the problem can name it; see [Table.Undeclared].
func (b *builder[S, E, T]) state(s S) int {
	if i := b.states.of(s); i >= 0 {
		return i
	}
	n, name := len(b.spec.States), nameOf(s)
	i := slices.Index(b.table.Undeclared, name)
	if i < 0 {
		i = len(b.table.Undeclared)
		b.table.Undeclared = append(b.table.Undeclared, name)
	}
	return n + i
}

// declaredActors returns the actors of the spec, and the sweeper if a row has a timeout.
func (b *builder[S, E, T]) declaredActors() []Actor {
	actors := slices.Clone(b.spec.Actors)
	late := slices.ContainsFunc(b.spec.Rows, func(r Row[S, E]) bool { return r.Timeout > 0 })
	if late && !slices.Contains(actors, Sweeper) {
		actors = append(actors, Sweeper)
	}
	return actors
}

// expand resolves the wildcard of a row and adds the sweeper to a row with a timeout.
func (b *builder[S, E, T]) expand(r *Row[S, E]) {
	if r.Any {
		r.From = nil
		for _, s := range b.spec.States {
			if s.Kind != Final && s.Kind != Absent && !(r.Then == ThenMove && s.Name == r.To) && !slices.Contains(r.Except, s.Name) {
				r.From = append(r.From, s.Name)
			}
		}
	}
	if r.Timeout > 0 && !slices.Contains(r.Actors, Sweeper) {
		r.Actors = append(slices.Clone(r.Actors), Sweeper)
	}
}

func (b *builder[S, E, T]) row(r *Row[S, E]) TableRow {
	numbers := func(states []S) (list []int) {
		for _, s := range states {
			list = append(list, b.state(s))
		}
		return list
	}
	row := TableRow{
		From: numbers(r.From), Any: r.Any, Except: numbers(r.Except), Origin: numbers(r.Origin),
		Event: b.events.of(r.Event), Actors: b.actors.all(convert[string](r.Actors)), To: -1, Then: r.Then,
		Forced: r.Forced, Supersede: r.Supersede, Timeout: r.Timeout, Doc: r.Doc,
	}
	if r.Then == ThenMove {
		row.To = b.state(r.To)
	}
	if r.Guard != nil {
		row.Guard = guardName(r.Guard)
	}
	return row
}

// guard collects the guards of the rows and checks them.
func (b *builder[S, E, T]) guard() {
	b.guards = make([]func(ctx context.Context, before, after *T) error, len(b.spec.Rows))
	for i, r := range b.spec.Rows {
		if r.Guard == nil {
			continue
		}
		g, ok := r.Guard.(Guard[T])
		var fault string
		switch {
		case !ok && !isGuard(r.Guard):
			fault = fmt.Sprintf("a guard of type %T, which When did not make", r.Guard)
		case !ok:
			fault = fmt.Sprintf("guard %q has the payload type %v, and the machine %v",
				r.Guard.Name(), r.Guard.payloadType(), reflect.TypeFor[T]())
		case !g.usable():
			fault = "a guard without name or function"
		}
		b.fault(BadGuard, i, fault)
		b.guards[i] = g.check
	}
}

// fault adds a problem of a row unless text is empty.
func (b *builder[S, E, T]) fault(code string, row int, text string) {
	if text != "" {
		b.problems = append(b.problems, Problem{
			Code: code, Row: row, Text: fmt.Sprintf("row %d (%s): %s", row, b.table.describe(row), text),
		})
	}
}

func (b *builder[S, E, T]) machine() *Machine[S, E, T] {
	m := &Machine[S, E, T]{
		table: b.table, c: b.table.compiled, states: b.states, events: b.events,
		guards: b.guards, rows: b.spec.Rows, eventsBy: b.eventsBy,
	}
	for _, s := range b.spec.States {
		m.names = append(m.names, s.Name)
	}
	return m
}

// isGuard reports whether g is a Guard. A pointer to a Guard, and a type that embeds
// one, also implement AnyGuard, and a call of their methods may panic.
func isGuard(g AnyGuard) bool {
	t := reflect.TypeOf(g)
	return t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[Guard[int]]().PkgPath()
}

func guardName(g AnyGuard) string {
	if !isGuard(g) {
		return ""
	}
	return g.Name()
}
