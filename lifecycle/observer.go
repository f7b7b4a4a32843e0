package lifecycle

import (
	"context"

	"github.com/interlock-go/interlock/fsm"
)

// Observer receives what a [Manager] does. A nil function is not called. The
// functions run in the goroutine and with the context of the call, after the commit
// and with no lock held. Many goroutines may call them at once, and they can undo
// nothing. The changes of one object may arrive in another order than that of their
// commits: Sequence gives the order. A panic continues in the caller; the change is
// committed.
type Observer struct {
	// Changed receives every change that was committed, with the names of states as the
	// history has them: those of the record's [Config].Version.
	Changed func(context.Context, HistoryRow)
	// Refused receives the error of every call that should have changed an object,
	// an [*Error]. The verb of an outcome that will be written again is "outcome".
	Refused func(context.Context, error)
	// Reported receives every report that has a verdict.
	Reported func(context.Context, Reported)
	// Finished receives the end of every operation whose work this process did, once
	// its outcome is written or known not to be. It runs with the context of the queue.
	Finished func(context.Context, Finished)
}

// Finished is the end of an operation.
type Finished struct {
	Key
	Operation OpID
	// Err is the error of [Handle.Wait]: nil, or an [*OutcomeError]. If the work has
	// panicked, errors.AsType finds the [*queue.PanicError] with the stack in it.
	Err error
}

// Reported is a report and its verdict.
type Reported struct {
	Key
	Operation OpID   // of the report
	Present   OpID   // of the object when the report was decided
	State     string // of the object then; empty: it does not exist
	Event     string
	Actor     fsm.Actor
	Reason    string
	Verdict   Verdict
	Err       error // why the report is refused or stale; nil otherwise
}
