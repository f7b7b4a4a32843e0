package fsm

import "slices"

// StateName returns the name of a state, declared or not, by index. It returns "?" for
// an index that no document gives.
func (t *Table) StateName(i int) string {
	n := len(t.States)
	switch {
	case i >= 0 && i < n:
		return t.States[i].Name
	case i >= n && i-n < len(t.Undeclared):
		return t.Undeclared[i-n]
	}
	return "?"
}

// ActorName is [Table.StateName] for actors.
func (t *Table) ActorName(i int) string {
	n := len(t.Actors)
	switch {
	case i >= 0 && i < n:
		return string(t.Actors[i])
	case i >= n && i-n < len(t.UndeclaredActors):
		return string(t.UndeclaredActors[i-n])
	}
	return "?"
}

// declared returns a table without references to undeclared states, with as many
// rows. Code that follows rows from state to state would run out of range on them.
// It returns the table itself if there is no such reference.
func (t *Table) declared() *Table {
	if t.compiled != nil {
		return t
	}
	outside := func(s int) bool { return s < 0 || s >= len(t.States) }
	lost := func(r *TableRow) bool {
		return r.Event < 0 || r.Event >= len(t.Events) || r.Then != ThenReturn && r.Then != ThenIgnore && outside(r.To)
	}
	sound := !slices.ContainsFunc(t.Entries(), outside)
	for i := range t.Rows {
		r := &t.Rows[i]
		sound = sound && !lost(r) && !slices.ContainsFunc(r.From, outside) && !slices.ContainsFunc(r.Origin, outside)
	}
	if sound {
		return t
	}
	within := func(list []int) []int { return slices.DeleteFunc(slices.Clone(list), outside) }
	cut := &Table{States: t.States, Events: t.Events, Actors: t.Actors, Initial: -1, Initials: within(t.Entries()), Rows: slices.Clone(t.Rows)}
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
