package lifecycle

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/tee"
)

// Observer receives what a [Manager] does. A nil function is not called. The
// functions run in the goroutine and with the context of the call, after the commit
// and with no lock held. Many goroutines may call them at once, and they can undo
// nothing. [Tee] makes one observer of several, [Log] one that logs. The changes of one object
// may arrive in another order than that of their commits: Sequence gives the order. A panic
// continues in the caller; the change is committed. [OutcomeError].Unwritten has a panic about
// the end of work.
type Observer struct {
	// Changed receives every change that was committed, with the names of states as the
	// history has them: those of the record's [Config].Version. It does not receive an outcome
	// of work that a later attempt finds written by an earlier one of unknown outcome.
	Changed func(context.Context, CommittedChange)
	// Refused receives the error of every call that should have changed an object,
	// an [*Error]. The verb of an outcome that will be written again is "outcome".
	Refused func(context.Context, error)
	// Reported receives every report that has a verdict.
	Reported func(context.Context, Reported)
	// Finished receives the end of every operation whose work this process did, once
	// its outcome is written or known not to be. It runs with the context of the queue.
	Finished func(context.Context, Finished)
	// Retried receives every attempt of work that has failed and is followed by another
	// one, see [Retries]. Its panic becomes the outcome of the work.
	Retried func(context.Context, FailedAttempt)
	// Swept receives the end of every [Manager.Sweep].
	Swept func(context.Context, Swept)
	// Stored receives every call of the store that reads, lists or commits records of the
	// manager's objects, successful or not. A commit of several managers' objects is that of
	// one of them.
	Stored func(context.Context, StoreCall)
}

// CommittedChange is a change that was committed.
type CommittedChange struct {
	HistoryRow
	// InState is the time between the last change of the object and this one, by the
	// store's clock: how long it was in From. 0 for a new object, and for a store that
	// does not keep the time of changes.
	InState time.Duration
}

// Finished is the end of an operation.
type Finished struct {
	Key
	Operation OpID
	Event     string        // that started the operation, or its work in this process
	Took      time.Duration // since Do, or since the sweep that does the work again; with the wait for the turn
	// Err is the error of [Ticket.Wait]: nil, or an [*OutcomeError]. If the work has
	// panicked, errors.AsType finds the [*queue.PanicError] with the stack in it.
	Err error
}

// FailedAttempt is an attempt of work that has failed and is followed by another one.
type FailedAttempt struct {
	Key
	Operation OpID
	Event     string // that started the operation, or its work in this process
	Attempt   int    // from 1, in all processes
	Err       error  // of the attempt
	Pause     time.Duration
}

// Swept is one sweep.
type Swept struct {
	Machine string
	Results []SweepResult // shared with the caller of the sweep: read only
	Err     error         // what has ended the sweep; nil: it is complete
	Took    time.Duration
}

// StoreCall is one call of the store.
type StoreCall struct {
	Machine string
	Call    string // "get", "list" or "commit"; a commit includes the resolution of an unknown outcome
	Err     error
	Took    time.Duration
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

// Tee returns an observer that calls the functions of several observers, in order. A
// function that none of them has is nil in the result too, so it costs nothing. If a
// function panics, those after it are still called.
func Tee(observers ...Observer) Observer {
	var all Observer
	for _, o := range observers {
		all.Changed = tee.Both(all.Changed, o.Changed)
		all.Refused = tee.Both(all.Refused, o.Refused)
		all.Reported = tee.Both(all.Reported, o.Reported)
		all.Finished = tee.Both(all.Finished, o.Finished)
		all.Retried = tee.Both(all.Retried, o.Retried)
		all.Swept = tee.Both(all.Swept, o.Swept)
		all.Stored = tee.Both(all.Stored, o.Stored)
	}
	return all
}
