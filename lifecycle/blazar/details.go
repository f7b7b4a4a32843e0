package blazar

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// LeaseDetails is a lease with its reservations and events. It is a value.
type LeaseDetails struct {
	ID     string
	Status LeaseState
	// Degraded: resources of a reservation are missing or were replaced. The status of
	// the lease does not change.
	Degraded     bool
	Spec         LeaseSpec
	Reason       string               // of the last change of the status, such as that to ERROR
	Reservations []ReservationDetails // in the order of the requests
	Events       []EventDetails       // in the order of their times
}

// ReservationDetails is a reservation of a lease. It is a plain value.
type ReservationDetails struct {
	ID     string
	Status ReservationState
	Reason string
	ReservationSpec
}

// EventDetails is an event of a lease. It is a plain value.
type EventDetails struct {
	ID     string
	Type   string
	Status EventState
	Time   time.Time
	Reason string
}

// GetLease returns a lease. Reservations and events match its status, unless a method is
// at work on them. The error is [lifecycle.ErrNotFound] or the store's.
func (s *Service) GetLease(ctx context.Context, id string) (LeaseDetails, error) {
	lease, _, err := s.read(ctx, id)
	return lease, err
}

// read returns a lease and its revision.
func (s *Service) read(ctx context.Context, id string) (LeaseDetails, lifecycle.Revision, error) {
	for attempt := 1; ; attempt++ {
		before, err := s.Leases.Get(ctx, id)
		if err != nil {
			return LeaseDetails{}, "", err
		}
		m, err := s.members(ctx, id)
		if err != nil {
			return LeaseDetails{}, "", err
		}
		after, err := s.Leases.Get(ctx, id)
		if err != nil {
			return LeaseDetails{}, "", err
		}
		// Objects that change with the lease have not changed between the reads. A
		// lease that changes all the time is returned as of the last reads.
		if before.Revision == after.Revision || attempt == 16 {
			return details(after, m), after.Revision, nil
		}
	}
}

// ListLeases returns all leases in the order of their ids. A lease that is created or
// deleted during the call may be left out. A lease that cannot be read
// ([lifecycle.ErrForeign]) hides no other one: the error comes with the other leases. Any
// other error is the store's.
func (s *Service) ListLeases(ctx context.Context) ([]LeaseDetails, error) {
	var list []LeaseDetails
	var errs []error
	for rec, err := range s.Leases.All(ctx, lifecycle.Select[LeaseState]{}) {
		var lease LeaseDetails
		if err == nil {
			lease, err = s.GetLease(ctx, rec.ID)
		}
		switch {
		case err == nil:
			list = append(list, lease)
		case errors.Is(err, lifecycle.ErrNotFound):
		case errors.Is(err, lifecycle.ErrForeign):
			errs = append(errs, err)
		default:
			return nil, err
		}
	}
	return list, errors.Join(errs...)
}

func details(rec lifecycle.Record[LeaseState, LeaseSpec], m members) LeaseDetails {
	lease := LeaseDetails{ID: rec.ID, Status: rec.State, Spec: rec.Payload, Reason: rec.Reason}
	for _, r := range m.reservations {
		lease.Reservations = append(lease.Reservations, ReservationDetails{r.ID, r.State, r.Reason, r.Payload})
		if r.State != ReservationDeleted && r.Payload.Flags != (Flags{}) {
			lease.Degraded = true
		}
	}
	for _, e := range m.events {
		lease.Events = append(lease.Events, EventDetails{e.ID, e.Payload.Type, e.State, e.Payload.Time, e.Reason})
	}
	slices.SortStableFunc(lease.Events, func(a, b EventDetails) int {
		return cmp.Or(a.Time.Compare(b.Time), -cmp.Compare(a.Type, b.Type)) // start_lease before end_lease
	})
	return lease
}

// event returns the event of a type, of which there is one.
func (l *LeaseDetails) event(eventType string) EventDetails {
	for _, e := range l.Events {
		if e.Type == eventType {
			return e
		}
	}
	return EventDetails{Status: EventAbsent}
}

// allocations returns a reservation before and after an update, and whether that changes it.
// The amount of a reservation that is not in the content, which an operator has added, stays.
func (l *LeaseDetails) allocations(i int, content *LeaseSpec) (before, after Allocation, changes bool) {
	before = l.allocation(&l.Reservations[i])
	after = before
	after.Start, after.End = content.Start, content.End
	if request := content.request(l.Reservations[i].Number); request != nil {
		after.Amount = request.Amount
	}
	same := before.Start.Equal(after.Start) && before.End.Equal(after.End) && before.Amount == after.Amount
	return before, after, !same && l.Reservations[i].Status != ReservationDeleted
}

// allocation returns a reservation as its plugin receives it.
func (l *LeaseDetails) allocation(r *ReservationDetails) Allocation {
	return Allocation{Lease: l.ID, Reservation: r.ID, Request: r.Request, Start: l.Spec.Start, End: l.Spec.End}
}
