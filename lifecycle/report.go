package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
)

// Verdict is the result of a report.
type Verdict uint8

// The verdicts on a report.
const (
	// Applied: the report moved the object.
	Applied Verdict = iota
	// Repeated: the report was accepted before, or the table accepts and ignores it.
	Repeated
	// Stale: the report is about an operation that is over.
	Stale
	// Refused: the table or the operation does not permit the report.
	Refused
)

// The conversion Verdict(d.Verdict) relies on the same order in both packages.
var _ = [1]struct{}{}[int(Refused)-int(decide.Refused)]

// String returns the verdict in lower case.
func (v Verdict) String() string {
	if v <= Refused {
		return [...]string{"applied", "repeated", "stale", "refused"}[v]
	}
	return "verdict?"
}

// Report takes a message of a peer about an operation: event e has happened. A
// report continues the operation and never starts one. Only an applied report
// changes anything; the observer receives every report, and a report may be sent
// any number of times.
//
//   - Applied: the operation is the object's last one, and the table permits the event: also
//     in the state at rest to which the operation has led.
//   - Repeated: the report was accepted before in this operation, and the object is at rest
//     or the table does not permit the event; or the table ignores the event.
//   - Stale: the operation is over, and another one has started since; or
//     [Change].Admission is the token of another operation with this number.
//   - Refused: everything else.
//
// A report is about an operation, not about a state: if another writer moves the
// object meanwhile, Report reads and decides again, at most 16 times, and then
// returns [ErrConflict].
//
// The change is what the report does besides moving the object, as in Fire; its
// Operation is not used. Nil is nothing.
//
// An error means that no verdict was reached: [ErrInvalid] for the id or the change,
// [fsm.ErrUnknownEvent], [fsm.ErrWrongActor] for the sweeper, [ErrConflict], [ErrForeign],
// [ErrUnknownOutcome], those of Fire about the change, or the store's. The verdict is then
// Refused. A refusal by guards is an error, and not a verdict, if the reason of a guard
// matches [ErrUnavailable], [context.DeadlineExceeded] or [context.Canceled]: the guard has
// met an outage, and the peer sends the report again. The error matches the reason, and not
// [fsm.ErrGuard].
func (m *Manager[S, E, T]) Report(ctx context.Context, id string, operation OpID, e E, actor fsm.Actor, change *Change[T]) (Verdict, error) {
	r := m.reporting(id, operation, e, actor, change)
	if _, err := apply(ctx, []*request{r}, nil); err != nil {
		return Refused, r.fail(ctx, err)
	}
	verdict := Verdict(r.decision.Verdict)
	if reported := m.core.observer.Reported; reported != nil {
		reported(ctx, Reported{
			Key: r.key, Operation: operation, Present: r.before.Operation, State: r.before.State,
			Event: r.event, Actor: actor, Reason: r.Reason, Verdict: verdict, Err: r.decision.Err,
		})
	}
	return verdict, nil
}

func (m *Manager[S, E, T]) reporting(id string, operation OpID, e E, actor fsm.Actor, change *Change[T]) *request {
	r := m.request(decide.Report, "report", id, &e, actor, change)
	r.ask.Operation, r.Operation, r.anyState = uint64(operation), 0, true
	return r
}

// decideReport decides a report. Of an object at rest it is first compared with the reports
// before it. In any other state only a report that the table refuses is: an accepted
// report, the usual case, reads no history.
func (r *request) decideReport(ctx context.Context) (err error) {
	ask, resting := &r.ask, r.core.resting(&r.before)
	if resting {
		if ask.Repeats, err = r.reportedBefore(ctx); err != nil {
			return err
		}
	}
	if err = r.decideOnce(ctx); err != nil || r.decision.Verdict != decide.Refused {
		return err
	}
	if !resting && r.ending == nil {
		if ask.Repeats, err = r.reportedBefore(ctx); err != nil {
			return err
		}
		if ask.Repeats {
			return r.decideOnce(ctx)
		}
	}
	if ctx.Err() != nil { // the refusal may be a guard's whose context has ended
		return Ended(ctx)
	}
	return undecided(r.decision.Err)
}

// undecided returns the reason of a refusal by guards, if they have met an outage: the
// reason of a guard matches [ErrUnavailable] or is that of a context that has ended.
// Otherwise it returns nil.
func undecided(err error) error {
	refused, ok := err.(*fsm.TransitionError)
	outages := []error{ErrUnavailable, context.DeadlineExceeded, context.Canceled}
	if !ok || refused.Err != fsm.ErrGuard || !slices.ContainsFunc(outages, func(e error) bool { return errors.Is(refused.Reason, e) }) {
		return nil
	}
	return &guardError{refused.Guard, refused.Reason}
}

// guardError is the reason of a guard that has met an outage. It does not match
// [fsm.ErrGuard], because the guard has not refused.
type guardError struct {
	guard  string
	reason error
}

func (e *guardError) Error() string {
	return fmt.Sprintf("guard %q cannot decide: %v", e.guard, e.reason)
}
func (e *guardError) Unwrap() error { return e.reason }

// reportedBefore reports whether this event by this actor was accepted before in this
// operation. The record has the last change; the history, if the store keeps one,
// has those before.
func (r *request) reportedBefore(ctx context.Context) (bool, error) {
	before := &r.before
	if before.Operation != OpID(r.ask.Operation) {
		return false, nil
	}
	event := r.core.table.Events[r.ask.Event]
	if before.Event == event && before.Actor == r.ask.Actor {
		return true, nil
	}
	historian, ok := r.core.historian()
	if !ok {
		return false, nil
	}
	// The rows of one operation are together, and those of the present one are the
	// last: the pages are read backwards until an earlier operation.
	const page = 100
	for end := before.Sequence; end > 0; end -= min(end, page) {
		start := end - min(end, page)
		rows, err := historian.History(ctx, before.Key, start, page)
		if err != nil {
			return false, err
		}
		for _, row := range slices.Backward(rows) {
			switch {
			case row.Sequence > end: // written since the record was read
			case row.Operation < before.Operation:
				return false, nil
			case row.Event == event && row.Actor == r.ask.Actor:
				return true, nil
			}
		}
		if len(rows) == 0 || rows[0].Sequence > start+1 {
			return false, nil // the store does not keep older rows
		}
	}
	return false, nil
}
