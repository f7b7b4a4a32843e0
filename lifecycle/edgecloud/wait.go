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
	// ErrNoAnswer: the CRM did not even say that it has begun. The operation has
	// failed. [lifecycle.HTTPStatus] is 504.
	ErrNoAnswer error = &statusError{"edgecloud: no answer", http.StatusGatewayTimeout}
	// ErrStillWorking: time is up, but the CRM has begun. The operation goes on;
	// look again later. It is 409, as [lifecycle.ErrBusy] is, which whoever asks
	// for something else meanwhile gets.
	ErrStillWorking error = &statusError{"edgecloud: still working", http.StatusConflict}
)

// statusError is a sentinel with a status code.
type statusError struct {
	text string
	code int
}

func (e *statusError) Error() string   { return e.text }
func (e *statusError) HTTPStatus() int { return e.code }

// Wait waits for the outcome of the operation that a request has begun, given as
// the record that the request returned. What failed is undone, as the document's
// controller does, unless the call, or that of the request, says KeepError, or
// IgnoreCRMErrors, with which the object is as if the operation had been done.
//
// If Patience ends first, it depends on what the CRM has said. Nothing at all is
// [ErrNoAnswer]: the operation fails, and is undone. That it has begun is
// [ErrStillWorking]: nothing is changed, because the CRM is busy with it.
//
// The record is the object as the operation has left it, the zero Record if it is
// gone. A request with IgnoreCRM has ended when it returns, and waiting for it does
// nothing. Errors: [FailedError], also if somebody else has undone it;
// ErrStillWorking; [lifecycle.ErrStale] if the operation was taken away, or the
// store's history does not tell any more how it ended; [lifecycle.ErrInvalid] for a
// record that is no request's; and the context's.
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

// silent is the end of patience: the operation fails if the CRM has not begun.
// What the CRM says in the same moment wins or loses by the compare-and-set.
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
		return rec, fmt.Errorf("%w: %s %q is %s", ErrStillWorking, in.m.Machine().Table().Name, rec.ID, rec.State)
	case CreateRequested, UpdateRequested, DeleteRequested, DeletePrepare:
		_, err = in.m.Fire(ctx, rec.ID, TimedOut, fsm.Sweeper, &lifecycle.Change[T]{
			Operation: begun.Operation, Reason: noAnswer,
		})
		if errors.Is(err, lifecycle.ErrConflict) || errors.Is(err, lifecycle.ErrStale) || errors.Is(err, fsm.ErrNotAllowed) {
			return in.silent(ctx, begun) // the CRM, or somebody else, has been faster
		}
		if err != nil {
			return rec, err
		}
		return in.m.Get(ctx, rec.ID)
	}
	return rec, nil
}

// requested reports whether a CRM was asked and has not said that it has begun.
func requested(s State) bool {
	return s == CreateRequested || s == UpdateRequested || s == DeleteRequested
}

// ended returns the object as the operation has left it. If another operation has
// begun since, or the object is gone, the history tells.
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
		return now, undone() // it failed, and somebody has undone it
	}
	if now.Operation == begun.Operation && now.Revision != "" {
		return now, undone()
	}
	rec := *begun
	rec.Status, rec.Sequence, rec.Revision = in.m.Machine().At(s), last.Sequence, last.Revision
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

// failed does what is to be done about an operation that failed.
func (in *Instances[T]) failed(ctx context.Context, rec Record[T], call *Call) (Record[T], error) {
	failed := in.failure(ctx, &rec)
	noted, err := in.noted(ctx, &rec) // by who has asked for it
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
		return rec, failed // somebody has said so meanwhile
	}
	if err != nil {
		return rec, errors.Join(failed, err)
	}
	failed.Undone = true
	return after, failed
}

// failure tells of an object in an error state.
func (in *Instances[T]) failure(ctx context.Context, rec *Record[T]) *FailedError {
	failed := &FailedError{Key: in.key(rec.ID), Operation: rec.Operation, State: rec.State, Errors: Errors(*rec)}
	if rec.Event == string(TimedOut) {
		failed.TimedOut, failed.Silent = true, rec.Reason == noAnswer
		// The sweeper has been there: it depends on where it found the object.
		if rows, err := in.m.History(ctx, rec.ID, rec.Sequence-1, 1); err == nil && len(rows) == 1 {
			failed.silenced(&rows[0])
		}
	}
	return failed
}

// silenced notes whether the CRM was silent, by the row that says how the
// operation failed.
func (e *FailedError) silenced(row *lifecycle.HistoryRow) {
	if row.Event != string(TimedOut) {
		return
	}
	e.TimedOut, e.Errors = true, []string{notFinished}
	if e.Silent = requested(State(row.From)); e.Silent {
		e.Errors = []string{noAnswer}
	}
}

// takenForDone puts an object where its failed operation was to lead.
func (in *Instances[T]) takenForDone(ctx context.Context, rec *Record[T], reason string, needs []lifecycle.Precondition) (Record[T], error) {
	to := Ready
	if rec.State == DeleteError {
		to = NotPresent
	}
	return in.m.Override(ctx, rec.ID, to, User, reason, &lifecycle.Change[T]{Operation: rec.Operation, Require: needs})
}

func isError(s State) bool { return s == CreateError || s == UpdateError || s == DeleteError }
