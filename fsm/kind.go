package fsm

// Actor is the role that requests or reports an event: a user, a controller, an
// agent. Actors are compared as strings. A machine declares at most [MaxActors].
type Actor string

// Sweeper is the actor of rows with a timeout. A Spec need not declare it. A manager
// of package lifecycle refuses it as the actor of its callers.
const Sweeper Actor = "sweeper"

// Kind is the kind of a state.
type Kind uint8

const (
	Stable       Kind = iota // at rest
	Transitional             // work is in flight
	Failed                   // at rest after a failure
	Final                    // only forced rows leave it; other rows may stay in it
	Absent                   // the object does not exist: before creation, after deletion
)

var kindNames = [...]string{"stable", "transitional", "failed", "final", "absent"}

// String returns the name of the kind in lower case.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind?"
}

// Resting reports whether no work is in flight in a state of this kind: every kind but [Transitional].
func (k Kind) Resting() bool { return k != Transitional }

// Then is the effect of a row.
type Then uint8

const (
	ThenMove   Then = iota // the object moves to the row's target
	ThenReturn             // the object moves back to its origin
	ThenIgnore             // the event is accepted and changes nothing
)

var thenNames = [...]string{"move", "return", "ignore"}

// String returns the name in lower case.
func (t Then) String() string {
	if int(t) < len(thenNames) {
		return thenNames[t]
	}
	return "then?"
}
