package edgecloud

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
		wanted, err := in.wanted(ctx, &rec)
		if err != nil {
			return cases, err
		}
		c := lifecycle.Case{
			Key: in.key(rec.ID), Remedy: lifecycle.Moved, From: string(rec.State), Operation: rec.Operation,
			Event: string(Undo), Actor: Controller,
		}
		var after Record[T]
		switch {
		case slices.Contains(wanted.Kept, c.Key):
			continue
		case slices.Contains(wanted.Ignored, c.Key):
			c.Event, c.Actor = IgnoreCRMErrors.String(), User
			after, err = in.takenForDone(ctx, &rec, IgnoreCRMErrors.String())
		default:
			after, err = in.undoUnkept(ctx, &rec)
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
			errors.Is(err, lifecycle.ErrBusy), errors.Is(err, fsm.ErrNotAllowed):
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

// undoUnkept is Undo unless somebody wants the failure to be kept, which is looked at
// in the commit. The bad schedule without it: the sweep finds no note; who waits
// writes one and returns; the sweep undoes what he was told is kept.
func (in *Instances[T]) undoUnkept(ctx context.Context, rec *Record[T]) (Record[T], error) {
	why := in.failure(ctx, rec).Error()
	var part *lifecycle.Part[State, Event, T]
	err := together(ctx, func() ([]lifecycle.AnyPart, error) {
		at, err := in.place(ctx, &rec.Payload)
		if err != nil {
			return nil, err
		}
		part = in.m.Firing(rec.ID, Undo, Controller, &lifecycle.Change[T]{Operation: rec.Operation, Reason: why})
		of, parent := in.parent(at)
		noted, err := of.Get(ctx, parent)
		switch {
		case errors.Is(err, lifecycle.ErrNotFound):
			return []lifecycle.AnyPart{part}, nil
		case err != nil:
			return nil, err
		case slices.Contains(noted.Payload.Kept, in.key(rec.ID)):
			return nil, errKept
		case rec.State == DeleteError && slices.Contains(noted.Payload.Unmade, in.key(rec.ID)):
			return nil, in.refused("fire", rec.ID, Undo, fmt.Errorf("%w: %w", fsm.ErrNotAllowed, ErrNeverMade))
		}
		return []lifecycle.AnyPart{
			part, of.Firing(parent, refsWrite, Controller, &lifecycle.Change[refs]{Expect: noted.Revision}),
		}, nil
	})
	if err != nil {
		return Record[T]{}, err
	}
	return part.Record(), nil
}

// wanted returns the refs in which the last request about an object has noted what
// is to be done if it fails.
func (in *Instances[T]) wanted(ctx context.Context, rec *Record[T]) (refs, error) {
	at, err := in.place(ctx, &rec.Payload)
	if err != nil {
		return refs{}, err
	}
	of, parent := in.parent(at)
	noted, err := of.Get(ctx, parent)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return refs{}, nil
	}
	return noted.Payload, err
}

// keep notes that a failed operation is not to be undone. The error is errUndone if
// it is too late for that.
func (in *Instances[T]) keep(ctx context.Context, rec *Record[T]) error {
	wanted, err := in.wanted(ctx, rec)
	if err != nil || slices.Contains(wanted.Kept, in.key(rec.ID)) {
		return err
	}
	return together(ctx, func() ([]lifecycle.AnyPart, error) {
		// A sweep that undoes it writes the refs: after they are read, it is read again.
		at, err := in.place(ctx, &rec.Payload)
		if err != nil {
			return nil, err
		}
		of, parent := in.parent(at)
		there := func(members []lifecycle.Key) ([]lifecycle.Key, error) {
			now, err := in.m.Get(ctx, rec.ID)
			if err == nil && now.Operation == rec.Operation && now.State == rec.State {
				return members, nil
			}
			if err == nil || errors.Is(err, lifecycle.ErrNotFound) {
				err = errUndone
			}
			return nil, err
		}
		part, err := touching(ctx, of, parent, there, func(r *refs) {
			note(&r.Kept, in.key(rec.ID), true)
			note(&r.Ignored, in.key(rec.ID), false)
		})
		return []lifecycle.AnyPart{part}, err
	})
}
