package edgecloud

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// undoLeft undoes what has failed and was left to nobody: whoever has asked for it
// does so while he waits, and has died, or does not wait.
func (in *Instances[T]) undoLeft(ctx context.Context) ([]lifecycle.Case, error) {
	var cases []lifecycle.Case
	left := lifecycle.Select[State]{States: []State{CreateError, UpdateError, DeleteError}, UnchangedFor: in.c.undoAfter}
	for rec, err := range in.m.All(ctx, left) {
		if err != nil {
			return cases, err
		}
		noted, err := in.noted(ctx, &rec)
		if err != nil {
			return cases, err
		}
		c := lifecycle.Case{
			Key: in.key(rec.ID), Remedy: lifecycle.Moved, From: string(rec.State), Operation: rec.Operation,
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
			c.Remedy, c.Err = lifecycle.Unmoved, err
		case errors.Is(err, lifecycle.ErrConflict), errors.Is(err, lifecycle.ErrStale), errors.Is(err, lifecycle.ErrNotFound),
			errors.Is(err, lifecycle.ErrBusy), errors.Is(err, lifecycle.ErrPrecondition), errors.Is(err, fsm.ErrNotAllowed):
			c.Remedy = lifecycle.Overtaken
		default:
			return cases, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

var errUndone = errors.New("edgecloud: it is undone already")

var errKept = errors.New("edgecloud: somebody wants to look at it")

// undoUnkept is Undo unless somebody wants the failure to be kept, which is a
// condition of the commit. The bad schedule without it: the sweep finds no wish; who
// waits notes one and returns; the sweep undoes what he was told is kept.
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

// keep notes that a failed operation is not to be undone. The error is errUndone if
// it is too late for that.
func (in *Instances[T]) keep(ctx context.Context, rec *Record[T]) error {
	err := together(ctx, func() ([]lifecycle.AnyPart, error) {
		noted, err := in.noted(ctx, rec)
		if err != nil {
			return nil, err
		}
		// Whatever is asked for next writes the ref: after it is read, the object is
		// read again.
		now, err := in.m.Get(ctx, rec.ID)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound), err == nil && (now.Operation != rec.Operation || now.State != rec.State):
			return nil, errUndone
		case err != nil:
			return nil, err
		}
		change := &lifecycle.Change[ref]{Expect: noted.Revision, Require: []lifecycle.Precondition{in.m.Require(rec.ID, rec.State)}}
		if noted.State == wishNone {
			return []lifecycle.AnyPart{in.refs.Creating(refID(in.parent(&rec.Payload), rec.ID), wishKeep, Controller, ref{ID: rec.ID}, change)}, nil
		}
		return []lifecycle.AnyPart{in.refs.Firing(noted.ID, wishKeep, Controller, change)}, nil
	})
	if errors.Is(err, lifecycle.ErrPrecondition) {
		return errUndone
	}
	return err
}
