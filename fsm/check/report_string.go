package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// String returns the size of the table as one line, and a line for each fact that
// may be a fault. Programs must not depend on the text.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d states, %d events, %d actors, %d transitions in %d of %d cells",
		r.Name, r.States, r.Events, len(r.Actors), r.Transitions, r.CellsDefined, r.CellsTotal)
	list := func(what string, states []string) {
		if len(states) > 0 {
			fmt.Fprintf(&b, "\n  %s: %s", what, strings.Join(states, ", "))
		}
	}
	list("unreachable", r.UnreachableFromInitials)
	list("no exit", r.Traps)
	list("final, with an exit", r.FinalWithExit)
	list("never rests", r.CannotRest)
	list("never ends", r.CannotEnd)
	list("one actor alone can leave", r.OneActorCanLeave)
	list("no exit to an error state", r.NoErrorExit)
	for _, c := range r.Nondeterministic {
		decide := "each has a condition"
		if !c.AllGuarded {
			decide = fmt.Sprintf("%d without condition", c.Unguarded)
		}
		fmt.Fprintf(&b, "\n  choice: %s -%s-> %s: %s", c.From, c.Event, strings.Join(c.To, " or "), decide)
	}
	demands := 0
	for _, p := range r.Problems {
		listed := p.Code == fsm.Unreachable && slices.Contains(r.UnreachableFromInitials, p.State) ||
			p.Code == fsm.DeadEnd && slices.Contains(r.Traps, p.State)
		switch {
		case p.Severity != fsm.SeverityError:
			demands++
		case !listed:
			fmt.Fprintf(&b, "\n  error: %s", p)
		}
	}
	if demands > 0 {
		fmt.Fprintf(&b, "\n  demands of a machine: %d", demands)
	}
	return b.String()
}
