package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// Wait waits for the outcome of the operation that a request has started, given as the
// record that the request returned. It undoes a failed operation, as the document's
// controller does, unless the request had KeepError.
//
// A patience of 0 is [CreateTimeout], [UpdateTimeout] or [DeleteTimeout]. If the
// patience ends first, the result depends on the CRM's reports. Without any, it is
// [ErrNoAnswer]: the operation fails and is undone. If the CRM has started, it is
// [ErrStillWorking], and nothing is changed.
//
// The record is the object as the operation has left it, with only the ID if it was
// removed. Errors: [FailedError], also if another caller has undone the operation;
// ErrStillWorking; [lifecycle.ErrStale] if the operation was superseded, or the history
// does not have its end any more; [lifecycle.ErrInvalid] for a record that no request
// returned; the store's, after which the caller waits again; and the context's.
func (in *Instances[T]) Wait(ctx context.Context, begun Record[T], patience time.Duration) (Record[T], error) {
	if begun.Operation == 0 || begun.ID == "" || !slices.Contains(ordered, begun.State) {
		err := fmt.Errorf("%w: the record of %q has no operation of a CRM", lifecycle.ErrInvalid, begun.ID)
		return Record[T]{}, refused("wait", in.key(begun.ID), "", User, err)
	}
	if patience <= 0 {
		patience = operations[verb(begun.State)].timeout
	}
	patient, stop := context.WithTimeoutCause(ctx, patience, errImpatient)
	defer stop()
	rec, err := lifecycle.Await(patient, in.m, begun.ID, func(r Record[T]) bool {
		return r.Operation != begun.Operation || !inTransition(r.State)
	})
	if ctx.Err() == nil && errors.Is(err, errImpatient) {
		rec, err = in.timeOut(ctx, &begun)
	}
	switch {
	case err != nil:
		return rec, err
	case rec.Operation != begun.Operation || rec.Event == string(Undo):
		return in.past(ctx, &begun, rec)
	case isError(rec.State):
		after, err := in.failed(ctx, rec)
		if moved(err) && !errors.Is(err, ErrNeverCreated) { // another caller has undone it
			return in.Wait(ctx, begun, patience)
		}
		return after, err
	}
	return rec, nil
}

var errImpatient = errors.New("edgecloud: the operation has not ended in time")

// timeOut runs when the patience ends: the operation fails if the CRM has not started.
// A concurrent report of the CRM wins or loses by the compare-and-set.
func (in *Instances[T]) timeOut(ctx context.Context, begun *Record[T]) (Record[T], error) {
	rec, err := in.m.Get(ctx, begun.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return Record[T]{ID: begun.ID}, nil
	case err != nil || rec.Operation != begun.Operation || !inTransition(rec.State):
		return rec, err
	case rec.State == Creating || rec.State == Updating || rec.State == Deleting:
		return rec, fmt.Errorf("%w: %s %q is %s", ErrStillWorking, in.m.Machine().Name(), rec.ID, rec.State)
	}
	rec, err = in.m.Fire(ctx, rec.ID, TimedOut, Observer, &lifecycle.Change[T]{
		Operation: begun.Operation, Reason: noAnswer,
	})
	if err != nil && moved(err) {
		return in.timeOut(ctx, begun)
	}
	return rec, err
}

// failed undoes or keeps the failure of an operation.
func (in *Instances[T]) failed(ctx context.Context, rec Record[T]) (Record[T], error) {
	failed := in.failure(&rec)
	after, kept, err := in.undoFailed(ctx, &rec)
	if err != nil {
		return rec, errors.Join(failed, err)
	}
	failed.Undone = !kept
	return after, failed
}

// past returns the outcome of an operation from the history: the object was removed, or
// another operation has started since.
func (in *Instances[T]) past(ctx context.Context, begun *Record[T], now Record[T]) (Record[T], error) {
	// The rows of an operation are few, and follow each other.
	rows, err := in.m.History(ctx, begun.ID, begun.Sequence, lifecycle.MaxPage)
	var last, failure lifecycle.HistoryRow
	for _, row := range rows {
		if row.Operation != begun.Operation {
			continue
		}
		if last = row; isError(State(row.To)) {
			failure = row
		}
	}
	end := State(last.To)
	switch {
	case errors.Is(err, errors.ErrUnsupported): // the store keeps no history
		return now, errors.Join(lifecycle.ErrStale, err)
	case err != nil:
		return now, err
	case last.To == "" || inTransition(end), failure.To == "" && last.Event == string(Undo): // the history is cut
		return now, refused("wait", in.key(begun.ID), "", User, lifecycle.ErrStale)
	case failure.To != "":
		rec := in.ended(begun, &failure)
		failed := in.failure(&rec)
		failed.Undone = !isError(end)
		return now, failed
	case end == NotPresent:
		return Record[T]{ID: begun.ID}, nil
	}
	return in.ended(begun, &last), nil
}

// ended returns the record of an operation as a history row at rest has left it.
func (in *Instances[T]) ended(begun *Record[T], row *lifecycle.HistoryRow) Record[T] {
	rec := *begun
	rec.Status, rec.Sequence, rec.Revision = in.m.Machine().At(State(row.To)), row.Sequence, row.Revision
	rec.Event, rec.Actor, rec.Reason, rec.ChangedAt, rec.Deadline = row.Event, row.Actor, row.Reason, row.At, time.Time{}
	return rec
}
