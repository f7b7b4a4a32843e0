package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
	"github.com/interlock-go/interlock/fsm/internal/prose"
)

// ownerDeath finds transitional states in which an object stays for ever if its
// owner dies: without a deadline, Manual, or an exit that another actor can take if the
// work fails. It is a fact about the whole table if most of its work can end neither by a
// deadline nor in an error state, else a warning.
func (l *linter) ownerDeath() {
	var silent []int
	work, endless := 0, 0 // transitional states, and those of them without deadline and error state
	for s := range l.t.States {
		state := &l.t.States[s]
		if state.Kind != fsm.Transitional {
			continue
		}
		work++
		hasDeadline := l.redone[s] || slices.ContainsFunc(l.out[s], func(m int) bool { return l.isDeadline(&l.t.Rows[l.moves[m].row]) })
		oneActor := l.exits[s].actors.Len() == 1
		switch {
		case state.Manual != "" || hasDeadline:
		case !l.exits[s].any: // a problem of its own
		case l.exits[s].failed && !oneActor:
		default:
			endless++
			if oneActor || !l.leadsBack(s) {
				silent = append(silent, s)
			}
		}
	}
	severity := Warning
	if 2*endless > work {
		severity = Info
	}
	if silent = l.kept(ownerDeathID, silent); len(silent) > 0 {
		l.add(Finding{
			ID: ownerDeathID, Severity: severity, States: l.names(silent), Rows: l.exitRows(silent),
			Message: "an object stays in " + prose.List(l.names(silent), "or") + " if its owner dies: no deadline, and no failure that another actor reports",
			Advice:  "Add a timeout, or a failure that another actor reports.",
		})
	}
}

// leadsBack reports whether several events end the work and one of them leads back to
// where the work may have begun. That one is for work that did not succeed.
func (l *linter) leadsBack(s int) bool {
	back, events := false, make(map[int]bool)
	for _, m := range l.out[s] {
		to := l.moves[m].to
		_, began := slices.BinarySearch(l.origins[s], to)
		back = back || began || to < 0
		events[l.t.Rows[l.moves[m].row].Event] = true
	}
	return back && len(events) > 1
}

// late finds events that may arrive after an object has reached a final state:
// another actor could fire the event in the state before. Only an event for which
// half of the other final states have a row is a finding. In a table without actors
// each event may come from another one.
func (l *linter) late() {
	finals := l.states(func(s int) bool { return l.kind(s) == fsm.Final })
	if len(finals) < 2 {
		return
	}
	handled := make([]int, len(l.t.Events)) // final states that have a row for the event
	for _, f := range finals {
		for e := range handled {
			if l.handles(f, e) {
				handled[e]++
			}
		}
	}
	for _, f := range l.kept(lateEventID, finals) {
		missed := bitset.New(len(l.t.Events))
		var rows []int
		for _, in := range l.in[f] {
			ends := l.moves[in]
			for _, m := range l.out[ends.from] {
				row := l.moves[m].row
				event := l.t.Rows[row].Event
				if l.t.Rows[row].Forced || l.isDeadline(&l.t.Rows[row]) || l.handles(f, event) ||
					!l.otherActor(ends.row, row) || handled[event] == 0 || 2*handled[event] < len(finals)-1 {
					continue
				}
				missed.Add(event)
				rows = append(rows, row)
			}
		}
		if missed.Len() == 0 {
			continue
		}
		name := l.t.States[f].Name
		var events []string
		for _, e := range missed.Elements() {
			events = append(events, l.t.Events[e])
		}
		l.add(Finding{
			ID: lateEventID, Severity: Warning, States: []string{name}, Events: events, Rows: rows,
			Message: fmt.Sprintf("%s may arrive late in the final state %s, which has no row for it, unlike other final states", prose.List(events, "or"), name),
			Advice:  "Ignore the event there too, or refuse it in both.",
		})
	}
}

// handles reports whether a state has a row for an event.
func (l *linter) handles(state, event int) bool { return l.cells[[2]int{state, event}] != nil }

// otherActor reports whether two rows may be fired by different actors.
func (l *linter) otherActor(a, b int) bool {
	if len(l.t.Actors) == 0 {
		return true
	}
	both := bitset.New(len(l.t.Actors))
	both.Union(l.may[a])
	both.Union(l.may[b])
	return both.Len() > 1
}
