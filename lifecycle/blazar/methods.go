package blazar

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
)

// CreateLease creates a lease with its reservations and events, and returns it
// PENDING. While its resources are reserved, it is CREATING, and a user can delete
// it. Without a start the lease starts now.
//
// If a plugin refuses ([ErrRefused]), the earlier reservations are released, and the lease
// does not exist. Any other failure leaves it in ERROR, to be deleted.
//
// Errors: [lifecycle.ErrInvalid] for an invalid lease, [lifecycle.ErrExists], and those of
// [Service.Guard].
func (s *Service) CreateLease(ctx context.Context, id string, spec LeaseSpec) (LeaseDetails, error) {
	if err := s.checkNew(&spec); err != nil {
		return LeaseDetails{}, refused("create", id, Create, err)
	}
	wait, err := s.begin(ctx, id, Create, s.reserve, &lifecycle.Change[LeaseSpec]{
		Edit: func(p *LeaseSpec) error { *p = spec; return nil },
	})
	return s.ended(ctx, id, Create, wait, err)
}

// AddLease takes over a lease that exists already, in a status at rest: PENDING, ACTIVE,
// TERMINATED or ERROR. No plugin is called: its reservations have the resources of
// [Request].ResourceID. Their statuses, and those of the events, are those of the line in
// [Combinations]; a lease in ERROR has been started, so it can be ended. The start may be
// in the past.
//
// Errors: [lifecycle.ErrInvalid] for an invalid lease and for another status,
// [fsm.ErrUnknownState], [lifecycle.ErrExists], and those of [lifecycle.Manager.Add].
// After [lifecycle.ErrUnavailable] the lease may have been added: then only the answer was
// not read.
func (s *Service) AddLease(ctx context.Context, id string, status LeaseState, spec LeaseSpec) (LeaseDetails, error) {
	if err := errors.Join(checkID(id), s.checkSpec(&spec)); err != nil {
		return LeaseDetails{}, &lifecycle.Error{Verb: "add", Machine: Lease.Name(), ID: id, Actor: User, Err: err}
	}
	if _, err := s.Leases.Add(ctx, id, status, User, spec, nil); err != nil {
		return LeaseDetails{}, err
	}
	return s.GetLease(ctx, id)
}

// reserve is the method of a creation. After a failure a reservation stays pending: the
// document has no other status for a lease that is CREATING.
func (s *Service) reserve(ctx context.Context, lease LeaseDetails) error {
	return s.allOrNone(ctx, &lease, func(_ int, r *ReservationDetails) (func() error, error) {
		p, err := s.plugin(r.Resource)
		undo := func() error { return perform(ctx, p.OnEnd, lease.allocation(r)) }
		if err != nil || p.Reserve == nil {
			return undo, err
		}
		resources := make(chan string, 1) // a call that was abandoned may still send
		err = perform(ctx, func(ctx context.Context, a Allocation) error {
			id, err := p.Reserve(ctx, a)
			resources <- id
			return err
		}, lease.allocation(r))
		if err != nil {
			return nil, err
		}
		if r.ResourceID = <-resources; r.ResourceID != "" {
			err = s.mark(ctx, &lease, r.ID, Update, &lifecycle.Change[ReservationSpec]{
				Force: true, Edit: func(spec *ReservationSpec) error { spec.ResourceID = r.ResourceID; return nil },
			})
		}
		return undo, err
	})
}

// allOrNone calls do for the reservations of a lease, one after the other, until one fails.
// If that one is refused, it calls the undo functions of those before, the last one first.
// If they cannot be undone, the error is fatal: it does not match [ErrRefused].
func (s *Service) allOrNone(
	ctx context.Context, lease *LeaseDetails, do func(i int, r *ReservationDetails) (undo func() error, err error),
) error {
	var undo []func() error
	for i := range lease.Reservations {
		r := &lease.Reservations[i]
		back, err := do(i, r)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, ErrRefused) {
			var failed error
			for _, f := range slices.Backward(undo) {
				failed = errors.Join(failed, f())
			}
			if failed != nil {
				err = fmt.Errorf("%v; the changes before it cannot be undone: %v", err, failed)
			}
		}
		if err != nil {
			return fmt.Errorf("reservation %q: %w", r.ID, err)
		}
		if back != nil {
			undo = append(undo, back)
		}
	}
	return nil
}

