package fsm

import "slices"

// stateName returns the name of a state, declared or not, by index. It returns false
// for an index that no document gives.
func (t *Table) stateName(i int) (string, bool) {
	n := len(t.States)
	switch {
	case i >= 0 && i < n:
		return t.States[i].Name, true
	case i >= n && i-n < len(t.Undeclared):
		return t.Undeclared[i-n], true
	}
	return "", false
}

// actorName is [Table.stateName] for actors.
func (t *Table) actorName(i int) (string, bool) {
	n := len(t.Actors)
	switch {
	case i >= 0 && i < n:
		return string(t.Actors[i]), true
	case i >= n && i-n < len(t.UndeclaredActors):
		return string(t.UndeclaredActors[i-n]), true
	}
	return "", false
}

// declared returns a table without references to undeclared states, with as many
// rows. Code that follows rows from state to state would run out of range on them.
// It returns the table itself if there is no such reference.
func (t *Table) declared() *Table {
	if t.compiled != nil {
		return t
	}
	outside := func(s int) bool { return s < 0 || s >= len(t.States) }
	lost := func(r *TableRow) bool { return r.Then != ThenReturn && r.Then != ThenIgnore && outside(r.To) }
	sound := !slices.ContainsFunc(t.entries(), outside)
	for i := range t.Rows {
		r := &t.Rows[i]
		sound = sound && !lost(r) && !slices.ContainsFunc(r.From, outside) && !slices.ContainsFunc(r.Origin, outside)
	}
	if sound {
		return t
	}
	within := func(list []int) []int { return slices.DeleteFunc(slices.Clone(list), outside) }
	cut := &Table{States: t.States, Events: t.Events, Actors: t.Actors, Initial: -1, Initials: within(t.entries()), Rows: slices.Clone(t.Rows)}
	for i := range cut.Rows {
		r := &cut.Rows[i]
		conditional := len(r.Origin) > 0
		r.From, r.Origin = within(r.From), within(r.Origin)
		if lost(r) || conditional && len(r.Origin) == 0 {
			r.From = nil // leads nowhere, or no object can have such an origin
		}
	}
	return cut
}
