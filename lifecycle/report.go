package lifecycle

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Verdict is what a report was.
type Verdict uint8

const (
	Applied  = Verdict(decide.Applied)  // it moved the object
	Repeated = Verdict(decide.Repeated) // it was accepted before, or the table accepts and ignores it
	Stale    = Verdict(decide.Stale)    // it is about an operation that is over
	Refused  = Verdict(decide.Refused)  // the table, or the operation, does not allow it
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case Applied:
		return "applied"
	case Repeated:
		return "repeated"
	case Stale:
		return "stale"
	case Refused:
		return "refused"
	}
	return "verdict?"
}

// Verdicts counts the reports that a [Manager] has decided.
type Verdicts struct{ Applied, Repeated, Stale, Refused uint64 }

// Verdicts returns the counts since the manager was made.
func (m *Manager[S, E, T]) Verdicts() Verdicts {
	return Verdicts{
		Applied: m.verdicts[Applied].Load(), Repeated: m.verdicts[Repeated].Load(),
		Stale: m.verdicts[Stale].Load(), Refused: m.verdicts[Refused].Load(),
	}
}

// Report is what a peer says about an operation: event e happened. It goes on
// with the operation and never begins one. Only an applied report changes
// anything; every report is counted and told to the observer, and a report may
// be sent as often as one likes.
//
//   - Applied: the operation is the object's, and the table lets the actor.
//   - Repeated: the table does not, because the report was accepted before, in
//     this operation; or it does, and ignores the event.
//   - Stale: the operation is over; another one has begun since.
//   - Refused: everything else.
//
// Reports are decided on the object as it is: if somebody moves it meanwhile,
// Report reads again and decides again, at most 16 times, then it returns
// [ErrConflict].
//
// An error means that nothing could be decided: [ErrInvalid] for the id or the
// reason, [fsm.ErrUnknownEvent], [ErrConflict], [ErrForeign], [ErrUnknownOutcome], or
// the store's. The verdict is then Refused.
func (m *Manager[S, E, T]) Report(ctx context.Context, id string, operation OpID, e E, actor fsm.Actor, reason string) (Verdict, error) {
	c := m.reporting(id, operation, e, actor, reason)
	if err := c.report(ctx); err != nil {
		return Refused, c.fail(err)
	}
	d := c.d
	m.verdicts[d.Verdict].Add(1)
	if tell := m.observer.Reported; tell != nil {
		tell(Reported{
			Key: m.key(id), Operation: operation, Present: c.before.Operation, State: c.before.State,
			Event: fmt.Sprint(e), Actor: actor, Reason: reason, Verdict: Verdict(d.Verdict), Err: public(d.Err),
		})
	}
	c.done()
	return Verdict(d.Verdict), nil
}

func (m *Manager[S, E, T]) reporting(id string, operation OpID, e E, actor fsm.Actor, reason string) *call[S, E, T] {
	c := m.call("report", id, actor)
	c.event, c.reason = e, reason
	c.q.Verb, c.q.Event, c.q.Operation = decide.Report, m.machine.EventIndex(e), uint64(operation)
	return c
}

// report reads, decides and commits until the object holds still.
func (c *call[S, E, T]) report(ctx context.Context) error {
	if err := c.check(); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx)
		_, conflict := c.lost(err)
		switch {
		case conflict && attempt < maxAttempts:
			continue
		case c.d.Err == nil:
			return err
		case c.d.Verdict == decide.Refused && !c.q.Repeats:
			// Only a report that the table refuses is asked whether it was
			// accepted before: accepted reports, the usual case, pay nothing.
			if c.q.Repeats, err = c.repeats(ctx); err != nil {
				return err
			}
			if c.q.Repeats {
				continue
			}
			// A guard that was left alone by its caller has decided nothing.
			if ctx.Err() != nil {
				return Ended(ctx)
			}
		}
		return nil
	}
}

// repeats reports whether this event by this actor was accepted in this
// operation. The record knows the last change; the history, where the store
// keeps one, those before.
func (c *call[S, E, T]) repeats(ctx context.Context) (bool, error) {
	q := &c.q
	if c.before.Operation != OpID(q.Operation) {
		return false, nil
	}
	event := c.m.table.Events[q.Event]
	if c.before.Event == event && c.before.Actor == c.actor {
		return true, nil
	}
	historian, ok := c.m.historian()
	if !ok {
		return false, nil
	}
	// The rows of an operation are together, and those of the present one last.
	const page = 100
	for end := c.before.Sequence; end > 0; end -= min(end, page) {
		rows, err := historian.History(ctx, c.before.Key, end-min(end, page), page)
		if err != nil {
			return false, err
		}
		for _, row := range slices.Backward(rows) {
			switch {
			case row.Sequence > end:
			case row.Operation < c.before.Operation:
				return false, nil
			case row.Event == event && row.Actor == c.actor:
				return true, nil
			}
		}
		if len(rows) == 0 || rows[0].Sequence > end-min(end, page)+1 {
			return false, nil // older ones are not kept
		}
	}
	return false, nil
}
