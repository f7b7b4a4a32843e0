package queue

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Action is a unit of work. Run is required; every other field is optional. The
// queue keeps the pointer and never writes through it. An action must not be
// changed after its first submit. It may be submitted any number of times, also
// concurrently.
type Action struct {
	// Name appears in refusals, in [Queuer.Inspect] and in events.
	Name string
	// ID makes a repeated request the same request: until the action with this ID
	// has ended, or has started if it has Coalesce, a submit with the same ID, Name,
	// Class, Coalesce and keys returns its ticket. A submit with the same ID that differs
	// in one of these is refused with [ErrIDInUse]. Empty: no such check.
	ID string

	// Run does the work. Its context ends when the action is cancelled, pre-empted,
	// aborted, or over its Timeout. The cause of the context is then an [*EndError].
	// The context also ends some time after the action has ended; see Limits in the
	// package documentation.
	Run func(context.Context) error
	// Admit runs after the place is reserved and before the action is accepted:
	// check the object's state and commit its change with a compare-and-set here.
	// It runs in the goroutine and with the context of the submitter, without a
	// lock. Its error refuses the action with [ErrConflict] and removes the place.
	// Later actions of the same keys wait for it.
	Admit func(context.Context) error
	// Guard runs before every attempt. Its context ends like that of Run, except that the
	// Timeout does not apply: it begins after Guard. An error of Guard ends the action as
	// [Skipped].
	Guard func(context.Context) error
	// Settle is called exactly once with the outcome of an accepted action, before
	// later actions of its keys start and before the ticket is done. Update the
	// object's state here. A superseded or pre-empted action must leave the state
	// to its successor. Its context is [Config.Base]. It runs in a goroutine of the
	// queue, or in the caller's if a call such as [Ticket.Cancel] ends an action
	// that waits. A panic of Settle becomes the outcome.
	Settle func(context.Context, Outcome, error)

	// Coalesce joins requests that one run answers, such as "look at vm1 again". It needs
	// an ID. A submit with the same ID returns the ticket of the action that waits or is
	// delayed. Once that action has started, a submit returns a new ticket for an action
	// behind it. So one whole run follows after every submit, and at most one action waits.
	// The ticket and its Run are those of the first submit. A submit with a shorter Delay
	// brings the action forward. Cancel cancels for all submitters. Coalesce cannot be
	// combined with Admit.
	Coalesce bool
	// Delay is the time from the acceptance until the action enters its lanes, at their
	// ends. Until then it is [Delayed]: it counts under MaxPerKey and MaxWaiting and
	// holds up no other action, and a drain waits for it. 0: no delay. Delay cannot be
	// combined with Admit or Preempt.
	Delay time.Duration

	// Class is the path of the class whose limits apply: one that [Config.Classes] or
	// [Queuer.SetLimit] has, by itself or through a pattern. Empty: the root.
	Class string
	// Preempt ends actions in front of this one. It is meant for deletes.
	Preempt Preempt
	// Wait makes the submitter wait for room instead of failing with [ErrFull]. Submitters
	// that wait for one key get room in the order of their calls, before other submits, and
	// call Admit in this order, one after the other. Wait cannot be combined with ID.
	Wait bool

	// Timeout limits one attempt. 0: no limit. The queue waits for an action that
	// ignores its context.
	Timeout time.Duration
	// QueueTimeout limits the time from acceptance, or from the end of Delay, to the
	// first start. 0: no limit. An action that exceeds it ends as [Expired] and does not
	// run.
	QueueTimeout time.Duration
	// Retry repeats a failed attempt. The zero value means one attempt.
	Retry Retry
}

// Retry configures repeated attempts. Between two attempts the action keeps its
// places, so later actions of its keys do not overtake it, and gives back its share
// of the limits, unless Keep is set. After the back-off it waits for a new turn. Errors
// and time-outs are retried; panics, and actions that were ended from outside, are not.
type Retry struct {
	// Attempts is the maximum number of attempts. 0 and 1: one attempt.
	Attempts int
	// Backoff returns the pause after an attempt, given the number of attempts begun
	// and the error of the last one; see [Exponential]. It runs in the attempt, without
	// a lock. 0 and less: no pause. nil: no pauses.
	Backoff func(attempts int, err error) time.Duration
	// If reports whether an error is worth another attempt. nil: every error is.
	If func(error) bool
	// Keep: the action keeps its share of the limits until it has ended. In the back-off it
	// counts under them like a running one, and its next attempt needs no turn: it waits
	// only while its class is paused. Set it if actions with a share of the same limits may wait for
	// another resource that this action holds until it has ended. Default: the action
	// releases its share.
	Keep bool
}

// Exponential returns a [Retry].Backoff: pauses that double from first up to longest.
// Each is up to a quarter shorter, at random, so that actions which failed together do
// not all return at the same moment. A first of 0 or less means no pauses. A longest
// that is shorter than first counts as first.
func Exponential(first, longest time.Duration) func(attempts int, err error) time.Duration {
	return func(attempts int, _ error) time.Duration {
		pause := max(first, 0)
		for n := 1; n < attempts && pause > 0 && pause < longest; n++ {
			pause = min(longest-pause, pause) + pause // no overflow
		}
		return pause - rand.N(pause/4+1)
	}
}

// Preempt is what an action does to the actions in front of it. A pre-empting
// action is accepted regardless of MaxPerKey and MaxWaiting. Pre-empting actions
// keep their own order. They wait in a halted lane like all others.
type Preempt uint8

const (
	// NoPreempt: the action waits for its turn.
	NoPreempt Preempt = iota
	// PreemptQueued ends the waiting actions in front, and the delayed actions of the
	// keys, as [Superseded], except pre-empting ones. The action runs after the running
	// one.
	PreemptQueued
	// PreemptRunning also cancels the running action, even if that one pre-empts
	// itself. The action still waits until the running one has returned.
	PreemptRunning
)

// check returns what is wrong with a submit regardless of the state of the queue.
// It panics for a key that no map accepts, before the queue is locked.
func (t *Ticket[K]) check() error {
	if len(t.places) == 0 {
		return &InvalidError{"keys", "none"}
	}
	for i, p := range t.places {
		if p.key != p.key {
			return &InvalidError{"keys", "a key that is not equal to itself"}
		}
		if slices.ContainsFunc(t.places[:i], func(o place[K]) bool { return o.key == p.key }) {
			return &InvalidError{"keys", "the same key twice"}
		}
	}
	act := t.act
	switch {
	case act == nil:
		return &InvalidError{"Action", "nil"}
	case act.Run == nil:
		return &InvalidError{"Run", "nil"}
	case act.Preempt > PreemptRunning:
		return &InvalidError{"Preempt", "unknown"}
	case act.Wait && act.ID != "":
		return &InvalidError{"Wait", "combined with ID"}
	case act.Coalesce && act.ID == "":
		return &InvalidError{"Coalesce", "without an ID"}
	case act.Coalesce && act.Admit != nil:
		return &InvalidError{"Coalesce", "combined with Admit"}
	case act.Delay < 0:
		return &InvalidError{"Delay", "negative"}
	case act.Delay > 0 && act.Admit != nil:
		return &InvalidError{"Delay", "combined with Admit"}
	case act.Delay > 0 && act.Preempt != NoPreempt:
		return &InvalidError{"Delay", "combined with Preempt"}
	case act.Timeout < 0:
		return &InvalidError{"Timeout", "negative"}
	case act.QueueTimeout < 0:
		return &InvalidError{"QueueTimeout", "negative"}
	case act.Retry.Attempts < 0:
		return &InvalidError{"Retry", "negative number of attempts"}
	}
	return nil
}
