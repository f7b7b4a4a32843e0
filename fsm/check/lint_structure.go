package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
	"github.com/interlock-go/interlock/fsm/internal/prose"
)

func (l *linter) errorNoExit() {
	stuck := l.states(func(s int) bool { return l.kind(s) == fsm.Failed && !l.exits[s].any })
	l.each(errorNoExitID, Error, stuck, "Add a retry, a repair or a deletion, forced if necessary.", func(s *fsm.TableState) string {
		return "no row leads out of the error state " + s.Name
	})
}

// cannot finds states from which an object reaches neither rest nor an end. Other
// rules report states without any exit, and the states that lead to them.
func (l *linter) cannot() {
	stuck := distances(l.graph.from, l.states(func(s int) bool { return !l.exits[s].any && !isEnd(l.kind(s)) }))
	about := func(id string, severity Severity, names []string, what, advice string) {
		states := l.kept(id, l.states(func(s int) bool { return stuck[s] < 0 && slices.Contains(names, l.t.States[s].Name) }))
		if len(states) > 0 {
			l.add(Finding{
				ID: id, Severity: severity, States: l.names(states),
				Message: fmt.Sprintf("no path leads from %s to %s", prose.List(l.names(states), "or"), what), Advice: advice,
			})
		}
	}
	about(cannotRestID, Error, l.facts.CannotRest, "a state of rest",
		"Add the row that ends the work. Without it an object stays in transition for ever.")
	about(cannotEndID, Warning, l.facts.CannotEnd, "a final or absent state",
		"Add the row that removes such an object.")
}

// choice finds cells in which state and event leave a choice. It is a warning if
// work ends in one of several states of rest and only a guard decides: after a
// crash, the record does not show which.
func (l *linter) choice() {
	for _, at := range l.order {
		c := l.cells[at]
		if len(c.to) < 2 || len(l.kept(choiceID, at[:1])) == 0 {
			continue
		}
		state, event := l.t.States[at[0]].Name, l.t.Events[at[1]]
		var rows, ends []int
		guarded := false
		for _, m := range l.out[at[0]] {
			row, to := &l.t.Rows[l.moves[m].row], l.moves[m].to
			if row.Event != at[1] {
				continue
			}
			rows = append(rows, l.moves[m].row)
			guarded = guarded || row.Guard != ""
			if to >= 0 && len(row.Origin) == 0 && l.kind(to).Resting() && l.kind(to) != fsm.Failed &&
				!l.isDeadline(row) && !slices.Contains(ends, to) {
				ends = append(ends, to)
			}
		}
		f := Finding{
			ID: choiceID, Severity: Info, States: []string{state}, Events: []string{event}, Rows: rows,
			Message: fmt.Sprintf("%s in %s leads to %s", event, state, prose.List(c.to, "or")),
			Advice:  "No change is needed if guard, actor, origin and order are meant to decide.",
		}
		if l.kind(at[0]) == fsm.Transitional && guarded && len(ends) > 1 {
			f.Severity = Warning
			f.Message += ", and only guards decide: after a crash the record does not show which"
			f.Advice = "Split the event or the state, or let the origin decide."
		}
		l.add(f)
	}
}

// targets finds transitional states from which no path leads to their declared
// target without another state of rest on the way.
func (l *linter) targets() {
	lost := l.states(func(s int) bool {
		target := l.t.States[s].Target
		return l.kind(s) == fsm.Transitional && l.declared(target) && !l.leads(s, target)
	})
	advice := "Correct the target, or add the row that leads there."
	l.each(targetUnreachedID, Warning, lost, advice, func(s *fsm.TableState) string {
		return fmt.Sprintf("%s has the target %s, and no path leads there", s.Name, l.t.States[s.Target].Name)
	})
}

// leads reports whether work in a state may end in a target.
func (l *linter) leads(from, target int) bool {
	found := false
	spread(bitset.New(len(l.t.States)), from, func(at int) (on []int) {
		_, origin := slices.BinarySearch(l.origins[at], target)
		for _, m := range l.out[at] {
			to := l.moves[m].to
			found = found || to == target || to < 0 && origin
			if to >= 0 && l.kind(to) == fsm.Transitional {
				on = append(on, to)
			}
		}
		return on
	})
	return found
}

// parts counts the parts of the table that no row connects, in either direction.
func (l *linter) parts() {
	if n := l.graph.parts(); n > 1 {
		l.add(Finding{
			ID: partsID, Severity: Info,
			Message: fmt.Sprintf("the table has %d parts that no row connects", n),
			Advice:  "Connect them, or make a table of each.",
		})
	}
}
