package queue

import (
	"context"
	"time"
)

// Action is what is to be done. The zero value is not usable: exactly one of
// Run and Handler is needed, everything else may be left out. The queue keeps
// the pointer and never writes through it: an action must not be changed once it
// was submitted, and may be submitted any number of times, also at once.
type Action struct {
	// Name says what it is, in refusals, in [Queuer.Inspect] and to observers.
	// The queue does not look at it.
	Name string
	// ID makes a repeated request the same request: while an action with the ID
	// is known, which is until it has ended, submitting another one gives the
	// ticket of the first. Empty: no such thing.
	ID string

	// Run does it. Its context ends when the action is cancelled, pre-empted,
	// aborted or over its Timeout; the context's cause is an [*EndError] that
	// says which.
	Run func(context.Context) error
	// Handler is the name of a function in [Config.Handlers], that is given
	// Payload. An action that must survive a process is written this way.
	Handler string
	Payload []byte

	// Admit is asked after a place was reserved and before the action counts as
	// accepted: the check of the object's state, and the compare-and-set of it.
	// It runs in the goroutine of the submitter with the submitter's context and
	// without a lock. What it returns refuses the action: [ErrConflict], and the
	// place vanishes. Actions submitted later to the same keys wait for it.
	Admit func(context.Context) error
	// Guard is asked when the action's turn has come, before every attempt, in
	// its goroutine. An error ends the action as [Skipped].
	Guard func(context.Context) error
	// Settle is told the outcome of an accepted action, whatever it is, exactly
	// once, before any later action of its keys starts and before the ticket is
	// done: here the object's state goes to where it belongs. A superseded or
	// pre-empted action must leave the state to its successor. The context is
	// [Config.Base]. It runs in the goroutine of the action, or of whoever ended
	// it while it waited. If it panics, that is the outcome.
	Settle func(context.Context, Outcome, error)

	// After is an action that has to succeed first: a [*Ticket] or [*Future],
	// also of another queue. This one keeps its place and waits; if the other
	// one does not end as OK, this one ends with its error and does not run.
	After Parent

	// Class is the path of the class whose limits apply. Empty: only those of
	// the root.
	Class string
	// Preempt is for deletes.
	Preempt Preempt
	// Wait makes the submitter wait for room where it would have been refused with
	// [ErrFull]. Who came first for a key goes first, also before submits that do
	// not wait; who cannot go yet is not in the way of those with other keys.
	Wait bool

	// Timeout bounds one attempt. 0: no bound. An action that ignores its
	// context is waited for.
	Timeout time.Duration
	// QueueTimeout bounds the time from acceptance to the first start. 0: no
	// bound. An action over it ends as [Expired] and does not run.
	QueueTimeout time.Duration
	// Retry says what to do after a failed attempt. Zero: there is one attempt.
	Retry Retry
	// OnFailure is [Continue] or [Halt]. Zero: what [Config.OnFailure] says.
	OnFailure Policy
}

// Retry says how often an action is tried. Between two attempts it keeps its
// place, so that no later action of its keys overtakes it, and gives back its
// share of the limits; after the back-off it waits in turn like everybody. Tried
// again are errors and time-outs: not panics, and nothing that was told to end.
type Retry struct {
	// Attempts in all. 0 and 1: no second one.
	Attempts int
	// Backoff has the pauses after the first attempt, the second and so on; the
	// last one repeats. Empty: no pause.
	Backoff []time.Duration
	// If says whether an error is worth another attempt. nil: every one is.
	If func(error) bool
}

// pause is the back-off after so many attempts.
func (r *Retry) pause(attempts int32) time.Duration {
	if len(r.Backoff) == 0 {
		return 0
	}
	return r.Backoff[min(int(attempts), len(r.Backoff))-1]
}

// Preempt says what an action does to those in front of it. A pre-empting action
// is accepted over every bound. Pre-empting actions keep their own order. A lane
// that stands still does so for them too, until somebody resumes it.
type Preempt uint8

const (
	// NoPreempt waits its turn.
	NoPreempt Preempt = iota
	// PreemptQueued ends the actions in front that wait as [Superseded], except
	// pre-empting ones, and runs after the running one.
	PreemptQueued
	// PreemptRunning cancels the running one too, also if that pre-empts itself: a
	// second delete gets past one that hangs. It still waits for it: never two at
	// once.
	PreemptRunning
)

// Policy says what a failed action does to its lanes.
type Policy uint8

const (
	// Continue: the next one starts.
	Continue Policy = iota + 1
	// Halt: the lanes of the action stand still until [Queuer.Resume] or
	// [Queuer.Skip]. Failures are [Failed], [Panicked] and [TimedOut]; an action
	// that was told to end has not failed. Submits are accepted meanwhile.
	Halt
)

// Handler does the actions that name it. Payload is what the action carries; it
// must not be changed.
type Handler func(ctx context.Context, payload []byte) error
