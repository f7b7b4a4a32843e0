package check

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// problems makes findings of the problems of package fsm. A demand of fsm.New is one
// finding for all states. A failed state without exit has a finding of its own.
func (l *linter) problems() {
	demands := make(map[string]int) // by code: index of the finding
	for _, p := range l.facts.Problems {
		f := Finding{ID: p.Code, Severity: Error, Message: p.Text, Advice: advice[p.Code]}
		if p.Row >= 0 {
			f.Rows = []int{p.Row}
		}
		if p.State != "" {
			f.States = []string{p.State}
		}
		switch at, ok := demands[p.Code]; {
		case l.skip[p.Code+":"+p.State], p.Code == fsm.DeadEnd && slices.Contains(l.facts.ErrorWithoutExit, p.State):
		case !p.Demand || l.skip[p.Code]:
			l.add(f)
		case !ok:
			demands[p.Code] = len(l.found)
			f.Severity = Info
			l.add(f)
		default:
			all := &l.found[at]
			all.States = slices.Compact(append(all.States, p.State))
			if more := len(all.States) - 1; more > 0 {
				all.Message = fmt.Sprintf("%s, and %d more: %s", all.States[0], more, demanded[p.Code])
			}
		}
	}
}

// demanded are the demands of fsm.New about several states.
var demanded = map[string]string{
	fsm.NoDeadline:     "transitional, with neither a timeout nor Manual",
	fsm.NeedlessManual: "Manual where nothing is manual",
	fsm.EndlessTimeout: "a timeout that comes back to its own state in the same operation",
}

// advice is the remedy for each problem of package fsm.
var advice = map[string]string{
	fsm.NoName:             "Give it a name.",
	fsm.BadName:            "Use a shorter name of printable UTF-8.",
	fsm.DuplicateName:      "Rename one of the two.",
	fsm.TooLarge:           "Split the table. fsm.New refuses it.",
	fsm.NoInitial:          "Name a declared state in which objects start.",
	fsm.UnknownState:       "Declare the state, or correct its name.",
	fsm.UnknownActor:       "Declare the actor, or correct its name.",
	fsm.NoActor:            "Declare the actors that fire the rows.",
	fsm.NoSource:           "Name a source, or remove the row.",
	fsm.BadRow:             "Correct the row.",
	fsm.BadState:           "Use one of the five kinds.",
	fsm.BadGuard:           "Give the guard a name and the payload type of the machine.",
	fsm.DuplicateRow:       "Remove one of the two rows.",
	fsm.AmbiguousRow:       "Give the earlier row a guard or an origin condition, or split the event in two.",
	fsm.Unreachable:        "Add the row that leads there, or remove the state.",
	fsm.DeadEnd:            "Add a row that leads out, or declare the state final or absent.",
	fsm.FinalExit:          "Make the row forced, or the state stable.",
	fsm.NoOrigin:           "Give the row a target, or let objects start in a state of rest.",
	fsm.NeverFits:          "Correct the origin condition, or remove the row.",
	fsm.NoDeadline:         "Add a timeout, or name the operator in Manual.",
	fsm.NeedlessManual:     "Remove Manual.",
	fsm.EndlessTimeout:     "Make the row with fsm.Redo, which starts the operation again, or lead it to another state.",
	fsm.DeadlineFromAbsent: "Remove the timeout. No object exists in the state.",
}
