package edgecloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Delete requests the removal of an object. It takes the document's two steps: the
// user's from Ready to DeletePrepare, by force also from the error states, and the
// controller's to DeleteRequested. Between them the controller reads whether an
// AppInst is in the ClusterInst. None can be added meanwhile, because the creation of
// an AppInst needs the ClusterInst Ready in the same commit. If there is one, or it
// cannot be read, the object returns to its state before and the error is the reason.
//
// Of two concurrent deletes, one gets [lifecycle.ErrBusy] or [lifecycle.ErrConflict]
// and does not affect the other: the second step names the operation of the first.
// With IgnoreCRM the object is removed at once.
//
// Errors: [ErrInUse], [lifecycle.ErrNotFound], [lifecycle.ErrBusy],
// [fsm.ErrForcedOnly] without Force, [lifecycle.ErrPrecondition],
// [lifecycle.ErrStale] if the sweeper has taken the delete back meanwhile, those of
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

// prepared makes the second step of a delete. The same commit notes an object that
// was never made as such.
func (in *Instances[T]) prepared(ctx context.Context, marked *Record[T], call *Call) (Record[T], error) {
	var deleting *lifecycle.TxResult[State, T]
	err := together(ctx, func(tx *lifecycle.Tx) error {
		deleting = in.m.In(tx).Fire(marked.ID, Prepared, Controller, &lifecycle.Change[T]{
			Operation: marked.Operation, Reason: call.reason(),
		})
		if marked.Origin != CreateError { // of the operation, which the commit compares
			return nil
		}
		return in.note(ctx, tx, in.parent(&marked.Payload), marked.ID, wishNote, func(r *ref) { r.Unmade = true })
	})
	if err != nil {
		return Record[T]{}, err
	}
	return deleting.Record(), nil
}

// users returns the error that names the AppInsts in a ClusterInst; nil if there are
// none.
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

// unprepare takes a delete back and returns the reason. The caller's context may have
// ended: it is taken back nevertheless, so that other requests for the object need not
// wait for the sweeper.
func (in *Instances[T]) unprepare(ctx context.Context, marked *Record[T], used *InUseError, why error) error {
	if used != nil && why == nil {
		why = used
	}
	_, err := in.m.Fire(context.WithoutCancel(ctx), marked.ID, PrepareFailed, Controller, &lifecycle.Change[T]{
		Operation: marked.Operation, Reason: why.Error(),
	})
	switch {
	case err == nil, errors.Is(err, lifecycle.ErrStale), errors.Is(err, lifecycle.ErrNotFound), errors.Is(err, lifecycle.ErrBusy):
		return why // another caller has moved the object
	}
	return errors.Join(why, err)
}

// ErrNeverMade: the object was never created on the cloudlet, so its failed delete
// cannot be undone. Delete it again, by force. The error matches [fsm.ErrNotAllowed]
// too.
var ErrNeverMade = errors.New("edgecloud: never made")

// Undo takes a failed operation back, as the document's controller does: from
// CreateError to NotPresent, from UpdateError and DeleteError to Ready, with the
// content from before the operation. If op is not 0, it undoes only that operation.
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
		// The note was written before the object entered this state in this
		// operation, and only a creation, a later operation, removes it.
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
