package fsm

// Observer is told what instances of a machine do; see [Machine.Observe]. A nil
// function is not called. Functions are called in the goroutine that fired,
// after the move and with no lock held; they cannot undo it. They may be called
// from many goroutines at once.
type Observer struct {
	Moved   func(Moved)
	Refused func(error) // with a [TransitionError] in its tree
}

// Moved is an event that was accepted. Equal From and To with Ignored unset is
// a self transition.
type Moved struct {
	Machine      *Table
	From, Origin string // before
	To           string
	Event        string
	Actor        Actor
	Row          int
	Ignored      bool // the row accepts the event and changes nothing
}
