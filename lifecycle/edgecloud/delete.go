package edgecloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/storable"
	"github.com/interlock-go/interlock/lifecycle"
)

// Delete requests the removal of an object. It takes the document's two steps: the
// user's from Ready to DeletePrepare, and the controller's to DeleteRequested. Between
// them the controller reads whether an AppInst is in the ClusterInst. None can be
// created meanwhile, because the creation of an AppInst needs the ClusterInst Ready in
// the same commit. If there is one, or it cannot be read, or the second step fails, the
// object returns to Ready, and the error is the reason. If the error matches
// [lifecycle.ErrUnknownOutcome], the second step may have been committed: the object is then
// in DeleteRequested.
//
// By force, a delete leads from an error state to DeleteRequested in one commit, with
// the same condition. If it is refused, nothing is written: the errors of the CRM stay.
//
// Of two concurrent deletes, one gets [lifecycle.ErrBusy] and does not affect the
// other: the second step names the operation of the first.
//
// Errors: [ErrInUse], [lifecycle.ErrNotFound], [lifecycle.ErrBusy],
// [fsm.ErrForcedOnly] without Force, [lifecycle.ErrPrecondition],
// [lifecycle.ErrStale] if the sweeper has ended the delete meanwhile, those of
// [lifecycle.Manager.Fire].
func (in *Instances[T]) Delete(ctx context.Context, id string, call *Call) (Record[T], error) {
	marked, err := in.request(ctx, id, Delete, call, nil, func(tx txInstances[T], change *lifecycle.Change[T]) *txInstance[T] {
		return tx.Fire(id, Delete, User, change)
	})
	if err != nil {
		return Record[T]{}, err
	}
	if marked.State == DeleteRequested {
		return marked, nil
	}
	if !in.isApp() {
		if err := in.coordinator.checkNoApps(ctx, id); err != nil {
			return Record[T]{}, in.prepareFailed(ctx, &marked, err)
		}
	}
	rec, err := in.m.Fire(ctx, id, Prepared, Controller, &lifecycle.Change[T]{
		Operation: marked.Operation, Reason: cmp.Or(call, &Call{}).Reason,
	})
	if err != nil {
		return Record[T]{}, in.prepareFailed(ctx, &marked, err)
	}
	return rec, nil
}

// prepareFailed ends a delete and returns the reason. The caller's context may have
// ended: the delete ends nevertheless, so that other requests for the object need not
// wait for the sweeper.
func (in *Instances[T]) prepareFailed(ctx context.Context, marked *Record[T], why error) error {
	_, err := in.m.Fire(context.WithoutCancel(ctx), marked.ID, PrepareFailed, Controller, &lifecycle.Change[T]{
		Operation: marked.Operation, Reason: storable.Reason(why.Error()), Force: true,
	})
	if err == nil || moved(err) {
		return why
	}
	return errors.Join(why, err)
}

// ErrNeverCreated: the object was never created on the cloudlet, so its failed delete
// cannot be undone. Delete it again, by force. The error matches [fsm.ErrNotAllowed]
// too.
var ErrNeverCreated = errors.New("edgecloud: never created")

// Undo undoes a failed operation, as the document's controller does: from CreateError
// to NotPresent, from UpdateError and DeleteError to Ready, with the content from
// before the operation. If op is not 0, it undoes only that operation.
//
// Errors: [ErrNeverCreated], [lifecycle.ErrStale] for another operation than that of
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
		// operation, and only a later operation changes it.
		note, err := in.note(ctx, &rec)
		if err != nil {
			return Record[T]{}, err
		}
		if note.NeverCreated {
			return Record[T]{}, refused("fire", in.key(id), string(Undo), Controller,
				fmt.Errorf("%w: %w", fsm.ErrNotAllowed, ErrNeverCreated))
		}
	}
	return in.m.Fire(ctx, id, Undo, Controller, &lifecycle.Change[T]{Operation: op, Reason: reason})
}
