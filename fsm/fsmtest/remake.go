package fsmtest

import (
	"context"

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
			From: states(r.From), Any: r.Any, Except: states(r.Except), Origin: states(r.Origin), Event: m.EventAt(r.Event),
			Then: r.Then, Forced: r.Forced, Supersede: r.Supersede, Timeout: r.Timeout, Doc: r.Doc,
		}
		if r.Any {
			row.From = nil
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
		switch {
		case timed[i]:
			state.Manual = ""
		case s.Kind == fsm.Transitional && s.Manual == "":
			state.Manual = "mutant"
		}
		spec.States = append(spec.States, state)
	}
	return fsm.New[T](spec)
}
