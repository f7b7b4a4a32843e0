package blazar

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/queue"
)

// Method is what a method of the manager does between the two changes of status
// that [Service.Guard] makes. It gets the lease after the first change.
type Method func(ctx context.Context, lease LeaseInfo) error

// Guard runs a method on a lease as the document describes. All methods of a Service
// run under it:
//
//	edge and combination checked   or refused: nothing written
//	transitional status written    in the same commit
//	method                         in the lease's turn
//	result derived                 from the reservations and events, see [DeriveStatus]
//	stable status written          in the same commit
//
// The call is [Update], [Start], [Terminate] or [Delete]; the first and the last
// are a user's. The event start_lease or end_lease that belongs to it is IN_PROGRESS
// with the transitional status, and DONE with the stable one.
//
// An error of a method is fatal: the lease goes to ERROR, and so does the event. It
// is not fatal if it matches [ErrRefused] and the table has a way back. A method that
// succeeds, but leaves reservations that do not match the result, is a failure too. A
// delete cancels the method that is at work, and the result of that method has no
// effect.
//
// The error is that of [lifecycle.Manager.Do] or of the method. If ctx ends while
// the method is at work, it goes on, and the error matches [queue.ErrPending].
func (s *Service) Guard(ctx context.Context, id string, call Call, method Method) (LeaseInfo, error) {
	if call == Create {
		return LeaseInfo{}, refused("guard", id, call, fmt.Errorf("%w: a lease is created by CreateLease", lifecycle.ErrInvalid))
	}
	return s.guard(ctx, id, call, method, nil)
}

func (s *Service) guard(ctx context.Context, id string, call Call, method Method, change *lifecycle.Change[LeaseSpec]) (LeaseInfo, error) {
	m, err := s.begin(ctx, id, call, method, change)
	if err != nil {
		return LeaseInfo{}, err
	}
	if err := m.wait(ctx); err != nil {
		return LeaseInfo{}, err
	}
	if call == Delete {
		return LeaseInfo{ID: id, Status: LeaseAbsent}, nil
	}
	return s.GetLease(ctx, id)
}

// guarded is a method that was admitted.
type guarded struct {
	handle *lifecycle.Handle[LeaseState, LeaseSpec]
	// Written by the method, read once the handle is done: why it refused, and
	// what it returned.
	refused error
}

// begin admits a method.
func (s *Service) begin(ctx context.Context, id string, call Call, method Method, change *lifecycle.Change[LeaseSpec]) (*guarded, error) {
	if err := checkID(id); err != nil {
		return nil, refused("do", id, call, err)
	}
	m := &guarded{}
	work := lifecycle.Func(func(ctx context.Context) error {
		lease, err := s.GetLease(ctx, id)
		if err == nil && method != nil {
			err = method(ctx, lease)
		}
		if !errors.Is(err, ErrRefused) || ctx.Err() != nil {
			return err
		}
		// The table permits Refuse where there is a way back. The report ends the
		// operation, and then the error that the work returns has no effect.
		v, cannot := s.Leases.Report(ctx, id, lifecycle.TaskOf(ctx).Operation, Refuse, Manager, err.Error())
		if cannot == nil && v == lifecycle.Applied {
			m.refused = err
		}
		return err
	})
	admit := func() (err error) {
		m.handle, err = s.Leases.Do(ctx, id, call, actorOf(call), work, change)
		return err
	}
	var err error
	if call == Delete {
		work.Preempt = queue.PreemptRunning
		err = again(admit) // a delete is right in every status of the lease
	} else {
		err = admit()
	}
	if err == nil {
		return m, nil
	}
	if e, ok := errors.AsType[*lifecycle.Error](err); ok && e.ID == id && errors.Is(err, fsm.ErrNotAllowed) {
		switch {
		case call == Create && e.From != "":
			return nil, refused("create", id, call, lifecycle.ErrExists)
		case call != Create && e.From == "":
			return nil, refused("do", id, call, lifecycle.ErrNotFound)
		}
	}
	return nil, err
}

// wait waits for the result of a method.
func (m *guarded) wait(ctx context.Context) error {
	_, err := m.handle.Wait(ctx)
	select {
	case <-m.handle.Done():
		if m.refused != nil {
			return m.refused
		}
	default:
	}
	return err
}

// actorOf returns the actor that calls a method.
func actorOf(call Call) fsm.Actor {
	switch call {
	case Create, Update, Delete:
		return User
	}
	return Manager
}

// refused is an error about a lease, complete as those of its manager.
func refused(verb, id string, call Call, err error) error {
	return &lifecycle.Error{Verb: verb, Machine: Lease.Name(), ID: id, Event: string(call), Actor: actorOf(call), Err: err}
}

// each does something for the reservations of a lease, one after the other, and
// writes the result of each: the status that the call leads to, or an error. After a
// failure it continues with the other reservations; when the context ends, it stops.
func (s *Service) each(ctx context.Context, lease *LeaseInfo, call Call, do func(context.Context, Plugin, Allocation) error) error {
	var failed []error
	for i := range lease.Reservations {
		r := &lease.Reservations[i]
		to, done := becomes[call], r.Status == becomes[call]
		switch {
		case done:
			continue
		case !r.Status.IsValidTransition(to):
			failed = append(failed, fmt.Errorf("reservation %q is %s and cannot become %s", r.ID, r.Status, to))
			if err := s.fail(ctx, lease, r, "it could not become "+string(to)); err != nil {
				return err
			}
			continue
		}
		err := do(ctx, s.config.Plugins[r.Resource], lease.allocation(r))
		switch {
		case ctx.Err() != nil:
			// Another operation has the lease. It undoes what was done for the
			// reservation, and this one may write nothing.
			return context.Cause(ctx)
		case err != nil:
			failed = append(failed, fmt.Errorf("reservation %q: %w", r.ID, err))
			err = s.fail(ctx, lease, r, err.Error())
		default:
			err = s.mark(ctx, lease, r.ID, call, &lifecycle.Change[ReservationSpec]{})
		}
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}

// becomes is what a call makes of a reservation.
var becomes = map[Call]ReservationState{Start: ReservationActive, Delete: ReservationDeleted}

// fail marks a reservation whose resources have failed, unless it is marked already.
func (s *Service) fail(ctx context.Context, lease *LeaseInfo, r *ReservationInfo, reason string) error {
	if !r.Status.IsValidTransition(ReservationError) {
		return nil
	}
	return s.mark(ctx, lease, r.ID, Fail, &lifecycle.Change[ReservationSpec]{Reason: reason})
}

// mark moves a reservation of a lease whose method is at work. It is refused after
// the lease has got another status, because another method is at work then.
func (s *Service) mark(ctx context.Context, lease *LeaseInfo, id string, call Call, change *lifecycle.Change[ReservationSpec]) error {
	change.Require = []lifecycle.Precondition{s.Leases.Require(lease.ID, lease.Status)}
	return again(func() error {
		_, err := s.Reservations.Fire(ctx, id, call, Manager, change)
		return err
	})
}

// again repeats a change after a conflict, for example with an observer that has
// changed the flags. It is for requests that are right in every state of the object.
func again(change func() error) (err error) {
	for range 16 {
		if err = change(); !errors.Is(err, lifecycle.ErrConflict) {
			return err
		}
	}
	return err
}
