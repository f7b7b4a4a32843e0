package ovc

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// UpdateStatus is the one way in which the status of an object changes: if it is
// the expected one, it becomes the new one, in one compare-and-set. What may
// follow what is said by the table: a static state is followed by the transition
// state of an action, that one by the state that the action leads to from where
// it began, or by where it began.
//
// [Service.Do] does so by itself. UpdateStatus is for who does the work of
// actions elsewhere. It moves this one object: no machine moves with its disk, nor
// a disk with its machine, and nothing is queued. A disk that is detached in this
// way is at no machine any more.
//
// Errors: [ErrOtherAction] if the object is in another state, was moved by
// somebody else meanwhile, or does not exist, which [lifecycle.ErrNotFound]
// tells; [fsm.ErrNotAllowed] if the table has no such step;
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
	if m.Machine().StateIndex(status) < 0 {
		in = func(func(Record, error) bool) {} // nothing is in it, and no list knows it
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
		for row := range m.Machine().Permitted(rec.Status, actor) {
			if row.Event == Expire {
				continue // the bin is emptied by who does the work of it
			}
			step, err := m.Machine().Next(ctx, rec.Status, row.Event, actor, &rec.Payload)
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
		Machine: m.Machine().Name(), From: string(status), To: string(newStatus), Row: -1, Err: fsm.ErrNotAllowed,
	}
}
