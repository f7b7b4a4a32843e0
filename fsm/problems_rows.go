package fsm

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// shape checks that every index is in range. It reports whether every row has an
// event and a known Then, so that rows can be compared.
func (p *problems) shape() bool {
	t, ok := p.t, true
	state := func(i int) bool { return i >= 0 && i < len(t.States) }
	if !state(t.Initial) {
		p.add(NoInitial, "the initial state is not declared%s", called(t.StateName(t.Initial)))
		p.vague = true
	}
	if len(t.Initials) > 0 && state(t.Initial) && !slices.Contains(t.Initials, t.Initial) {
		p.add(NoInitial, "the initial state is not one of the entry states")
	}
	for _, s := range t.Initials {
		if !state(s) {
			p.add(NoInitial, "an entry state is not declared%s", called(t.StateName(s)))
			p.vague = true
		}
	}
	for i, s := range t.States {
		if int(s.Kind) >= len(kindNames) {
			p.state(BadState, i, "unknown kind %d", s.Kind)
		}
		if s.Target != -1 && !state(s.Target) { // documentation: no other check uses it
			p.state(UnknownState, i, "the target is not declared%s", called(t.StateName(s.Target)))
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		source := len(r.From) > 0
		for _, list := range [][]int{r.From, r.Except, r.Origin} {
			for _, s := range list {
				if !state(s) {
					p.row(UnknownState, i, "names a state that is not declared%s", called(t.StateName(s)))
				}
			}
		}
		for _, list := range [][]int{r.From, r.Origin} {
			source = source && !slices.ContainsFunc(list, func(s int) bool { return !state(s) })
		}
		if r.Then == ThenMove && !state(r.To) {
			p.row(UnknownState, i, "the target is not declared%s", called(t.StateName(r.To)))
			p.vague = true
		}
		if r.Event < 0 || r.Event >= len(t.Events) {
			p.row(BadRow, i, "the event is not declared")
			ok = false
		}
		for _, a := range r.Actors {
			if a < 0 || a >= len(t.Actors) {
				p.row(UnknownActor, i, "names an actor that is not declared%s", called(t.ActorName(a)))
			}
		}
		if len(r.From) == 0 {
			p.row(NoSource, i, "matches no state")
		}
		if r.Timeout < 0 {
			p.row(BadRow, i, "negative timeout %s", r.Timeout)
		}
		if r.Then > ThenIgnore {
			p.row(BadRow, i, "unknown Then %d", r.Then)
			ok = false
		}
		if fault := badName(r.Guard); fault != "" {
			p.row(BadName, i, "guard: %s", fault)
		}
		if !source {
			p.vague, p.vagueSource = true, true
			p.vagueLate = p.vagueLate || r.Timeout != 0
		}
		p.vagueLate = p.vagueLate || r.Timeout < 0
	}
	return ok
}

// cells checks the rows of every (state, event) against each other.
func (p *problems) cells() {
	t := p.t
	p.origins, p.actors = make([][]int, len(t.Rows)), make([][]int, len(t.Rows))
	for i := range t.Rows {
		p.origins[i], p.actors[i] = sorted(t.Rows[i].Origin), sorted(t.Rows[i].Actors)
	}
	byCell := make(map[[2]int][]int)
	for i := range t.Rows {
		r := &t.Rows[i]
		seen := bitset.New(len(t.States))
		for _, from := range r.From {
			if from < 0 || from >= len(t.States) {
				continue // reported as undeclared
			}
			if !seen.Add(from) {
				p.row(BadRow, i, "names %s twice as a source", t.States[from].Name)
				continue
			}
			cell := [2]int{from, r.Event}
			if len(byCell[cell]) == maxCell {
				p.row(TooLarge, i, "%s has more than %d rows for the event", t.States[from].Name, maxCell)
				continue
			}
			// One problem for a row is enough.
			for _, before := range byCell[cell] {
				if p.pair(before, i, from) {
					break
				}
			}
			byCell[cell] = append(byCell[cell], i)
			if t.States[from].Kind == Final && !r.Forced && r.Then != ThenIgnore && !(r.Then == ThenMove && r.To == from) {
				p.row(FinalExit, i, "leaves the final state %s without force", t.States[from].Name)
			}
			if t.States[from].Kind == Absent && r.Timeout > 0 {
				p.row(DeadlineFromAbsent, i, "a timeout in the absent state %s", t.States[from].Name)
			}
			if r.Then == ThenReturn && t.States[from].Kind.Resting() {
				p.row(BadRow, i, "returns from %s, which rests and is its own origin", t.States[from].Name)
			}
		}
		if r.Then == ThenIgnore && r.Timeout > 0 {
			p.row(BadRow, i, "an ignore row has a timeout")
		}
		known := r.To >= 0 && r.To < len(t.States)
		if r.Supersede && (r.Then != ThenMove || known && t.States[r.To].Kind.Resting()) {
			p.row(BadRow, i, "supersedes, but starts no operation: the target is not transitional")
		}
	}
}

// pair checks two rows of one cell, b declared after a. It reports whether a hides
// b.
func (p *problems) pair(a, b, from int) bool {
	t := p.t
	x, y := &t.Rows[a], &t.Rows[b]
	if !overlap(p.actors[a], p.actors[b]) || x.Forced && !y.Forced {
		return false
	}
	covers := len(x.Origin) == 0 || len(y.Origin) > 0 && subset(p.origins[b], p.origins[a])
	same := x.Guard == y.Guard && x.Forced == y.Forced && slices.Equal(p.origins[a], p.origins[b])
	switch {
	case same && x.Then == y.Then && x.To == y.To && slices.Equal(p.actors[a], p.actors[b]):
		p.row(DuplicateRow, b, "is equal to row %d in %s", a, t.States[from].Name)
	case same && x.Then == y.Then && x.To == y.To:
		p.row(DuplicateRow, b, "repeats row %d in %s for %s", a, t.States[from].Name, p.shared(a, b))
	case covers && (x.Guard == "" || x.Guard == y.Guard):
		if len(p.actors[a]) == 0 || len(p.actors[b]) > 0 && subset(p.actors[b], p.actors[a]) {
			p.row(AmbiguousRow, b, "is never tried in %s: row %d (%s) takes the same actors first",
				t.States[from].Name, a, t.Describe(a))
		} else {
			p.row(AmbiguousRow, b, "is never tried in %s for %s: row %d (%s) comes first",
				t.States[from].Name, p.shared(a, b), a, t.Describe(a))
		}
	default:
		return false
	}
	return true
}

// shared names the actors that two rows share. REQUIRES: their actors overlap.
func (p *problems) shared(a, b int) string {
	if len(p.actors[a]) == 0 && len(p.actors[b]) == 0 {
		return "every actor"
	}
	var names []string
	for i := range len(p.t.Actors) + len(p.t.UndeclaredActors) {
		if overlap([]int{i}, p.actors[a]) && overlap([]int{i}, p.actors[b]) {
			names = append(names, p.t.ActorName(i))
		}
	}
	return strings.Join(names, ", ")
}

// sorted returns a list without repetitions.
func sorted(list []int) []int { return slices.Compact(slices.Sorted(slices.Values(list))) }

// subset reports whether b, which is sorted, has all of a.
func subset(a, b []int) bool {
	return !slices.ContainsFunc(a, func(x int) bool { _, found := slices.BinarySearch(b, x); return !found })
}

// overlap reports whether two sorted lists of actors share one. An empty list is every
// actor.
func overlap(a, b []int) bool {
	return len(a) == 0 || len(b) == 0 || slices.ContainsFunc(a, func(x int) bool { _, found := slices.BinarySearch(b, x); return found })
}
