package lifecycle

import "github.com/interlock-go/interlock/fsm"

// Observer is told what a [Manager] does. A nil function is not called.
// Functions are called in the goroutine of the caller, after the commit and
// with no lock held; they can undo nothing, and may be called from many
// goroutines at once. Changes of one object may be told in another order than
// that of their commits: Sequence tells.
type Observer struct {
	// Changed: a change was committed.
	Changed func(HistoryRow)
	// Refused: a call that changes objects failed. The error is an [*Error].
	Refused func(error)
	// Reported: a report was decided.
	Reported func(Reported)
}

// Reported is a report and what it was.
type Reported struct {
	Key
	Operation OpID   // that the report is about
	Present   OpID   // the object's operation when the report was decided
	State     string // of the object then; empty: it does not exist
	Event     string
	Actor     fsm.Actor
	Reason    string
	Verdict   Verdict
	Err       error // why it is refused or stale; nil otherwise
}
