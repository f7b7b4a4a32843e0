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
// [fsm.ErrNotAllowed] if the table has no such step;
// [fsm.ErrUnknownState] for a state that the kind does not have;
// [lifecycle.ErrInvalid], and the store's. Nothing is written then, but for
// [lifecycle.ErrUnknownOutcome].
func (s *Service) UpdateStatus(ctx context.Context, kind Kind, id string, status, newStatus State) (Record, error) {
	m, err := s.manager(kind)
	if err != nil {
		return Record{}, err
	}
	rec, err := m.Get(ctx, id)
	switch {
	case errors.Is(err, lifecycle.ErrNotFound):
		return Record{}, &RefusedError{Reason: ErrOtherAction, Kind: kind, ID: id, Err: err}
	case err != nil:
		return Record{}, err
	}
	return s.update(ctx, kind, rec, status, newStatus)
}

// UpdateSearch is UpdateStatus for the one object of the kind that is in the
// expected state and matches. It reads all objects in that state.
//
// Errors: those of UpdateStatus; [ErrOtherAction] if none matches,
// [ErrMoreThanOne] if several do: none of them is changed.
func (s *Service) UpdateSearch(ctx context.Context, kind Kind, match func(Record) bool, status, newStatus State) (Record, error) {
	m, err := s.manager(kind)
	switch {
	case err != nil:
		return Record{}, err
	case match == nil:
		return Record{}, invalid("a search for nothing")
	}
	var found Record
	var ids []string
	in := m.All(ctx, lifecycle.Select[State]{States: []State{status}})
	if kind.Machine().StateIndex(status) < 0 {
		in = func(func(Record, error) bool) {} // no object is in it, and All would refuse it
	}
	for rec, err := range in {
		switch {
		case err != nil:
			return Record{}, err
		case match(rec):
			found, ids = rec, append(ids, rec.ID)
		}
	}
	switch len(ids) {
	case 0:
		err := fmt.Errorf("ovc: %w: no matching %s is %s", lifecycle.ErrConflict, kind, status)
		return Record{}, &RefusedError{Reason: ErrOtherAction, Kind: kind, Err: err}
	case 1:
		return s.update(ctx, kind, found, status, newStatus)
	}
	return Record{}, &RefusedError{
		Reason: ErrMoreThanOne, Kind: kind, Found: ids,
		Err: invalid("%d of kind %s match: %s", len(ids), kind, quoted(ids)),
	}
}

// update moves an object as it was read.
func (s *Service) update(ctx context.Context, kind Kind, rec Record, status, newStatus State) (Record, error) {
	m := s.managers[kind]
	if rec.State != status {
		err := fmt.Errorf("ovc: %w: %s %q is %s, not %s", lifecycle.ErrConflict, kind, rec.ID, rec.State, status)
		return Record{}, &RefusedError{Reason: ErrOtherAction, Kind: kind, ID: rec.ID, Err: err}
	}
	for _, actor := range []fsm.Actor{API, Worker, fsm.Sweeper} {
		for row := range kind.Machine().Permitted(rec.Status, actor) {
			if row.Event == Expire {
				continue // Service.SelfHeal destroys the objects in the bin, with the work for it
			}
			step, err := kind.Machine().Next(ctx, rec.Status, row.Event, actor, nil)
			if err != nil || step.State != newStatus {
				continue
			}
			change := &change{Expect: rec.Revision}
			if kind == KindDisk && newStatus == Detaching {
				change.Edit = func(d *Model) error { d.VM = ""; return nil }
			}
			after, err := m.Fire(ctx, rec.ID, row.Event, actor, change)
			return after, words(kind, rec.ID, err)
		}
	}
	return Record{}, &fsm.TransitionError{
		Machine: kind.Machine().Name(), From: string(status), To: string(newStatus), Row: -1, Err: fsm.ErrNotAllowed,
	}
}
