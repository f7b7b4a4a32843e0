package ovc

import (
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// The timeouts of every table. The document requires both without figures. [Config]
// changes them for a [Service].
const (
	// StuckAfter is the time in a transition state after which self-healing moves an
	// object back. It must exceed the duration of every action.
	StuckAfter = 30 * time.Minute
	// Retention is the time of an object in the recycle bin.
	Retention = 7 * 24 * time.Hour
)

// selfHealing returns the row that moves an object from a transition state to its
// origin.
func selfHealing(states []fsm.State[State]) fsm.Row[State, Event] {
	var stuck []State
	for _, s := range states {
		if s.Kind == fsm.Transitional {
			stuck = append(stuck, s.Name)
		}
	}
	return fsm.Return(stuck[0], Stuck).AlsoFrom(stuck[1:]...).By(Observer).After(StuckAfter).
		Note("beyond the document's rows, in its notes: self-healing recovers the previous state")
}

// retention returns the row that destroys an object of the recycle bin. It leads to
// DESTROYING, like every row into DESTROYED of the document. If the destruction fails, the
// object stays in the bin for another retention period.
func retention(bin State) fsm.Row[State, Event] {
	return fsm.Move(bin, Expire, Destroying).By(Observer).After(Retention).
		Note("beyond the document's rows, in its text: permanently deleted after the retention period")
}
