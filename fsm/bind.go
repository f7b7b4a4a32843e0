package fsm

import "slices"

// Bind makes a machine of a table that came from a file. It converts states and
// events from their names. Every guard name of the table needs one guard here, and
// every guard here needs a row. Bind refuses what [New] refuses, with the same
// error.
func Bind[T any, S, E ~string](t *Table, guards ...Guard[T]) (*Machine[S, E, T], error) {
	p := problems{t: t, list: t.Problems()}
	given, used := make(map[string]Guard[T]), make(map[string]bool)
	for _, g := range guards {
		if _, twice := given[g.name]; twice {
			p.add(BadGuard, "guard %q is given twice", g.name)
		}
		if !g.usable() {
			p.add(BadGuard, "a guard without name or function")
		}
		given[g.name] = g
	}
	byRow := make([]Guard[T], len(t.Rows))
	for i := range t.Rows {
		name := t.Rows[i].Guard
		if name == "" {
			continue
		}
		g, ok := given[name]
		if !ok && !used[name] {
			p.row(BadGuard, i, "guard %q is not bound", name)
		}
		byRow[i], used[name] = g, true
	}
	for _, g := range guards {
		if !used[g.name] {
			p.add(BadGuard, "guard %q is in no row", g.name)
		}
	}
	if len(p.list) > 0 {
		return nil, &InvalidError{Machine: t.Name, Problems: p.list}
	}
	states := make([]S, len(t.States))
	for i := range t.States {
		states[i] = S(t.States[i].Name)
	}
	return newMachine(t, states, convert[E](t.Events), byRow), nil
}

// With returns a machine with the states and events of m and other rows: those of a
// table with the same states, events and actors. guard returns the guard of a row that
// names one. The table may lack the timeouts that [New] demands. The new machine has the
// observer of m. A test kit makes machines with a small fault this way. The error is an
// [*InvalidError].
func (m *Machine[S, E, T]) With(t *Table, guard func(row int) Guard[T]) (*Machine[S, E, T], error) {
	problems := slices.DeleteFunc(t.Problems(), func(p Problem) bool { return p.Demand })
	if len(problems) > 0 {
		return nil, &InvalidError{Machine: t.Name, Problems: problems}
	}
	guards := make([]Guard[T], len(t.Rows))
	for i := range t.Rows {
		if t.Rows[i].Guard != "" {
			guards[i] = guard(i)
		}
	}
	other := newMachine(t, m.names, m.eventsBy, guards)
	other.observer = m.observer
	return other, nil
}
