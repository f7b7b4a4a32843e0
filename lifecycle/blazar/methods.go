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
// If a plugin refuses ([ErrRefused]), what was reserved is given back and there is
// no lease. Any other failure leaves it in ERROR, to be deleted.
//
// Errors: [*InputError] for a lease that cannot be, which matches
// [lifecycle.ErrInvalid], [lifecycle.ErrExists], and those of [Service.Guard].
func (s *Service) CreateLease(ctx context.Context, id string, spec LeaseSpec) (LeaseInfo, error) {
	if err := s.checkSpec(&spec); err != nil {
		return LeaseInfo{}, refused("create", id, Create, err)
	}
	return s.guard(ctx, id, Create, s.reserve, &lifecycle.Change[LeaseSpec]{
		Edit: func(p *LeaseSpec) error { *p = spec; return nil },
	})
}

// reserve is the method of a creation.
func (s *Service) reserve(ctx context.Context, lease LeaseInfo) error {
	for i := range lease.Reservations {
		r := &lease.Reservations[i]
		plugin := s.config.Plugins[r.Resource]
		if plugin.Reserve == nil {
			continue
		}
		resource, err := ask(ctx, plugin.Reserve, lease.allocation(r))
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrRefused):
			if undone := s.giveBack(ctx, &lease, i); undone != nil {
				// Something has changed, so the refusal is fatal.
				return fmt.Errorf("reservation %q: %v; what was reserved before cannot be given back: %w", r.ID, err, unrefused(undone))
			}
			return fmt.Errorf("reservation %q: %w", r.ID, err)
		case err != nil:
			// The reservation stays pending: the document has no other status for a
			// lease that is CREATING. The reason is in the record of the lease.
			return fmt.Errorf("reservation %q: %w", r.ID, err)
		}
		if resource == "" {
			continue
		}
		r.ResourceID = resource
		if err := s.mark(ctx, &lease, r.ID, Update, &lifecycle.Change[ReservationSpec]{
			Force: true, Edit: func(spec *ReservationSpec) error { spec.ResourceID = resource; return nil },
		}); err != nil {
			return err
		}
	}
	return nil
}

// giveBack gives back the first n reservations.
func (s *Service) giveBack(ctx context.Context, lease *LeaseInfo, n int) error {
	var failed []error
	for i := range n {
		r := &lease.Reservations[i]
		if err := do(ctx, s.config.Plugins[r.Resource].OnEnd, lease.allocation(r)); err != nil {
			failed = append(failed, fmt.Errorf("reservation %q: %w", r.ID, err))
		}
	}
	return errors.Join(failed...)
}

// UpdateLease changes a lease in any stable status, and leads back there. While a
// plugin is asked to change what is reserved, the lease is UPDATING. Its content
// changes in the commit that leads it back, and with it what is reserved and when
// its events are due. If the update is refused, which leads back too, or fails,
// which leads to ERROR, nothing of that changes.
//
// Errors: [*InputError], [lifecycle.ErrBusy] for a lease with a method at work,
// [lifecycle.ErrPrecondition] while an event of it is in progress, and those of
// [Service.Guard].
func (s *Service) UpdateLease(ctx context.Context, id string, update LeaseUpdate) (LeaseInfo, error) {
	// The reservations of a lease are the same for as long as there is one.
	lease, err := s.GetLease(ctx, id)
	if err != nil {
		return LeaseInfo{}, err
	}
	amounts := make(map[int]int, len(update.Amounts))
	for reservation, amount := range update.Amounts {
		i := slices.IndexFunc(lease.Reservations, func(r ReservationInfo) bool { return r.ID == reservation })
		if i < 0 {
			return LeaseInfo{}, refused("update", id, Update, &InputError{"reservation " + reservation, "the lease has none of this id"})
		}
		amounts[i] = amount
	}
	begun, over := lease.event(StartLease) != EventUndone, lease.event(EndLease) != EventUndone
	var content LeaseSpec // as it will be, by the last attempt to admit the update
	return s.guard(ctx, id, Update, func(ctx context.Context, lease LeaseInfo) error {
		return s.change(ctx, lease, content)
	}, &lifecycle.Change[LeaseSpec]{Edit: func(p *LeaseSpec) error {
		content = *p
		return s.apply(&content, &update, amounts, begun, over)
	}})
}

