package fsmtest

import (
	"context"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// guardFunc is the function of a guard.
type guardFunc[T any] = func(ctx context.Context, before, after *T) error

// remade returns a machine of the same table with other guards.
func remade[S, E comparable, T any](m *fsm.Machine[S, E, T], guard func(row int) guardFunc[T]) *fsm.Machine[S, E, T] {
	rows := make([]int, len(m.Table().Rows))
	for i := range rows {
		rows[i] = i
	}
	other, err := remake(m, m.Table(), rows, guard)
	if err != nil {
		panic("fsmtest: remake machine: " + err.Error()) // its table was accepted before
	}
	return other
}

// remake returns a machine of another table with the same states, events and actors.
// rows maps the rows of the table to the rows of m. The function returns the guard of
// a row of m.
func remake[S, E comparable, T any](m *fsm.Machine[S, E, T], t *fsm.Table, rows []int, guard func(row int) guardFunc[T]) (*fsm.Machine[S, E, T], error) {
	states := func(list []int) []S {
		named := make([]S, len(list))
		for i, s := range list {
			named[i] = m.StateAt(s)
		}
		return named
	}
	spec := fsm.Spec[S, E]{Name: t.Name, Title: t.Title, Initial: m.StateAt(t.Initial), Actors: t.Actors}
	timed := make(map[int]bool) // states with a timeout
	for i := range t.Rows {
		r := &t.Rows[i]
		row := fsm.Row[S, E]{
			From: states(r.From), Origin: states(r.Origin), Event: m.EventAt(r.Event),
			Then: r.Then, Forced: r.Forced, Supersede: r.Supersede, Timeout: r.Timeout, Doc: r.Doc,
		}
		// A file may lack a source of a wildcard, and fsm.New would add it.
		if r.Any && slices.Equal(r.From, matched(t, r)) {
			row.From, row.Any, row.Except = nil, true, states(r.Except)
		}
		for _, a := range r.Actors {
			row.Actors = append(row.Actors, t.Actors[a])
		}
		if r.Then == fsm.ThenMove {
			row.To = m.StateAt(r.To)
		}
		if r.Guard != "" {
			row.Guard = fsm.When(r.Guard, guard(rows[i]))
		}
		if r.Timeout > 0 {
			for _, s := range r.From {
				timed[s] = true
			}
		}
		spec.Rows = append(spec.Rows, row)
	}
	for i, s := range t.States {
		state := fsm.State[S]{Name: m.StateAt(i), Kind: s.Kind, Manual: s.Manual, Doc: s.Doc}
		if s.Target >= 0 {
			state.Target = new(m.StateAt(s.Target))
		}
		// fsm.New accepts a mutant that lost a timeout only with a reason.
		if s.Kind == fsm.Transitional && s.Manual == "" && !timed[i] {
			state.Manual = "mutant"
		}
		spec.States = append(spec.States, state)
	}
	other, err := fsm.New[T](spec)
	if err == nil {
		return other, nil
	}
	// fsm.New refuses the reason of a state that a mutant gave a timeout for every origin.
	for i := range spec.States {
		if timed[i] {
			spec.States[i].Manual = ""
		}
	}
	return fsm.New[T](spec)
}

// matched returns the states that fsm.New makes the sources of a wildcard row.
func matched(t *fsm.Table, r *fsm.TableRow) (sources []int) {
	for s := range t.States {
		kind := t.States[s].Kind
		target := r.Then == fsm.ThenMove && s == r.To
		if kind != fsm.Final && kind != fsm.Absent && !target && !slices.Contains(r.Except, s) {
			sources = append(sources, s)
		}
	}
	return sources
}
