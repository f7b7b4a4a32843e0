package blazar

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// LeaseInfo is a lease as its owner sees it, with all that is part of it. It is a
// value.
type LeaseInfo struct {
	ID     string
	Status LeaseState
	// Degraded: resources of a reservation are missing or others. That is no
	// status: a lease that is short of resources stays what it is.
	Degraded bool
	Spec     LeaseSpec
	Reason   string // of the last change of the status, such as why the lease is in ERROR
	// Never are the calls that the lease will not take any more, see [Never].
	Never        []Call
	Reservations []ReservationInfo // in the order in which they were asked for
	Events       []EventInfo       // in the order in which they are due

	record lifecycle.Record[LeaseState, LeaseSpec]
}

// ReservationInfo is a reservation of a lease. It is a plain value.
type ReservationInfo struct {
	ID     string
	Status ReservationState
	Reason string
	ReservationSpec
}

// EventInfo is an event of a lease. It is a plain value.
type EventInfo struct {
	ID     string
	Type   string
	Status EventState
	Time   time.Time
	Reason string
}

// GetLease returns a lease. Reservations and events are those of its status, as
// far as no method is at work on them. The error is [lifecycle.ErrNotFound] or
// the store's.
func (s *Service) GetLease(ctx context.Context, id string) (LeaseInfo, error) {
	for attempt := 1; ; attempt++ {
		before, err := s.Leases.Get(ctx, id)
		if err != nil {
			return LeaseInfo{}, err
		}
		p, err := s.parts(ctx, id)
		if err != nil {
			return LeaseInfo{}, err
		}
		after, err := s.Leases.Get(ctx, id)
		if err != nil {
			return LeaseInfo{}, err
		}
		// What changes with the lease has not changed meanwhile. A lease that
		// changes all the time is returned as it was last seen.
		if before.Revision == after.Revision || attempt == 16 {
			return info(after, p), nil
		}
	}
}

// ListLeases returns all leases in the order of their ids. One that comes or goes
// meanwhile may be left out. The error is the store's.
func (s *Service) ListLeases(ctx context.Context) ([]LeaseInfo, error) {
	var list []LeaseInfo
	for rec, err := range s.Leases.All(ctx, lifecycle.Select[LeaseState]{}) {
		if err != nil {
			return nil, err
		}
		lease, err := s.GetLease(ctx, rec.ID)
		if err == nil {
			list = append(list, lease)
		} else if !errors.Is(err, lifecycle.ErrNotFound) {
			return nil, err
		}
	}
	return list, nil
}

func info(rec lifecycle.Record[LeaseState, LeaseSpec], p parts) LeaseInfo {
	lease := LeaseInfo{ID: rec.ID, Status: rec.State, Spec: rec.Payload, Reason: rec.Reason, record: rec}
	for _, r := range p.reservations {
		lease.Reservations = append(lease.Reservations, ReservationInfo{r.ID, r.State, r.Reason, r.Payload})
		if r.State != ReservationDeleted && (r.Payload.MissingResources || r.Payload.ResourcesChanged) {
			lease.Degraded = true
		}
	}
	for _, e := range p.events {
		lease.Events = append(lease.Events, EventInfo{e.ID, e.Payload.Type, e.State, e.Payload.Time, e.Reason})
	}
	slices.SortStableFunc(lease.Events, func(a, b EventInfo) int {
		return cmp.Or(a.Time.Compare(b.Time), slices.Index(eventTypes, a.Type)-slices.Index(eventTypes, b.Type))
	})
	lease.Never = Never(lease.Status, lease.statuses(), lease.event(StartLease), lease.event(EndLease))
	return lease
}

// statuses returns those of the reservations.
func (l *LeaseInfo) statuses() (list []ReservationState) {
	for _, r := range l.Reservations {
		list = append(list, r.Status)
	}
	return list
}

// event returns the status of the event of a type, of which there is one.
func (l *LeaseInfo) event(eventType string) EventState {
	for _, e := range l.Events {
		if e.Type == eventType {
			return e.Status
		}
	}
	return EventAbsent
}

// eventTypes are the types in the order in which a lease has them.
var eventTypes = []string{StartLease, BeforeEndLease, EndLease}

// allocation is a reservation for its plugin.
func (l *LeaseInfo) allocation(r *ReservationInfo) Allocation {
	return Allocation{
		Lease: l.ID, Reservation: r.ID, Resource: r.Resource, ResourceID: r.ResourceID, Amount: r.Amount,
		Start: l.Spec.Start, End: l.Spec.End,
	}
}