// change is the method of an update. The lease gets its new content in the commit
// that leads it back, and its reservations and events theirs with it.
func (s *Service) change(ctx context.Context, lease LeaseInfo, content LeaseSpec) error {
	var undo []func() error
	for i := range lease.Reservations {
		r := &lease.Reservations[i]
		plugin := s.config.Plugins[r.Resource]
		old, now := lease.allocation(r), lease.allocation(r)
		now.Start, now.End, now.Amount = content.Start, content.End, content.Reservations[i].Amount
		same := old.Start.Equal(now.Start) && old.End.Equal(now.End) && old.Amount == now.Amount
		if same || r.Status == ReservationDeleted {
			continue
		}
		err := do(ctx, plugin.Update, now)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrRefused):
			for _, f := range slices.Backward(undo) {
				if undone := f(); undone != nil {
					return fmt.Errorf("reservation %q: %v; what was changed before cannot be undone: %w", r.ID, err, unrefused(undone))
				}
			}
			return fmt.Errorf("reservation %q: %w", r.ID, err)
		case err != nil:
			return fmt.Errorf("reservation %q: %w", r.ID, err)
		}
		undo = append(undo, func() error { return do(ctx, plugin.Update, old) })
	}
	lifecycle.EditOutcome(ctx, func(p *LeaseSpec) error { *p = content; return nil })
	return nil
}

// DeleteLease deletes a lease whatever its status, and whatever those of its
// reservations and events: its resources are taken back, and then lease,
// reservations and events are gone in one commit. A method that is at work on it
// is cancelled. If resources cannot be taken back, the lease is in ERROR and can be
// deleted again.
//
// Errors: [lifecycle.ErrNotFound], [lifecycle.ErrBusy] for a lease that is being
// deleted, and those of [Service.Guard].
func (s *Service) DeleteLease(ctx context.Context, id string) error {
	_, err := s.guard(ctx, id, Delete, s.takeBack, nil)
	return err
}

// takeBack is the method of a delete and of an end: every reservation is tried.
func (s *Service) takeBack(ctx context.Context, lease LeaseInfo) error {
	return s.each(ctx, &lease, Delete, func(ctx context.Context, p Plugin, a Allocation) error { return do(ctx, p.OnEnd, a) })
}

// handOut is the method of a start.
func (s *Service) handOut(ctx context.Context, lease LeaseInfo) error {
	return s.each(ctx, &lease, Start, func(ctx context.Context, p Plugin, a Allocation) error { return do(ctx, p.OnStart, a) })
}

// Flags say that a reservation is not what was asked for. The zero Flags say that
// all is well.
type Flags struct {
	MissingResources bool // there is nothing to replace them
	ResourcesChanged bool // they were replaced by others
}

// Flag sets the flags of a reservation, and with them whether its lease is
// degraded. No status changes, and any status of the lease will do; a reservation
// that is deleted has no resources to miss.
//
// Errors: [lifecycle.ErrNotFound], [fsm.ErrNotAllowed] for a reservation that is
// deleted, and the store's.
func (s *Service) Flag(ctx context.Context, reservation string, flags Flags) error {
	return again(func() error {
		_, err := s.Reservations.Fire(ctx, reservation, Observe, Observer, &lifecycle.Change[ReservationSpec]{
			Edit: func(r *ReservationSpec) error {
				r.MissingResources, r.ResourcesChanged = flags.MissingResources, flags.ResourcesChanged
				return nil
			},
		})
		return err
	})
}
