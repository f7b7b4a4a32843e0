package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// late finds events that may still be on their way when an object has reached a
// final state. An event may be late in a final state if another actor than the one
// that ended the object could fire it the moment before. It weighs more if at least
// half of the other final states have a row for the event: somebody thought of it.
func (l *linter) late() {
	var finals []int
	handled := make([]int, len(l.t.Events)) // by event: final states that have a row for it
	own := make([]bitset.Set, len(l.t.States))
	counted := make([]bitset.Set, len(l.t.States)) // the same without forced rows
	for s := range l.t.States {
		if l.kind(s) == fsm.Final {
			finals = append(finals, s)
			own[s], counted[s] = bitset.New(len(l.t.Events)), bitset.New(len(l.t.Events))
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
				own[from].Add(row.Event)
			}
			if row.Forced {
				continue // who uses force is not late
			}
			fires[from] = append(fires[from], i)
			if own[from] != nil && counted[from].Add(row.Event) {
				handled[row.Event]++
			}
		}
	}
	usual := bitset.New(len(l.t.Events))
	for e, n := range handled {
		if atHalf(n, len(finals)-1) {
			usual.Add(e)
		}
	}
	for _, f := range finals {
		l.lateIn(f, own[f], usual, fires)
	}
}

func (l *linter) lateIn(final int, own, usual bitset.Set, fires [][]int) {
	enders := make(map[int]bitset.Set) // by state: who leads from there into the final one
	var before []int
	for _, m := range l.in[final] {
		from := l.moves[m].from
		if enders[from] == nil {
			enders[from] = bitset.New(len(l.t.Actors))
			before = append(before, from)
		}
		enders[from].Union(l.a.may[l.moves[m].row])
	}
	missed, unsaid := bitset.New(len(l.t.Events)), bitset.New(len(l.t.Events))
	var rows [2][]int
	for _, from := range before {
		for _, i := range fires[from] {
			event := l.t.Rows[i].Event
			both := bitset.New(len(l.t.Actors))
			both.Union(enders[from])
			both.Union(l.a.may[i])
			switch {
			case own.Has(event) || len(l.t.Actors) > 0 && both.Len() < 2 || l.isDeadline(&l.t.Rows[i]):
			case usual.Has(event):
				missed.Add(event)
				rows[0] = append(rows[0], i)
			default:
				unsaid.Add(event)
				rows[1] = append(rows[1], i)
			}
		}
	}
	name := l.t.States[final].Name
	about := func(id string, severity Severity, events bitset.Set, rows []int, says, advice string) {
		if events.Len() == 0 || len(l.kept(id, []int{final})) == 0 {
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
	if slices.ContainsFunc(l.a.may, func(may bitset.Set) bool { return may.Len() < len(l.t.Actors) }) {
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
	own := make([]bitset.Set, len(l.t.States))   // by state: events that have a row
	stays := make([]bitset.Set, len(l.t.States)) // those whose row keeps an object there
	for s := range own {
		own[s], stays[s] = bitset.New(len(l.t.Events)), bitset.New(len(l.t.Events))
	}
	for i := range l.t.Rows {
		row := &l.t.Rows[i]
		if !l.a.hasEvent(row) {
			continue
		}
		for _, from := range row.From {
			if l.a.declared(from) {
				own[from].Add(row.Event)
				if row.Then == fsm.ThenIgnore || row.Then == fsm.ThenMove && row.To == from {
					stays[from].Add(row.Event)
				}
			}
		}
	}
	for _, s := range l.kept(LintLateFailure, l.states(func(s int) bool { return l.kind(s) == fsm.Transitional })) {
		good, bad := bitset.New(len(l.t.Events)), bitset.New(len(l.t.Events))
		var rows []int
		by := make(map[int]bitset.Set) // by state: who leads objects away from there
		var from []int
		for _, in := range l.in[s] {
			away := l.moves[in]
			if away.role != RoleAbort && away.role != RoleDelete {
				continue
			}
			if by[away.from] == nil {
				by[away.from] = bitset.New(len(l.t.Actors))
				from = append(from, away.from)
			}
			by[away.from].Union(l.a.may[away.row])
		}
		for _, f := range from {
			rows = append(rows, l.lateFrom(f, s, by[f], own[s], stays[s], good, bad)...)
		}
		if bad.Len() == 0 {
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
func (l *linter) lateFrom(from, to int, by, own, stays, good, bad bitset.Set) (rows []int) {
	leads := bitset.New(len(l.t.Events))
	for _, m := range l.out[from] {
		if l.moves[m].to == to {
			leads.Add(l.t.Rows[l.moves[m].row].Event)
		}
	}
	var ends, failures []int
	for _, m := range l.out[from] {
		move := l.moves[m]
		row := &l.t.Rows[move.row]
		both := bitset.New(len(l.t.Actors))
		both.Union(by)
		both.Union(l.a.may[move.row])
		switch {
		case l.isDeadline(row) || leads.Has(row.Event):
		case move.role == RoleNone && stays.Has(row.Event):
			ends = append(ends, row.Event)
		case move.role == RoleFail && !own.Has(row.Event) && both.Len() != 1:
			failures, rows = append(failures, row.Event), append(rows, move.row)
		}
	}
	if len(ends) == 0 || len(failures) == 0 {
		return nil
	}
	for _, e := range ends {
		good.Add(e)
	}
	for _, e := range failures {
		bad.Add(e)
	}
	return rows
}

// eventsOf lists events by name, in order of declaration.
func (l *linter) eventsOf(events bitset.Set) (names []string) {
	for e := range l.t.Events {
		if events.Has(e) {
			names = append(names, l.t.Events[e])
		}
	}
	return names
}
