package ovc

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// UpdateStatus changes the status of an object from the expected state to a new one,
// in one compare-and-set. The table decides which state may follow: a static state is
// followed by the transition state of an action. A transition state is followed by the
// state that the action leads to from its origin, or by the origin.
//
// [Service.Do] does so by itself. UpdateStatus is for programs that do the work of
// actions elsewhere. It moves this one object: no machine moves with its disk, nor
// a disk with its machine, and nothing is queued. A disk that is detached in this
// way is attached to no machine any more.
//
// Errors: [ErrOtherAction] if the object is in another state, was moved by another
// writer meanwhile, or does not exist, which also matches [lifecycle.ErrNotFound];
// [fsm.ErrNotAllowed] if the table has no such step, also for a state that the kind does
// not have; [lifecycle.ErrInvalid], and the store's. Nothing is written then, but for
// [lifecycle.ErrUnknownOutcome].
func (s *Service) UpdateStatus(ctx context.Context, kind Kind, id string, status, newStatus State) (Record, error) {
	m, err := s.manager(kind)
	if err != nil {
		return Record{}, err
	}
	rec, err := m.Get(ctx, id)
	if err == nil && rec.State != status {
		err = fmt.Errorf("ovc: %w: %s %q is %s, not %s", lifecycle.ErrConflict, kind, id, rec.State, status)
	}
	if errors.Is(err, lifecycle.ErrNotFound) || errors.Is(err, lifecycle.ErrConflict) {
		return Record{}, &RefusedError{Reason: ErrOtherAction, Kind: kind, ID: id, Err: err}
	}
	if err != nil {
		return Record{}, err
	}
	machine, change := kind.Machine(), &change{Expect: rec.Revision}
	if kind == KindDisk && newStatus == Detaching {
		change.Edit = func(d *Model) error { d.VM = ""; return nil }
	}
	for _, actor := range []fsm.Actor{API, Worker, Observer} {
		step, refused := machine.NextTo(ctx, rec.Status, newStatus, actor, nil)
		if refused != nil {
			continue
		}
		event := machine.EventAt(machine.Table().Rows[step.Row].Event)
		if event == Expire {
			continue // Service.SelfHeal destroys the objects in the bin, with work
		}
		after, err := m.Fire(ctx, rec.ID, event, actor, change)
		return after, refusal(kind, rec.ID, err)
	}
	return Record{}, &fsm.TransitionError{
		Machine: machine.Name(), From: string(status), To: string(newStatus), Row: -1, Err: fsm.ErrNotAllowed,
	}
}
