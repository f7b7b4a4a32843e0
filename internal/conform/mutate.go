package conform

import (
	"fmt"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// mutant is a table with one small fault.
type mutant struct {
	change string
	table  *fsm.Table
}

// mutants yields every table that differs from t in one state's kind, in the
// initial state, or in one row: removed, added, retargeted, returning or not,
// forced or not, by another actor. They need not be sound.
func mutants(t *fsm.Table) iter.Seq[mutant] {
	return func(yield func(mutant) bool) {
		for s := range t.States {
			for k := fsm.Stable; k <= fsm.Absent; k++ {
				if k == t.States[s].Kind {
					continue
				}
				m := clone(t)
				m.States[s].Kind = k
				if !yield(mutant{fmt.Sprintf("state %s is %s", t.States[s].Name, k), m}) {
					return
				}
			}
			if s == t.Initial || len(t.Initials) > 0 {
				continue
			}
			m := clone(t)
			m.Initial = s
			if !yield(mutant{"initial state " + t.States[s].Name, m}) {
				return
			}
		}
		for i := range t.Rows {
			for _, e := range edits(t, i) {
				m := clone(t)
				e.apply(m)
				if !yield(mutant{fmt.Sprintf("row %d, %s", i, e.change), m}) {
					return
				}
			}
		}
		for m := range grown(t) {
			if !yield(m) {
				return
			}
		}
	}
}

// edit is a change of one row.
type edit struct {
	change string
	apply  func(*fsm.Table)
}

// edits returns the changes of one row.
func edits(t *fsm.Table, i int) []edit {
	r := &t.Rows[i]
	list := []edit{
		{"removed", func(m *fsm.Table) { m.Rows = slices.Delete(m.Rows, i, i+1) }},
		{"force", func(m *fsm.Table) { m.Rows[i].Forced = !r.Forced }},
		{"superseding", func(m *fsm.Table) { m.Rows[i].Supersede = !r.Supersede }},
		{"guard", func(m *fsm.Table) { m.Rows[i].Guard += "!" }},
	}
	for s := range t.States {
		name := t.States[s].Name
		if r.Then != fsm.ThenMove || s != r.To {
			list = append(list, edit{"leads to " + name, func(m *fsm.Table) { m.Rows[i].Then, m.Rows[i].To = fsm.ThenMove, s }})
		}
		if !slices.Contains(r.From, s) {
			list = append(list, edit{"also from " + name, func(m *fsm.Table) { m.Rows[i].From = append(m.Rows[i].From, s) }})
		}
		if !slices.Contains(r.Origin, s) {
			list = append(list, edit{"asks for the origin " + name, func(m *fsm.Table) { m.Rows[i].Origin = append(m.Rows[i].Origin, s) }})
		}
	}
	for a := range r.Actors {
		list = append(list, edit{"another actor", func(m *fsm.Table) {
			m.Actors = append(m.Actors, "intruder")
			m.Rows[i].Actors[a] = len(m.Actors) - 1
		}})
	}
	if len(r.Actors) == 0 {
		list = append(list, edit{"an actor is named", func(m *fsm.Table) { m.Rows[i].Actors = []int{0} }})
	}
	if r.Timeout > 0 {
		list = append(list, edit{"never becomes due", func(m *fsm.Table) { m.Rows[i].Timeout = 0 }})
	}
	if r.Then != fsm.ThenIgnore {
		list = append(list, edit{"ignored", func(m *fsm.Table) { m.Rows[i].Then, m.Rows[i].To = fsm.ThenIgnore, -1 }})
	}
	return list
}

// grown yields tables with one state or row more.
func grown(t *fsm.Table) iter.Seq[mutant] {
	return func(yield func(mutant) bool) {
		m := clone(t)
		m.States = append(m.States, fsm.TableState{Name: "one more", Kind: fsm.Final, Target: -1})
		if !yield(mutant{"one more state", m}) {
			return
		}
		for from := range t.States {
			m := clone(t)
			m.Events = append(m.Events, "one more")
			m.Rows = append(m.Rows, fsm.TableRow{From: []int{from}, Event: len(m.Events) - 1, To: 0})
			if !yield(mutant{"one more row from " + t.States[from].Name, m}) {
				return
			}
		}
	}
}

// clone copies the parts of a table that a mutation changes. The copy is not
// compiled: it computes its edges from its rows.
func clone(t *fsm.Table) *fsm.Table {
	c := &fsm.Table{
		Name: t.Name, Initial: t.Initial, Initials: slices.Clone(t.Initials),
		States: slices.Clone(t.States), Events: slices.Clone(t.Events), Actors: slices.Clone(t.Actors),
		Rows: slices.Clone(t.Rows),
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		r.From, r.Origin, r.Actors = slices.Clone(r.From), slices.Clone(r.Origin), slices.Clone(r.Actors)
	}
	return c
}
