package check

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
	"github.com/interlock-go/interlock/fsm/internal/prose"
)

// onlyFailure finds work that begins in a state of rest and that no row ends except
// with a failure. Often success removes the object and the table has no state for
// that. Forced rows and rows that supersede the work do not count.
func (l *linter) onlyFailure() {
	begins := func(s int) bool {
		return slices.ContainsFunc(l.in[s], func(m int) bool { return l.kind(l.moves[m].from).Resting() })
	}
	continues := func(m move) bool {
		row := &l.t.Rows[m.row]
		return !l.kind(m.from).Resting() && !row.Forced && !row.Supersede
	}
	fails := l.leading(l.states(func(s int) bool { return l.kind(s) == fsm.Failed }), continues)
	ends := l.leading(l.states(func(s int) bool {
		returns := slices.ContainsFunc(l.out[s], func(m int) bool { return l.moves[m].to < 0 && continues(l.moves[m]) })
		return returns || l.kind(s).Resting() && l.kind(s) != fsm.Failed
	}), continues)
	only := l.states(func(s int) bool {
		return l.kind(s) == fsm.Transitional && fails.Has(s) && !ends.Has(s) && begins(s)
	})
	advice := "Add the row for its success. If success removes the object, the row leads to an absent state."
	l.each(onlyFailureID, Warning, only, advice, func(s *fsm.TableState) string {
		return "work in " + s.Name + " ends only with a failure"
	})
}

// errorNoRemoval finds error states from which no work leads to an end, unlike most
// other error states.
func (l *linter) errorNoRemoval() {
	ends := l.leading(l.states(func(s int) bool { return isEnd(l.kind(s)) }), func(m move) bool {
		return isEnd(l.kind(m.to)) || l.kind(m.to) == fsm.Transitional
	})
	var odd, like []int
	for _, s := range l.states(func(s int) bool { return l.kind(s) == fsm.Failed && l.exits[s].any }) {
		switch {
		case ends.Has(s):
			like = append(like, s)
		case !slices.Contains(l.facts.CannotEnd, l.t.States[s].Name): // else it has a finding
			odd = append(odd, s)
		}
	}
	if len(like) < 2 || len(like) <= len(odd) {
		return
	}
	l.each(errorNoRemovalID, Warning, odd, "Add the row that removes such an object.", func(s *fsm.TableState) string {
		return "an object in " + s.Name + " cannot be removed until it rests elsewhere, unlike in " + prose.List(l.names(like), "and")
	})
}

// leading returns the starts and the states from which a path of moves that pass
// leads to one of them.
func (l *linter) leading(starts []int, pass func(move) bool) bitset.Set {
	found := bitset.New(len(l.t.States))
	for _, s := range starts {
		spread(found, s, func(to int) (list []int) {
			for _, m := range l.in[to] {
				if pass(l.moves[m]) {
					list = append(list, l.moves[m].from)
				}
			}
			return list
		})
	}
	return found
}
