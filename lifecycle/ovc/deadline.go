package ovc

import (
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// The timeouts of every table. The document requires both and gives no figures, so
// these are this package's own. A service with others sets Timeout
// of the rows on [Stuck] and [Expire] in the specification before it builds a
// machine from it.
const (
	// StuckAfter is how long an object may be in a transition state before
	// self-healing puts it back. It is meant to exceed what any action takes.
	StuckAfter = 30 * time.Minute
	// Retention is how long an object stays in the recycle bin.
	Retention = 7 * 24 * time.Hour
)

// selfHealing is the row by which an object that is stuck in any transition
// state gets back to where it was.
func selfHealing(states []fsm.State[State]) fsm.Row[State, Event] {
	var stuck []State
	for _, s := range states {
		if s.Kind == fsm.Transitional {
			stuck = append(stuck, s.Name)
		}
	}
	return fsm.Return(stuck[0], Stuck).AlsoFrom(stuck[1:]...).After(StuckAfter).
		Note("beyond the document's rows, in its notes: self-healing recovers the previous state")
}

// retention is the row by which the recycle bin empties itself. It leads
// through DESTROYING: destroying is work, and in every row of the document
// DESTROYED is reached through it. If the work gets stuck, the object is back in
// the bin, for another retention period.
func retention(bin State) fsm.Row[State, Event] {
	return fsm.Move(bin, Expire, Destroying).After(Retention).
		Note("beyond the document's rows, in its text: permanently deleted after the retention period")
}