// UpdateLease changes a lease in any stable status, and leads back there. While
// plugins change the reservations, the lease is UPDATING. Its content changes in the
// commit that leads it back, and with it the amounts of the reservations and the times of
// the events. If the update is refused, which leads back too, or fails, which leads to
// ERROR, the content does not change.
//
// The update is judged by the lease, and the statuses of its events, that it begins with.
// Of several simultaneous updates one begins, and the others get [lifecycle.ErrBusy].
//
// Errors: [lifecycle.ErrInvalid] for an invalid update, [lifecycle.ErrBusy] for a lease with a method at work,
// [lifecycle.ErrPrecondition] while an event of it is in progress,
// [lifecycle.ErrMisconfigured] if this process lacks the plugin of a reservation that
// changes, and those of [Service.Guard].
func (s *Service) UpdateLease(ctx context.Context, id string, update LeaseUpdate) (LeaseDetails, error) {
	var wait outcome
	err := retry(func() (err error) {
		wait, err = s.beginUpdate(ctx, id, &update)
		return err
	})
	return s.ended(ctx, id, Update, wait, err)
}

// beginUpdate starts an update of the lease that it judges: the commit requires the
// revision of the lease and the statuses of the events. The error is a conflict if one of
// them has changed meanwhile.
func (s *Service) beginUpdate(ctx context.Context, id string, update *LeaseUpdate) (outcome, error) {
	lease, revision, err := s.read(ctx, id)
	if err != nil {
		return nil, err
	}
	content, invalid := s.contentAfter(&lease, update)
	change := &lifecycle.Change[LeaseSpec]{
		Expect: revision,
		// After the table has refused the update of a lease with a method at work.
		Edit: func(*LeaseSpec) error { return invalid },
	}
	for _, e := range lease.Events {
		change.Require = append(change.Require, s.Events.Require(e.ID, e.Status))
	}
	return s.begin(ctx, id, Update, func(ctx context.Context, lease LeaseDetails) error {
		return s.updateReservations(ctx, lease, content)
	}, change)
}

// updateReservations is the method of an update. The lease gets its new content in the commit
// that leads it back, and so do its reservations and events.
func (s *Service) updateReservations(ctx context.Context, lease LeaseDetails, content LeaseSpec) error {
	err := s.allOrNone(ctx, &lease, func(i int, r *ReservationDetails) (func() error, error) {
		before, after, changes := lease.allocations(i, &content)
		if !changes {
			return nil, nil
		}
		p, err := s.plugin(r.Resource)
		if err == nil {
			err = perform(ctx, p.Update, after)
		}
		return func() error { return perform(ctx, p.Update, before) }, err
	})
	if err == nil {
		lifecycle.EditOutcome(ctx, func(p *LeaseSpec) error { *p = content; return nil })
	}
	return err
}

// DeleteLease deletes a lease whatever its status, and whatever those of its
// reservations and events: its resources are released, and then lease,
// reservations and events are removed in one commit. A method that is at work on it
// is cancelled. If resources cannot be released, the lease is in ERROR and can be
// deleted again.
//
// Errors: [lifecycle.ErrNotFound], [lifecycle.ErrBusy] for a lease that is being
// deleted, [lifecycle.ErrMisconfigured] if this process lacks a plugin that releases
// resources, with nothing changed, and those of [Service.Guard].
func (s *Service) DeleteLease(ctx context.Context, id string) error {
	wait, err := s.act(ctx, id, Delete, nil)
	_, err = s.ended(ctx, id, Delete, wait, err)
	return err
}

// act begins a start, an end or a delete.
func (s *Service) act(ctx context.Context, id string, call Call, change *lifecycle.Change[LeaseSpec]) (outcome, error) {
	reservationCall := Delete // every reservation is deleted at the end of its lease too
	if call == Start {
		reservationCall = Start
	}
	if err := s.checkPlugins(ctx, id, reservationCall); err != nil {
		return nil, refused("do", id, call, err)
	}
	return s.begin(ctx, id, call, func(ctx context.Context, lease LeaseDetails) error {
		return s.startOrEndAll(ctx, &lease, reservationCall)
	}, change)
}

// Flags report that a reservation differs from its request: the flags of the document for a
// lease that is short of resources. The zero Flags report no difference.
type Flags struct {
	MissingResources bool // resources are missing, and there are no others
	ResourcesChanged bool // resources were replaced by others
}

// Flag sets the flags of a reservation, and with them whether its lease is
// degraded. No status changes. The lease may be in any status; a reservation
// that is deleted has no resources.
//
// Errors: [lifecycle.ErrNotFound], [fsm.ErrNotAllowed] for a reservation that is
// deleted, and the store's.
func (s *Service) Flag(ctx context.Context, reservation string, flags Flags) error {
	return retry(func() error {
		_, err := s.Reservations.Fire(ctx, reservation, Observe, Observer, &lifecycle.Change[ReservationSpec]{
			Edit: func(r *ReservationSpec) error { r.Flags = flags; return nil },
		})
		return err
	})
}
