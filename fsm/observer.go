package fsm

import "context"

// Observer receives the moves and refusals of the instances of a machine; see
// [Machine.Observe]. A nil function is not called. Each function is called in the
// goroutine that fired, with the context of the Fire, after the move, and without a
// lock. It cannot undo the move.
// It may be called from several goroutines at once.
type Observer struct {
	Moved   func(context.Context, Moved)
	Refused func(context.Context, error) // with a [TransitionError] in its tree
}

// Moved is an accepted event. If From equals To and Ignored is false, it is a self
// transition.
type Moved struct {
	Machine      *Table
	From, Origin string // before
	To           string
	Event        string
	Actor        Actor
	Row          int
	Ignored      bool // the row accepts the event and changes nothing
}
