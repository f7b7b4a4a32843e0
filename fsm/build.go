package fsm

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"unsafe"
)

// builder turns a Spec into a Table and the typed skin over it.
type builder[S, E comparable, T any] struct {
	spec     Spec[S, E]
	table    *Table
	states   index[S]
	events   index[E]
	eventsBy []E
	guards   []func(context.Context, *T) error
	problems []Problem // that the table cannot show
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
	b.table = &Table{
		Name: spec.Name, Title: spec.Title, Initial: int(b.states.of(spec.Initial)),
		Actors: b.actors(),
	}
	for _, s := range spec.States {
		st := TableState{Name: nameOf(s.Name), Kind: s.Kind, Manual: s.Manual, Target: -1, Doc: s.Doc}
		if s.Target != nil {
			if st.Target = int(b.states.of(*s.Target)); st.Target < 0 {
				b.problems = append(b.problems, Problem{
					Code: UnknownState, Row: -1, State: st.Name,
					Text: fmt.Sprintf("state %s: is heading for a state that is not declared", st.Name),
				})
			}
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
	b.guard()
	return b
}

// nameOf is a value's name: its String method, or itself.
func nameOf(v any) string { return fmt.Sprint(v) }

// number gives states and events their indexes. Of a state that is declared
// twice, which the table reports, either may be found.
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

// actors are those declared, and the sweeper where a row has a deadline.
func (b *builder[S, E, T]) actors() []Actor {
	actors := slices.Clone(b.spec.Actors)
	late := slices.ContainsFunc(b.spec.Rows, func(r Row[S, E]) bool { return r.Within > 0 })
	if late && !slices.Contains(actors, Sweeper) {
		actors = append(actors, Sweeper)
	}
	return actors
}

// expand resolves the wildcard of a row and gives a deadline its actor.
func (b *builder[S, E, T]) expand(r *Row[S, E]) {
	if r.Any {
		r.From = nil
		for _, s := range b.spec.States {
			if s.Kind != Final && s.Kind != Absent && !(r.Then == ThenMove && s.Name == r.To) && !slices.Contains(r.Except, s.Name) {
				r.From = append(r.From, s.Name)
			}
		}
	}
	if r.Within > 0 && !slices.Contains(r.Actors, Sweeper) {
		r.Actors = append(slices.Clone(r.Actors), Sweeper)
	}
}

func (b *builder[S, E, T]) row(r *Row[S, E]) TableRow {
	numbers := func(states []S) (list []int) {
		for _, s := range states {
			list = append(list, int(b.states.of(s)))
		}
		return list
	}
	row := TableRow{
		From: numbers(r.From), Any: r.Any, Except: numbers(r.Except), Origin: numbers(r.Origin),
		Event: int(b.events.of(r.Event)), To: -1, Then: r.Then,
		Forced: r.Forced, Supersede: r.Supersede, Within: r.Within, Doc: r.Doc,
	}
	if r.Then == ThenMove {
		row.To = int(b.states.of(r.To))
	}
	for _, a := range r.Actors {
		row.Actors = append(row.Actors, slices.Index(b.table.Actors, a))
	}
	if r.Guard != nil {
		row.Guard = guardName(r.Guard)
	}
	return row
}

// guard fetches the guards out of the rows.
func (b *builder[S, E, T]) guard() {
	b.guards = make([]func(context.Context, *T) error, len(b.spec.Rows))
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
			fault = fmt.Sprintf("guard %q looks at %v, the machine's payload is %v",
				r.Guard.Name(), r.Guard.payloadType(), reflect.TypeFor[T]())
		case !g.usable():
			fault = "a guard without name or function"
		}
		b.fault(BadGuard, i, fault)
		b.guards[i] = g.check
	}
}

// fault adds a problem of a row, if there is one.
func (b *builder[S, E, T]) fault(code string, row int, text string) {
	if text != "" {
		b.problems = append(b.problems, Problem{
			Code: code, Row: row, Text: fmt.Sprintf("row %d (%s): %s", row, b.table.describe(row), text),
		})
	}
}

func (b *builder[S, E, T]) machine() *Machine[S, E, T] {
	m := core[S, E, T]{
		table: b.table, c: b.table.compiled, states: b.states, events: b.events,
		guards: b.guards, spec: b.spec.Rows, eventsBy: b.eventsBy,
	}
	for _, s := range b.spec.States {
		m.names = append(m.names, s.Name)
	}
	m.grid = newGrid(m.c, m.events.columns(), int(unsafe.Sizeof(cell[S]{})/8))
	return place(m)
}

// isGuard reports whether g is a Guard, not a pointer to one or a type that
// embeds one: these have its methods too, and may be nil inside.
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
