package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// late finds events that may still be on their way when an object has reached a
// final state. An event may be late in a final state if another actor than the one
// that ended the object could fire it the moment before. It weighs more if at least
// half of the other final states have a row for the event: somebody thought of it.
func (l *linter) late() {
	var finals []int
	handled := make([]int, len(l.t.Events)) // by event: final states that have a row for it
	own := make([]set, len(l.t.States))
	counted := make([]set, len(l.t.States)) // the same without forced rows
	for s := range l.t.States {
		if l.kind(s) == fsm.Final {
			finals = append(finals, s)
			own[s], counted[s] = newSet(len(l.t.Events)), newSet(len(l.t.Events))
		}
	}
	if len(finals) == 0 {
		return
	}
	fires := make([][]int, len(l.t.States)) // by state: rows that are not forced
	for i := range l.t.Rows {
		row := &l.t.Rows[i]
		if !l.a.hasEvent(row) {
			continue
		}
		for _, from := range row.From {
			if !l.a.declared(from) {
				continue
			}
			if own[from] != nil {
				own[from].add(row.Event)
			}
			if row.Forced {
				continue // who uses force is not late
			}
			fires[from] = append(fires[from], i)
			if own[from] != nil && counted[from].add(row.Event) {
				handled[row.Event]++
			}
		}
	}
	usual := newSet(len(l.t.Events))
	for e, n := range handled {
		if atHalf(n, len(finals)-1) {
			usual.add(e)
		}
	}
	for _, f := range finals {
		l.lateIn(f, own[f], usual, fires)
	}
}

func (l *linter) lateIn(final int, own, usual set, fires [][]int) {
	enders := make(map[int]set) // by state: who leads from there into the final one
	var before []int
	for _, m := range l.in[final] {
		from := l.moves[m].from
		if enders[from] == nil {
			enders[from] = newSet(len(l.t.Actors))
			before = append(before, from)
		}
		enders[from].union(l.a.may[l.moves[m].row])
	}
	missed, unsaid := newSet(len(l.t.Events)), newSet(len(l.t.Events))
	var rows [2][]int
	for _, from := range before {
		for _, i := range fires[from] {
			event := l.t.Rows[i].Event
			both := newSet(len(l.t.Actors))
			both.union(enders[from])
			both.union(l.a.may[i])
			switch {
			case own.has(event) || len(l.t.Actors) > 0 && both.size() < 2 || l.isDeadline(&l.t.Rows[i]):
			case usual.has(event):
				missed.add(event)
				rows[0] = append(rows[0], i)
			default:
				unsaid.add(event)
				rows[1] = append(rows[1], i)
			}
		}
	}
	name := l.t.States[final].Name
	about := func(id string, severity Severity, events set, rows []int, says, advice string) {
		if events.size() == 0 || len(l.kept(id, []int{final})) == 0 {
			return
		}
		names := l.eventsOf(events)
		l.add(Finding{
			ID: id, Severity: severity, States: []string{name}, Events: names, Rows: rows,
			Message: fmt.Sprintf("%s may come late in the final state %s, which has no row for it%s", some(names, "or"), name, says),
			Advice:  advice,
		})
	}
	severity := Info
	if slices.ContainsFunc(l.a.may, func(may set) bool { return may.size() < len(l.t.Actors) }) {
		severity = Warning // else nobody is told from anybody, and all of it is a guess
	}
	about(LintLateEvent, severity, missed, rows[0], ", unlike another final state",
		"Ignore it there too, or refuse it in both.")
	about(LintLateUnsaid, Info, unsaid, rows[1], "",
		"Nothing, if a refusal is right; ignore it if whoever sends it cannot know better.")
}

// lateFailures finds states at work that objects come to when other work is called
// off, and which put up with the good end of that work, but not with the bad one:
// both may be on their way at that moment.
func (l *linter) lateFailures() {
	own := make([]set, len(l.t.States))   // by state: events that have a row
	stays := make([]set, len(l.t.States)) // those whose row keeps an object there
	for s := range own {
		own[s], stays[s] = newSet(len(l.t.Events)), newSet(len(l.t.Events))
	}
	for i := range l.t.Rows {
		row := &l.t.Rows[i]
		if !l.a.hasEvent(row) {
			continue
		}
		for _, from := range row.From {
			if l.a.declared(from) {
				own[from].add(row.Event)
				if row.Then == fsm.ThenIgnore || row.Then == fsm.ThenMove && row.To == from {
					stays[from].add(row.Event)
				}
			}
		}
	}
	for _, s := range l.kept(LintLateFailure, l.states(func(s int) bool { return l.kind(s) == fsm.Transitional })) {
		good, bad := newSet(len(l.t.Events)), newSet(len(l.t.Events))
		var rows []int
		by := make(map[int]set) // by state: who leads objects away from there
		var from []int
		for _, in := range l.in[s] {
			away := l.moves[in]
			if away.role != RoleAbort && away.role != RoleDelete {
				continue
			}
			if by[away.from] == nil {
				by[away.from] = newSet(len(l.t.Actors))
				from = append(from, away.from)
			}
			by[away.from].union(l.a.may[away.row])
		}
		for _, f := range from {
			rows = append(rows, l.lateFrom(f, s, by[f], own[s], stays[s], good, bad)...)
		}
		if bad.size() == 0 {
			continue
		}
		name, ends, failures := l.t.States[s].Name, l.eventsOf(good), l.eventsOf(bad)
		l.add(Finding{
			ID: LintLateFailure, Severity: Warning, States: []string{name}, Events: failures, Rows: rows,
			Message: fmt.Sprintf("%s may come late in %s, which has no row for it, but puts up with %s", some(failures, "or"), name, some(ends, "and")),
			Advice:  "Ignore it there too.",
		})
	}
}

// lateFrom adds the events that may come late when actors lead an object away from
// its work, if the target puts up with one of the good ones, and returns the rows
// of the bad ones. What itself leads there is not late.
func (l *linter) lateFrom(from, to int, by, own, stays, good, bad set) (rows []int) {
	leads := newSet(len(l.t.Events))
	for _, m := range l.out[from] {
		if l.moves[m].to == to {
			leads.add(l.t.Rows[l.moves[m].row].Event)
		}
	}
	var ends, failures []int
	for _, m := range l.out[from] {
		move := l.moves[m]
		row := &l.t.Rows[move.row]
		both := newSet(len(l.t.Actors))
		both.union(by)
		both.union(l.a.may[move.row])
		switch {
		case l.isDeadline(row) || leads.has(row.Event):
		case move.role == RoleNone && stays.has(row.Event):
			ends = append(ends, row.Event)
		case move.role == RoleFail && !own.has(row.Event) && both.size() != 1:
			failures, rows = append(failures, row.Event), append(rows, move.row)
		}
	}
	if len(ends) == 0 || len(failures) == 0 {
		return nil
	}
	for _, e := range ends {
		good.add(e)
	}
	for _, e := range failures {
		bad.add(e)
	}
	return rows
}

// eventsOf lists events by name, in order of declaration.
func (l *linter) eventsOf(events set) (names []string) {
	for e := range l.t.Events {
		if events.has(e) {
			names = append(names, l.t.Events[e])
		}
	}
	return names
}
