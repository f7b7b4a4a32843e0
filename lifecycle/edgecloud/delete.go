package edgecloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Delete asks for an object to go. It takes two steps, as the document's: the
// user's from Ready to DeletePrepare, by force also from the error states, and the
// controller's to DeleteRequested. In between the controller looks whether an
// AppInst is in the ClusterInst. None can come meanwhile, because who creates one
// needs the ClusterInst Ready in the same commit. If there is one, or the look
// fails, the object goes back to where it was and the error names what it found.
//
// Whoever loses against another delete gets [lifecycle.ErrBusy] or
// [lifecycle.ErrConflict], and does nothing to the winner's: the second step names
// the operation of the first. With IgnoreCRM the object is gone at once.
//
// Errors: [ErrInUse], [lifecycle.ErrNotFound], [lifecycle.ErrBusy],
// [fsm.ErrForcedOnly] without Force, [lifecycle.ErrPrecondition],
// [lifecycle.ErrStale] if the sweeper took the delete back meanwhile, those of
// [lifecycle.Manager.Fire].
func (in *Instances[T]) Delete(ctx context.Context, id string, call *Call) (Record[T], error) {
	marked, err := in.begin(ctx, id, Delete, call, nil, Ready, CreateError, UpdateError, DeleteError, NotPresent)
	if err != nil {
		return Record[T]{}, err
	}
	used, err := in.users(ctx, id)
	if err != nil || used != nil {
		return Record[T]{}, in.unprepare(ctx, &marked, used, err)
	}
	if call.has(IgnoreCRM) {
		return in.m.Override(ctx, id, NotPresent, User, overriding(call), &lifecycle.Change[T]{Operation: marked.Operation})
	}
	return in.prepared(ctx, &marked, call)
}

// prepared makes the second step of a delete. An object that was never made is
// noted as such in the same commit.
func (in *Instances[T]) prepared(ctx context.Context, marked *Record[T], call *Call) (Record[T], error) {
	var part *lifecycle.Part[State, Event, T]
	err := together(ctx, func() ([]lifecycle.AnyPart, error) {
		part = in.m.Firing(marked.ID, Prepared, Controller, &lifecycle.Change[T]{
			Operation: marked.Operation, Reason: call.reason(),
		})
		if marked.Origin != CreateError { // of the operation, which the commit compares
			return []lifecycle.AnyPart{part}, nil
		}
		note, err := in.noting(ctx, in.parent(&marked.Payload), marked.ID, wishNote, func(r *ref) { r.Unmade = true })
		return []lifecycle.AnyPart{part, note}, err
	})
	if err != nil {
		return Record[T]{}, err
	}
	return part.Record(), nil
}

// users returns what is in a ClusterInst; nil if nothing is.
func (in *Instances[T]) users(ctx context.Context, id string) (*InUseError, error) {
	if in.apps() {
		return nil, nil
	}
	by, err := in.c.inside(ctx, id)
	if len(by) == 0 {
		return nil, err
	}
	return &InUseError{Key: in.key(id), Verb: Delete, By: by}, nil
}

// unprepare takes a delete back that is not to be, and returns why. The caller
// may have gone; who else would need the object is not to wait for the sweeper.
func (in *Instances[T]) unprepare(ctx context.Context, marked *Record[T], used *InUseError, why error) error {
	if used != nil && why == nil {
		why = used
	}
	_, err := in.m.Fire(context.WithoutCancel(ctx), marked.ID, PrepareFailed, Controller, &lifecycle.Change[T]{
		Operation: marked.Operation, Reason: why.Error(),
	})
	switch {
	case err == nil, errors.Is(err, lifecycle.ErrStale), errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, lifecycle.ErrBusy):
		return why // somebody else has moved it on
	}
	return errors.Join(why, err)
}

// ErrNeverMade: the object was never there, and there is nothing that a failed
// delete could be undone to. Delete it again, by force. The error matches
// [fsm.ErrNotAllowed] too.
var ErrNeverMade = errors.New("edgecloud: never made")

// Undo takes a failed operation back, as the document's controller does: a
// CreateError to NotPresent, an UpdateError and a DeleteError to Ready, with the
// content that the object had before. With an operation it undoes that one only.
//
// Errors: [ErrNeverMade], [lifecycle.ErrStale] for another operation than that of
// the object, [lifecycle.ErrNotFound], [lifecycle.ErrBusy], [fsm.ErrNotAllowed]
// for an object in no error state, those of [lifecycle.Manager.Fire]. Nothing is
// changed then.
func (in *Instances[T]) Undo(ctx context.Context, id string, op lifecycle.OpID, reason string) (Record[T], error) {
	rec, err := in.m.Get(ctx, id)
	if err != nil {
		return rec, err
	}
	if op == 0 {
		op = rec.Operation
	}
	if rec.Operation == op && rec.State == DeleteError {
		// What was noted was noted before the object came here in this operation,
		// and is forgotten only when it is made anew, in a later one.
		noted, err := in.noted(ctx, &rec)
		if err != nil {
			return Record[T]{}, err
		}
		if noted.Payload.Unmade {
			return Record[T]{}, in.neverMade(id)
		}
	}
	return in.m.Fire(ctx, id, Undo, Controller, &lifecycle.Change[T]{Operation: op, Reason: reason})
}

func (in *Instances[T]) neverMade(id string) error {
	return in.refused("fire", id, Undo, fmt.Errorf("%w: %w", fsm.ErrNotAllowed, ErrNeverMade))
}
