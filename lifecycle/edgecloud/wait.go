package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

var (
	// ErrNoAnswer: the CRM has not reported that it has started. The operation has
	// failed. [lifecycle.HTTPStatus] is 504.
	ErrNoAnswer error = &statusError{"edgecloud: no answer", http.StatusGatewayTimeout}
	// ErrStillWorking: the time is over, but the CRM has started. The operation
	// continues; wait again later. [lifecycle.HTTPStatus] is 409, as for
	// [lifecycle.ErrBusy], the error of other requests meanwhile.
	ErrStillWorking error = &statusError{"edgecloud: still working", http.StatusConflict}
)

// statusError is a sentinel with a status code.
type statusError struct {
	text string
	code int
}

func (e *statusError) Error() string   { return e.text }
func (e *statusError) HTTPStatus() int { return e.code }

// Wait waits for the outcome of the operation that a request has started, given as the
// record that the request returned. It undoes a failed operation, as the document's
// controller does. With KeepError in the call, or in that of the request, it does not.
// With IgnoreCRMErrors it records the operation as done.
//
// If Patience ends first, the result depends on the CRM's reports. Without any, it is
// [ErrNoAnswer]: the operation fails and is undone. If the CRM has started, it is
// [ErrStillWorking], and nothing is changed.
//
// The record is the object as the operation has left it, the zero Record if it was
// removed. A request with IgnoreCRM has ended when it returns, and Wait returns at once.
// Errors: [FailedError], also if another caller has undone the operation;
// ErrStillWorking; [lifecycle.ErrStale] if the operation was taken away, or the history
// does not have its end any more; [lifecycle.ErrInvalid] for a record that no request
// returned; and the context's.
func (in *Instances[T]) Wait(ctx context.Context, begun Record[T], call *Call) (Record[T], error) {
	if begun.Operation == 0 || begun.ID == "" || !inTransition(begun.State) {
		if call.has(IgnoreCRM) || begun.Event == lifecycle.Overridden {
			return begun, nil // there is nothing to wait for
		}
		return Record[T]{}, in.refused("wait", begun.ID, "", fmt.Errorf("%w: no operation of %q is under way", lifecycle.ErrInvalid, begun.ID))
	}
	patient, stop := context.WithTimeoutCause(ctx, patience(call, begun.State), errImpatient)
	defer stop()
	rec, err := in.m.Await(patient, begun.ID, func(r Record[T]) bool {
		return r.Operation != begun.Operation || !inTransition(r.State)
	})
	if err != nil {
		if ctx.Err() != nil || !errors.Is(err, errImpatient) {
			return rec, err
		}
		if rec, err = in.silent(ctx, &begun); err != nil {
			return rec, err
		}
	}
	if rec, err = in.ended(ctx, &begun, rec); err != nil {
		return rec, err
	}
	switch rec.State {
	case CreateError, UpdateError, DeleteError:
		return in.failed(ctx, rec, call)
	}
	return rec, nil
}

var errImpatient = errors.New("edgecloud: out of patience")

func patience(call *Call, s State) time.Duration {
	switch {
	case call != nil && call.Patience > 0:
		return call.Patience
	case s == CreateRequested || s == Creating:
		return CreateTimeout
	case s == UpdateRequested || s == Updating:
		return UpdateTimeout
	}
	return DeleteTimeout
}

// silent runs when the patience ends: the operation fails if the CRM has not started. A
// concurrent report of the CRM wins or loses by the compare-and-set.
func (in *Instances[T]) silent(ctx context.Context, begun *Record[T]) (Record[T], error) {
	rec, err := in.m.Get(ctx, begun.ID)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return Record[T]{ID: begun.ID}, nil
	case err != nil || rec.Operation != begun.Operation:
		return rec, err
	}
	switch rec.State {
	case Creating, Updating, Deleting:
		return rec, fmt.Errorf("%w: %s %q is %s", ErrStillWorking, in.machine.Name(), rec.ID, rec.State)
	case CreateRequested, UpdateRequested, DeleteRequested, DeletePrepare:
		_, err = in.m.Fire(ctx, rec.ID, TimedOut, fsm.Sweeper, &lifecycle.Change[T]{
			Operation: begun.Operation, Reason: noAnswer,
		})
		if errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrStale) || errors.Is(err, fsm.ErrNotAllowed) {
			return in.silent(ctx, begun) // the CRM or another caller was faster
		}
		if err != nil {
			return rec, err
		}
		return in.m.Get(ctx, rec.ID)
	}
	return rec, nil
}

// requested reports whether the CRM has an order and has not reported its start.
func requested(s State) bool {
	return s == CreateRequested || s == UpdateRequested || s == DeleteRequested
}

