package edgecloud

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// undoLeft undoes operations that failed and whose caller has not undone them: it has
// died, or does not wait.
func (in *Instances[T]) undoLeft(ctx context.Context) ([]lifecycle.SweepResult, error) {
	var cases []lifecycle.SweepResult
	left := lifecycle.Select[State]{States: []State{CreateError, UpdateError, DeleteError}, UnchangedFor: in.c.undoAfter}
	for rec, err := range in.m.All(ctx, left) {
		if err != nil {
			return cases, err
		}
		noted, err := in.noted(ctx, &rec)
		if err != nil {
			return cases, err
		}
		c := lifecycle.SweepResult{
			Key: in.key(rec.ID), Resolution: lifecycle.Moved, From: string(rec.State), Operation: rec.Operation,
			Event: string(Undo), Actor: Controller,
		}
		var after Record[T]
		switch noted.State {
		case wishKeep:
			continue
		case wishIgnore:
			c.Event, c.Actor = IgnoreCRMErrors.String(), User
			after, err = in.takenForDone(ctx, &rec, IgnoreCRMErrors.String(), in.wants(&rec, wishIgnore))
		default:
			after, err = in.undoUnkept(ctx, &rec, in.failure(ctx, &rec))
		}
		switch {
		case errors.Is(err, errKept):
			continue
		case err == nil:
			c.To = string(after.State)
			if c.To == "" {
				c.To = string(NotPresent)
			}
		case errors.Is(err, lifecycle.ErrUnknownOutcome):
			return cases, err
		case errors.Is(err, ErrNeverMade):
			c.Resolution, c.Err = lifecycle.NotMoved, err
		case errors.Is(err, lifecycle.ErrConflict), errors.Is(err, lifecycle.ErrStale), errors.Is(err, lifecycle.ErrNotFound),
			errors.Is(err, lifecycle.ErrBusy), errors.Is(err, lifecycle.ErrPrecondition), errors.Is(err, fsm.ErrNotAllowed):
			c.Resolution = lifecycle.Overtaken
		default:
			return cases, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

var errUndone = errors.New("edgecloud: the operation is undone already")

var errKept = errors.New("edgecloud: the failure is kept")

// undoUnkept is Undo unless the failure is to be kept, which is a condition of the
// commit. The bad schedule without it: the sweep reads no wish; a caller that waits
// writes one and returns; the sweep undoes a failure that was reported as kept.
func (in *Instances[T]) undoUnkept(ctx context.Context, rec *Record[T], why error) (Record[T], error) {
	if rec.State == DeleteError {
		switch noted, err := in.noted(ctx, rec); {
		case err != nil:
			return Record[T]{}, err
		case noted.Payload.Unmade:
			return Record[T]{}, in.neverMade(rec.ID)
		}
	}
	after, err := in.m.Fire(ctx, rec.ID, Undo, Controller, &lifecycle.Change[T]{
		Operation: rec.Operation, Reason: why.Error(), Require: in.wants(rec, wishUndo, wishNone),
	})
	if errors.Is(err, lifecycle.ErrPrecondition) {
		err = errKept
	}
	return after, err
}

// keep writes the wish that a failed operation is not undone. The error is errUndone if
// it is undone already.
func (in *Instances[T]) keep(ctx context.Context, rec *Record[T]) error {
	err := together(ctx, func(tx *lifecycle.Tx) error {
		noted, err := in.noted(ctx, rec)
		if err != nil {
			return err
		}
		// The next request writes the ref. So the object is read after the ref.
		now, err := in.m.Get(ctx, rec.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound), err == nil && (now.Operation != rec.Operation || now.State != rec.State):
			return errUndone
		case err != nil:
			return err
		}
		change := &lifecycle.Change[ref]{Expect: noted.Revision, Require: []lifecycle.Precondition{in.m.Require(rec.ID, rec.State)}}
		if noted.State == wishNone {
			in.refs.In(tx).Create(refID(in.parent(&rec.Payload), rec.ID), wishKeep, Controller, ref{ID: rec.ID}, change)
			return nil
		}
		in.refs.In(tx).Fire(noted.ID, wishKeep, Controller, change)
		return nil
	})
	if errors.Is(err, lifecycle.ErrPrecondition) {
		return errUndone
	}
	return err
}
