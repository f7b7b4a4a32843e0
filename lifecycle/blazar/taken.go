package blazar

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// taken lists the leases that have resources, or will have them, although another
// lease may start on them: their end was due when Process began and is not over, or
// is in progress, or they are being deleted. A start waits for ends that are not
// later than itself, and so for none that has become due since.
func (s *Service) taken(ctx context.Context, due []Due) ([]LeaseInfo, error) {
	leases := make(map[string]bool)
	for _, d := range due {
		if d.Type != EndLease {
			continue
		}
		switch e, err := s.Events.Get(ctx, d.ID); {
		case errors.Is(err, lifecycle.ErrNotFound):
		case err != nil:
			return nil, err
		case e.State == EventUndone:
			leases[d.Lease] = true
		}
	}
	for e, err := range s.Events.All(ctx, lifecycle.Select[EventState]{States: []EventState{EventInProgress}}) {
		if err != nil {
			return nil, err
		}
		if e.Payload.Type == EndLease {
			leases[e.Payload.Lease] = true
		}
	}
	for rec, err := range s.Leases.All(ctx, lifecycle.Select[LeaseState]{States: []LeaseState{LeaseDeleting}}) {
		if err != nil {
			return nil, err
		}
		leases[rec.ID] = true
	}
	var list []LeaseInfo
	for id := range leases {
		lease, err := s.GetLease(ctx, id)
		if errors.Is(err, lifecycle.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, lease)
	}
	return list, nil
}

// inTheWay returns an error if another lease still has resources of a lease that is
// to start.
func (s *Service) inTheWay(ctx context.Context, d Due, taken []LeaseInfo) error {
	if len(taken) == 0 {
		return nil
	}
	lease, err := s.GetLease(ctx, d.Lease)
	if err != nil {
		return err
	}
	for _, other := range taken {
		over := other.Status == LeaseDeleting || !other.Spec.End.After(d.Time)
		if other.ID == d.Lease || !over {
			continue
		}
		for _, theirs := range other.Reservations {
			for _, r := range lease.Reservations {
				// Pending ones too: another process may be at the start of that lease,
				// or has left it for the next time.
				has := theirs.Status == ReservationActive || theirs.Status == ReservationPending
				if has && same(&r.ReservationSpec, &theirs.ReservationSpec) {
					return fmt.Errorf("%w: lease %q is %s and still has resources of type %q",
						lifecycle.ErrBusy, other.ID, other.Status, r.Resource)
				}
			}
		}
	}
	return nil
}

// same reports whether two reservations may be of the same resources: of those of
// a type, if the plugin does not say which.
func same(a, b *ReservationSpec) bool {
	return a.Resource == b.Resource && (a.ResourceID == b.ResourceID || a.ResourceID == "" || b.ResourceID == "")
}