// ended returns the object as the operation has left it. If another operation has
// started since, or the object was removed, ended reads that from the history.
func (in *Instances[T]) ended(ctx context.Context, begun *Record[T], now Record[T]) (Record[T], error) {
	if now.Operation == begun.Operation && now.Revision != "" && now.Event != string(Undo) {
		return now, nil
	}
	gone := func(why error) (Record[T], error) {
		return now, in.refused("wait", begun.ID, "", errors.Join(lifecycle.ErrStale, why))
	}
	var last, failed lifecycle.HistoryRow
	for after := begun.Sequence; ; {
		rows, err := in.m.History(ctx, begun.ID, after, 0)
		if err != nil {
			return gone(err)
		}
		for _, row := range rows {
			if row.Operation == begun.Operation {
				last = row
				if isError(State(row.To)) {
					failed = row
				}
			}
			after = row.Sequence
		}
		if len(rows) < lifecycle.MaxPage || rows[len(rows)-1].Operation > begun.Operation {
			break
		}
	}
	s := State(last.To)
	if last.To == "" || inTransition(s) {
		return gone(nil)
	}
	undone := func() *FailedError {
		e := &FailedError{Key: in.key(begun.ID), Operation: begun.Operation, State: State(failed.To), Undone: true}
		if failed.Reason != "" {
			e.Errors = strings.Split(failed.Reason, "\n")
		}
		e.silenced(&failed)
		return e
	}
	if s == NotPresent && begun.Target != string(NotPresent) {
		return now, undone() // the operation failed, and another caller has undone it
	}
	if now.Operation == begun.Operation && now.Revision != "" {
		return now, undone()
	}
	rec := *begun
	rec.Status, rec.Sequence, rec.Revision = in.machine.At(s), last.Sequence, last.Revision
	rec.Event, rec.Actor, rec.Reason, rec.ChangedAt, rec.Deadline = last.Event, last.Actor, last.Reason, last.At, time.Time{}
	switch last.Event {
	case string(Undo):
		return rec, undone()
	case string(PrepareFailed):
		return rec, &FailedError{Key: in.key(begun.ID), Operation: begun.Operation, State: State(last.From), Undone: true}
	}
	if s == NotPresent {
		return Record[T]{ID: begun.ID}, nil
	}
	return rec, nil
}

// failed undoes, keeps or ignores the failure of an operation.
func (in *Instances[T]) failed(ctx context.Context, rec Record[T], call *Call) (Record[T], error) {
	failed := in.failure(ctx, &rec)
	noted, err := in.noted(ctx, &rec) // by the request
	if err != nil {
		return rec, errors.Join(failed, err)
	}
	switch {
	case call.has(IgnoreCRMErrors), !call.keeps() && noted.State == wishIgnore:
		reason := IgnoreCRMErrors.String()
		if call.has(IgnoreCRMErrors) {
			reason = overriding(call)
		}
		after, err := in.takenForDone(ctx, &rec, reason, nil)
		if err != nil {
			return rec, errors.Join(failed, err)
		}
		return after, nil
	case noted.State == wishKeep:
		return rec, failed
	case call.keeps():
		err := in.keep(ctx, &rec)
		if errors.Is(err, errUndone) {
			failed.Undone = true
			now, err := in.m.Get(ctx, rec.ID)
			if errors.Is(err, lifecycle.ErrNotFound) {
				err = nil
			}
			return now, errors.Join(failed, err)
		}
		if err != nil {
			return rec, errors.Join(failed, err)
		}
		return rec, failed
	}
	after, err := in.undoUnkept(ctx, &rec, failed)
	if errors.Is(err, errKept) {
		return rec, failed // another caller has written that wish meanwhile
	}
	if err != nil {
		return rec, errors.Join(failed, err)
	}
	failed.Undone = true
	return after, failed
}

// failure returns the error of an object in an error state.
func (in *Instances[T]) failure(ctx context.Context, rec *Record[T]) *FailedError {
	failed := &FailedError{Key: in.key(rec.ID), Operation: rec.Operation, State: rec.State, Errors: Errors(*rec)}
	if rec.Event == string(TimedOut) {
		failed.TimedOut, failed.Silent = true, rec.Reason == noAnswer
		// If the sweeper has moved it, Silent depends on the state before.
		if rows, err := in.m.History(ctx, rec.ID, rec.Sequence-1, 1); err == nil && len(rows) == 1 {
			failed.silenced(&rows[0])
		}
	}
	return failed
}

// silenced sets TimedOut and Silent by the history row of the failure.
func (e *FailedError) silenced(row *lifecycle.HistoryRow) {
	if row.Event != string(TimedOut) {
		return
	}
	e.TimedOut, e.Errors = true, []string{notFinished}
	if e.Silent = requested(State(row.From)); e.Silent {
		e.Errors = []string{noAnswer}
	}
}

// takenForDone moves an object to the target state of its failed operation.
func (in *Instances[T]) takenForDone(ctx context.Context, rec *Record[T], reason string, needs []lifecycle.Precondition) (Record[T], error) {
	to := Ready
	if rec.State == DeleteError {
		to = NotPresent
	}
	return in.m.Override(ctx, rec.ID, to, User, reason, &lifecycle.Change[T]{Operation: rec.Operation, Require: needs})
}

func isError(s State) bool { return s == CreateError || s == UpdateError || s == DeleteError }
