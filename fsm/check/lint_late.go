package check

import (
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// late finds events that may still be on their way when an object has reached a
// final state. An event may be late in a final state if another actor than the one
// that ended the object could fire it the moment before. It weighs more if another
// final state has a row for the event: somebody thought of it once.
func (l *linter) late() {
	var finals []int
	handles := newSet(len(l.t.Events)) // in some final state
	own := make([]set, len(l.t.States))
	for s := range l.t.States {
		if l.kind(s) == fsm.Final {
			finals = append(finals, s)
			own[s] = newSet(len(l.t.Events))
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
			if own[from] != nil {
				handles.add(row.Event)
			}
		}
	}
	for _, f := range finals {
		l.lateIn(f, own[f], handles, fires)
	}
}

func (l *linter) lateIn(final int, own, handles set, fires [][]int) {
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
			case handles.has(event):
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
		var names []string
		for e := range l.t.Events {
			if events.has(e) {
				names = append(names, l.t.Events[e])
			}
		}
		l.add(Finding{
			ID: id, Severity: severity, States: []string{name}, Events: names, Rows: rows,
			Message: fmt.Sprintf("%s may come late in the final state %s, which has no row for it%s", some(names, "or"), name, says),
			Advice:  advice,
		})
	}
	about(LintLateEvent, Warning, missed, rows[0], ", unlike another final state",
		"Ignore it there too, or refuse it in both.")
	about(LintLateUnsaid, Info, unsaid, rows[1], "",
		"Nothing, if a refusal is right; ignore it if whoever sends it cannot know better.")
}
