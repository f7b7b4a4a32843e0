package fsm

import "fmt"

// Bind makes a machine of a table that came from a file. It converts states and
// events from their names. Every guard name of the table needs one guard here, and
// every guard here needs a row. Bind refuses what [New] refuses, with the same
// error.
func Bind[T any, S, E ~string](t *Table, guards ...Guard[T]) (*Machine[S, E, T], error) {
	byName := make(map[string]AnyGuard, len(guards))
	for _, g := range guards {
		byName[g.Name()] = g
	}
	problems := append(t.Problems(), bindProblems(t, guards)...)
	if len(problems) > 0 {
		return nil, &InvalidError{Machine: t.Name, Problems: problems}
	}
	// The rows are expanded already. The machine keeps the caller's table, because
	// a Spec lacks some of its fields.
	b := &builder[S, E, T]{spec: specOf[S, E](t, byName), table: t}
	b.number()
	b.eventsBy = convert[E](t.Events)
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

// bindProblems compares the names of guards in a table with those that Bind got.
func bindProblems[T any](t *Table, guards []Guard[T]) (problems []Problem) {
	add := func(row int, format string, args ...any) {
		problems = append(problems, Problem{Code: BadGuard, Row: row, Text: fmt.Sprintf(format, args...)})
	}
	given, used := make(map[string]bool), make(map[string]bool)
	for _, g := range guards {
		if given[g.Name()] {
			add(-1, "guard %q is given twice", g.Name())
		}
		given[g.Name()] = true
	}
	for i := range t.Rows {
		name := t.Rows[i].Guard
		if name != "" && !given[name] && !used[name] {
			add(i, "row %d (%s): guard %q is not bound", i, t.describe(i), name)
		}
		used[name] = name != ""
	}
	for _, g := range guards {
		if !used[g.Name()] {
			add(-1, "guard %q is in no row", g.Name())
		}
	}
	return problems
}

// specOf returns the Spec of a table without problems.
func specOf[S, E ~string](t *Table, guards map[string]AnyGuard) Spec[S, E] {
	states := func(list []int) []S {
		names := make([]S, len(list))
		for i, s := range list {
			names[i] = S(t.States[s].Name)
		}
		return names
	}
	spec := Spec[S, E]{Name: t.Name, Title: t.Title, Initial: S(t.States[t.Initial].Name), Actors: t.Actors}
	for _, s := range t.States {
		st := State[S]{Name: S(s.Name), Kind: s.Kind, Manual: s.Manual, Doc: s.Doc}
		if s.Target >= 0 {
			st.Target = new(S(t.States[s.Target].Name))
		}
		spec.States = append(spec.States, st)
	}
	for _, r := range t.Rows {
		row := Row[S, E]{
			From: states(r.From), Any: r.Any, Except: states(r.Except), Origin: states(r.Origin),
			Event: E(t.Events[r.Event]), Guard: guards[r.Guard], Then: r.Then,
			Forced: r.Forced, Supersede: r.Supersede, Timeout: r.Timeout, Doc: r.Doc,
		}
		if r.Then == ThenMove {
			row.To = S(t.States[r.To].Name)
		}
		for _, a := range r.Actors {
			row.Actors = append(row.Actors, t.Actors[a])
		}
		spec.Rows = append(spec.Rows, row)
	}
	return spec
}
