package fsm

import (
	"fmt"
	"reflect"
	"slices"
)

// builder makes a Table of a Spec.
type builder[S, E comparable] struct {
	table    *Table
	names    []S
	states   index[S]
	eventsBy []E
	events   index[E]
	others   names // states that are not declared
	actors   names
	faults   problems // those that the Table does not contain
}

// newBuilder gives states and events their indexes. If a state is declared twice, the
// table reports it and either index may be used.
func newBuilder[S, E comparable](spec *Spec[S, E]) *builder[S, E] {
	b := &builder[S, E]{table: &Table{Name: spec.Name, Title: spec.Title, Actors: slices.Clone(spec.Actors)}, others: newNames(nil)}
	b.faults.t = b.table
	for _, s := range spec.States {
		b.names = append(b.names, s.Name)
	}
	b.states, b.others.declared = newIndex(b.names), len(b.names)
	seen, timed := make(map[E]bool), false
	for _, r := range spec.Rows {
		if !seen[r.Event] {
			seen[r.Event] = true
			b.eventsBy = append(b.eventsBy, r.Event)
			b.table.Events = append(b.table.Events, declaredName(r.Event))
		}
		timed = timed || r.Timeout > 0
	}
	b.events = newIndex(b.eventsBy)
	if timed && !slices.Contains(b.table.Actors, Sweeper) {
		b.table.Actors = append(b.table.Actors, Sweeper)
	}
	b.actors = newNames(convert[string](b.table.Actors))
	b.build(spec)
	return b
}

func (b *builder[S, E]) build(spec *Spec[S, E]) {
	b.table.Initial = b.state(spec.Initial)
	for _, s := range spec.States {
		st := TableState{Name: declaredName(s.Name), Kind: s.Kind, Manual: s.Manual, Target: -1, Doc: s.Doc}
		if s.Target != nil {
			st.Target = b.state(*s.Target)
		}
		b.table.States = append(b.table.States, st)
	}
	for i, r := range spec.Rows {
		b.table.Rows = append(b.table.Rows, b.row(r, spec.States))
		switch {
		case r.Any && len(r.From) > 0:
			b.faults.row(BadRow, i, "names sources beside the wildcard")
		case !r.Any && len(r.Except) > 0:
			b.faults.row(BadRow, i, "excludes states without a wildcard")
		}
	}
	b.table.Undeclared, b.table.UndeclaredActors = b.others.others, convert[Actor](b.actors.others)
}

// nameOf returns the name of a value: the result of its String method, or the value itself.
func nameOf(v any) string { return fmt.Sprint(v) }

// declaredName is nameOf for a name that the table keeps. A panic of the String method reaches
// the caller of New: package fmt would make a name of it.
func declaredName(v any) string {
	if s, ok := v.(fmt.Stringer); ok {
		_ = s.String()
	}
	return nameOf(v)
}

// state returns the index of a state. An undeclared state gets an index after the
// declared ones, so that the problem can name it; see [Table.Undeclared].
func (b *builder[S, E]) state(s S) int {
	if i := b.states.of(s); i >= 0 {
		return i
	}
	i := b.others.of(nameOf(s))
	b.table.Undeclared = b.others.others // for the text of a fault
	return i
}

// row resolves the wildcard of a row and adds the sweeper to a row with a timeout.
func (b *builder[S, E]) row(r Row[S, E], states []State[S]) TableRow {
	if r.Any {
		r.From = nil
		for _, s := range states {
			if s.Kind != Final && s.Kind != Absent && !(r.Then == ThenMove && s.Name == r.To) && !slices.Contains(r.Except, s.Name) {
				r.From = append(r.From, s.Name)
			}
		}
	}
	if r.Timeout > 0 && !slices.Contains(r.Actors, Sweeper) {
		r.Actors = append(slices.Clone(r.Actors), Sweeper)
	}
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
	if r.Guard != nil && isGuard(r.Guard) {
		row.Guard = r.Guard.Name()
	}
	return row
}

// guardsOf returns the guards of the rows. It reports those that cannot run.
func guardsOf[T any, S, E comparable](b *builder[S, E], rows []Row[S, E]) []Guard[T] {
	guards := make([]Guard[T], len(rows))
	for i, r := range rows {
		if r.Guard == nil {
			continue
		}
		g, ok := r.Guard.(Guard[T])
		switch {
		case !isGuard(r.Guard):
			b.faults.row(BadGuard, i, "a guard of type %T, which When did not make", r.Guard)
		case !ok:
			b.faults.row(BadGuard, i, "guard %q has the payload type %v, and the machine %v",
				r.Guard.Name(), r.Guard.payloadType(), reflect.TypeFor[T]())
		case !g.usable():
			b.faults.row(BadGuard, i, "a guard without name or function")
		}
		guards[i] = g
	}
	return guards
}

// isGuard reports whether g is a Guard. A pointer to a Guard, and a type that embeds
// one, also implement AnyGuard, and a call of their methods may panic. These types are
// not of this package.
func isGuard(g AnyGuard) bool {
	return reflect.TypeOf(g).PkgPath() == reflect.TypeFor[Guard[int]]().PkgPath()
}
