package fsm

// Actor says who asks for or reports an event: a user, a controller, an agent.
// Actors are compared as strings. A machine declares its actors, at most 64.
type Actor string

// Sweeper is the actor of deadline rows. It need not be declared.
const Sweeper Actor = "sweeper"

// Kind is the kind of a state: who owes the next move while an object is in it.
type Kind uint8

const (
	Stable       Kind = iota // rests until somebody asks
	Transitional             // work is in flight and somebody owes the next move
	Failed                   // rests after a failure
	Final                    // left by forced rows only; a row may stay in it
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

// Resting reports whether an object may stay in a state of this kind without
// anybody owing a move: every kind but [Transitional].
func (k Kind) Resting() bool { return k != Transitional }

// Then is what a row does when it fires.
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
