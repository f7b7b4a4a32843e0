package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/internal/bitset"
)

// ownerDeath finds transitional states of which the table does not say what
// becomes of an object whose owner is dead. A failure, a deadline, somebody who
// gives up on the object, Manual and what the source says about the owner's death
// all answer that.
func (l *linter) ownerDeath() {
	var silent, unsaid []int
	says := false // the table speaks of the death of owners at all
	for s := range l.t.States {
		state := &l.t.States[s]
		switch {
		case state.Kind != fsm.Transitional || l.looked[s]:
		case state.OnOwnerDeath != "":
			says = true
			l.ownerNoRow(s)
		case !l.a.exits[s].any: // said elsewhere
		case l.missed[s][RoleFail]: // likewise
		case !l.has(s, RoleFail) && !l.has(s, RoleAbort) && !l.has(s, RoleDelete) && !l.stays[s][RoleFail]:
			silent = append(silent, s)
		default:
			unsaid = append(unsaid, s)
		}
	}
	if silent = l.kept(LintOwnerDeath, silent); len(silent) > 0 {
		l.add(Finding{
			ID: LintOwnerDeath, Severity: Warning, States: l.names(silent), Rows: l.exitRows(silent),
			Message: "no edge out of " + some(l.names(silent), "or") + " is for work that failed or takes too long",
			Advice:  "Add a failure, or a deadline that fires when whoever does the work is dead.",
		})
	}
	if unsaid = l.kept(LintOwnerUnsaid, unsaid); says && len(unsaid) > 0 {
		l.add(Finding{
			ID: LintOwnerUnsaid, Severity: Warning, States: l.names(unsaid), Rows: l.exitRows(unsaid),
			Message: "the table says what happens when an owner dies, but not in " + some(l.names(unsaid), "or"),
			Advice:  "Say it there too, or add a deadline, or say in Manual who looks after them.",
		})
	}
}

// ownerNoRow finds a state whose answer to the owner's death is an event that has
// no row there.
func (l *linter) ownerNoRow(s int) {
	state := &l.t.States[s]
	event := slices.Index(l.t.Events, state.OnOwnerDeath)
	if event < 0 || len(l.kept(LintOwnerNoRow, []int{s})) == 0 {
		return
	}
	if !slices.ContainsFunc(l.out[s], func(m int) bool { return l.t.Rows[l.moves[m].row].Event == event }) {
		l.add(Finding{
			ID: LintOwnerNoRow, Severity: Error, States: []string{state.Name}, Events: []string{state.OnOwnerDeath},
			Message: fmt.Sprintf("%s is to be left by %s when the owner dies, and has no such row", state.Name, state.OnOwnerDeath),
			Advice:  "Add the row.",
		})
	}
}

// exitRows returns rows that lead out of the states.
func (l *linter) exitRows(states []int) (rows []int) {
	for _, s := range states {
		rows = append(rows, l.rowsOf(s, every)...)
	}
	return rows
}

// oneActor finds transitional states that hang on a single actor. Where nobody is
// named, nothing can be said.
func (l *linter) oneActor() {
	hang := make([][]int, len(l.t.Actors))
	for s := range l.t.States {
		state := &l.t.States[s]
		if state.Kind != fsm.Transitional || state.OnOwnerDeath != "" || l.looked[s] || l.a.exits[s].actors.Len() != 1 {
			continue
		}
		for actor := range hang {
			if l.a.exits[s].actors.Has(actor) {
				hang[actor] = append(hang[actor], s)
			}
		}
	}
	for actor, states := range hang {
		if states = l.kept(LintOneActor, states); len(states) == 0 {
			continue
		}
		name := string(l.t.Actors[actor])
		l.add(Finding{
			ID: LintOneActor, Severity: Warning, States: l.names(states), Actors: []string{name}, Rows: l.exitRows(states),
			Message: fmt.Sprintf("nobody but %s can lead an object out of %s", name, some(l.names(states), "or")),
			Advice:  "Add a deadline, or let somebody else give up on the object, so that it is not stuck when " + name + " is gone.",
		})
	}
}

// manyActors finds states that several actors can leave. Who is asked for and who
// acts when nobody does are not meant by the promise.
func (l *linter) manyActors() {
	if !l.config.Exclusive {
		return
	}
	for s := range l.t.States {
		who := bitset.New(len(l.t.Actors))
		var rows []int
		for _, m := range l.out[s] {
			row := &l.t.Rows[l.moves[m].row]
			if row.Forced || l.isDeadline(row) {
				continue
			}
			rows = append(rows, l.moves[m].row)
			who.Union(l.a.may[l.moves[m].row])
		}
		if sweeper, ok := l.t.ActorIndex(fsm.Sweeper); ok {
			who.Remove(sweeper)
		}
		if who.Len() < 2 || len(l.kept(LintManyActors, []int{s})) == 0 {
			continue
		}
		var actors []string
		for actor, name := range l.t.Actors {
			if who.Has(actor) {
				actors = append(actors, string(name))
			}
		}
		state := l.t.States[s].Name
		l.add(Finding{
			ID: LintManyActors, Severity: Warning, States: []string{state}, Actors: actors, Rows: rows,
			Message: fmt.Sprintf("%s can lead an object out of %s, each without the others", some(actors, "and"), state),
			Advice:  "Leave it to one of them, or give the other a state of its own.",
		})
	}
}
