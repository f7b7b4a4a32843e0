package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// targets compares what the table says about where work leads with where it does
// lead: the target of a transitional state, and the origins of return rows and of
// conditions, which are targets that are computed at run time.
func (l *linter) targets() {
	origins := l.t.Origins()
	l.unreachedTargets(origins)
	l.elsewhere()
	came := make([]bitset.Set, len(origins)) // the same as sets
	for s, list := range origins {
		came[s] = bitset.New(len(l.t.States))
		for _, o := range list {
			came[s].Add(o)
		}
	}
	ends := make([]bool, len(origins)) // by state: a row with a fixed target ends the work well
	for _, m := range l.moves {
		ends[m.from] = ends[m.from] || m.to >= 0 && m.role == RoleNone
	}
	stray := make(map[int][]int) // by state: rows that return objects elsewhere
	for i := range l.t.Rows {
		row := &l.t.Rows[i]
		if !l.a.hasEvent(row) {
			continue
		}
		l.strangeOrigins(i, row, came)
	}
	for _, m := range l.moves {
		if m.to < 0 && m.role == RoleNone && !ends[m.from] && l.a.declared(l.t.States[m.from].Target) &&
			l.strays(&l.t.Rows[m.row], m.from, origins[m.from]) {
			stray[m.from] = append(stray[m.from], m.row)
		}
	}
	for _, s := range l.kept(LintTargetOutside, l.states(func(s int) bool { return len(stray[s]) > 0 })) {
		state := &l.t.States[s]
		l.add(Finding{
			ID: LintTargetOutside, Severity: Warning, States: []string{state.Name}, Rows: stray[s],
			Message: fmt.Sprintf("work in %s is said to lead to %s, and objects return to where they came from, which may be elsewhere",
				state.Name, l.t.States[state.Target].Name),
			Advice: "Say no target where the origin decides, or restrict the row to it.",
		})
	}
}

// unreachedTargets finds transitional states from which no way leads to their
// target, unless by way of another state of rest.
func (l *linter) unreachedTargets(origins [][]int) {
	returns := make([]bool, len(l.t.States))
	for _, m := range l.moves {
		returns[m.from] = returns[m.from] || m.to < 0
	}
	heading := make(map[int][]int) // by target
	for s := range l.t.States {
		if target := l.t.States[s].Target; l.kind(s) == fsm.Transitional && l.a.declared(target) {
			heading[target] = append(heading[target], s)
		}
	}
	for target := range l.t.States {
		if len(heading[target]) == 0 {
			continue
		}
		reaches := bitset.New(len(l.t.States))
		var work []int
		reach := func(s int) {
			if l.kind(s) == fsm.Transitional && reaches.Add(s) {
				work = append(work, s)
			}
		}
		for s := range l.t.States {
			if _, is := slices.BinarySearch(origins[s], target); returns[s] && is {
				reach(s)
			}
		}
		for _, m := range l.in[target] {
			reach(l.moves[m].from)
		}
		for ; len(work) > 0; work = work[1:] {
			for _, m := range l.in[work[0]] {
				reach(l.moves[m].from)
			}
		}
		lost := slices.DeleteFunc(heading[target], reaches.Has)
		if lost = l.kept(LintTargetUnreached, lost); len(lost) > 0 {
			l.add(Finding{
				ID: LintTargetUnreached, Severity: Warning, States: l.names(lost), Rows: l.exitRows(lost),
				Message: fmt.Sprintf("work in %s is said to lead to %s, and no row does", some(l.names(lost), "and"), l.t.States[target].Name),
				Advice:  "Correct the target, or add the row that leads there.",
			})
		}
	}
}

// elsewhere finds work that may also end well in another state than the target.
func (l *linter) elsewhere() {
	for _, s := range l.kept(LintTargetElsewhere, l.states(func(s int) bool {
		return l.kind(s) == fsm.Transitional && l.a.declared(l.t.States[s].Target)
	})) {
		target := l.t.States[s].Target
		var ends, rows []int
		for _, m := range l.out[s] {
			move := l.moves[m]
			if move.role == RoleNone && move.to >= 0 && move.to != target && l.kind(move.to).Resting() {
				ends, rows = append(ends, move.to), append(rows, move.row)
			}
		}
		slices.Sort(ends)
		if ends = slices.Compact(ends); len(ends) > 0 {
			state := l.t.States[s].Name
			l.add(Finding{
				ID: LintTargetElsewhere, Severity: Info, States: []string{state}, Rows: rows,
				Message: fmt.Sprintf("work in %s is said to lead to %s, and may also end in %s",
					state, l.t.States[target].Name, some(l.names(ends), "or")),
				Advice: "Nothing, if that is another good end.",
			})
		}
	}
}

// strangeOrigins finds conditions that name, among others, an origin that no
// object has there.
func (l *linter) strangeOrigins(i int, row *fsm.TableRow, came []bitset.Set) {
	if len(row.Origin) < 2 {
		return // a problem of the table, if it is wrong
	}
	there := bitset.New(len(l.t.States))
	for _, from := range row.From {
		if l.a.declared(from) {
			there.Union(came[from])
		}
	}
	var strange []int
	for _, o := range row.Origin {
		if l.a.declared(o) && !there.Has(o) {
			strange = append(strange, o)
		}
	}
	slices.Sort(strange)
	strange = slices.Compact(strange)
	if len(strange) == len(row.Origin) {
		return // likewise
	}
	if strange = l.kept(LintTargetOutside, strange); len(strange) > 0 {
		l.add(Finding{
			ID: LintTargetOutside, Severity: Warning, States: l.names(strange), Events: []string{l.t.Events[row.Event]}, Rows: []int{i},
			Message: fmt.Sprintf("row %d is for objects that came from %s, and none there did", i, some(l.names(strange), "or")),
			Advice:  "Remove the origin from the condition, or add the way by which objects come from there.",
		})
	}
}

// strays reports whether a return row that ends work well may lead elsewhere than
// the state says.
func (l *linter) strays(row *fsm.TableRow, from int, origins []int) bool {
	if len(row.Origin) > 0 {
		origins = row.Origin
	}
	target := l.t.States[from].Target
	return slices.ContainsFunc(origins, func(o int) bool { return o != target && l.a.declared(o) && l.kind(o).Resting() })
}
