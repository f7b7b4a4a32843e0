package blazar

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/relation"
)

// members are the reservations and events of a lease.
type members struct {
	reservations []lifecycle.Record[ReservationState, ReservationSpec]
	events       []lifecycle.Record[EventState, EventSpec]
}

// members reads them. A caller that decides on them makes their states conditions of
// its commit.
func (s *Service) members(ctx context.Context, lease string) (m members, err error) {
	if m.reservations, err = membersOf(ctx, s.Reservations, lease); err == nil {
		m.events, err = membersOf(ctx, s.Events, lease)
	}
	return m, err
}

func membersOf[S comparable, T any](
	ctx context.Context, m *lifecycle.Manager[S, Call, T], lease string,
) (list []lifecycle.Record[S, T], err error) {
	for rec, err := range m.All(ctx, lifecycle.Select[S]{Prefix: lease + "/", Limit: 32}) {
		if err != nil {
			return nil, err
		}
		list = append(list, rec)
	}
	// The tenth reservation comes after the second.
	slices.SortStableFunc(list, func(a, b lifecycle.Record[S, T]) int { return len(a.ID) - len(b.ID) })
	return list, nil
}

// memberID returns the id of a reservation or an event. The number of the operation
// that has created the lease is part of it: a late call about a deleted lease does
// not find the reservations of a later lease with the same id.
func memberID(ch *lifecycle.StoredChange, name string) string {
	return fmt.Sprintf("%s/%d/%s", ch.To.ID, ch.To.Operation, name)
}

// beforeCommit adds to the commit of a change of a lease: its reservations and
// events are created and removed with it, the event of a method moves with the status,
// and the combination of all statuses is checked and made a condition of the commit.
//
// The start of a delete adds nothing, because a delete is allowed in every
// combination. A change to ERROR has no condition: a failure that cannot be written
// is worse than a combination that no table has, and the document has no line for
// ERROR. An override has no condition either.
func (s *Service) beforeCommit(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
	to := LeaseState(ch.To.State)
	if !ch.Remove && to == LeaseDeleting {
		return nil, nil
	}
	m, err := s.members(ctx, ch.To.ID)
	if err != nil {
		return nil, err
	}
	var tx lifecycle.Tx
	if ch.Remove {
		s.removeMembers(&tx, m)
		return &tx, nil
	}
	var spec LeaseSpec
	if len(ch.To.Payload) > 0 {
		if err := json.Unmarshal(ch.To.Payload, &spec); err != nil {
			return nil, err
		}
	}
	if ch.From == "" {
		if err := checkID(ch.To.ID); err != nil { // a manager may create a lease too
			return nil, err
		}
		s.addMembers(&tx, ch, spec)
		return &tx, nil
	}
	if ch.To.Event == lifecycle.Overridden {
		s.overrideEvents(&tx, m, ch)
		return &tx, nil
	}
	updated := LeaseState(ch.From) == LeaseUpdating && Call(ch.To.Event) == Done
	related := s.moveReservations(&tx, m, spec, updated)
	related = append(related, s.moveEvents(&tx, m, ch, spec, updated)...)
	if to == LeaseError {
		return &tx, nil
	}
	conditions, err := Relationships.Require(to, related...)
	tx.Require(conditions...)
	return &tx, err
}

// moveReservations changes the amounts of reservations whose lease was updated. It
// returns all reservations for the check of the combination.
func (s *Service) moveReservations(tx *lifecycle.Tx, m members, spec LeaseSpec, updated bool) (related []relation.Related) {
	for _, r := range m.reservations {
		request := spec.request(r.Payload.Number)
		if !updated || request == nil || request.Amount == r.Payload.Amount || r.State == ReservationDeleted {
			related = append(related, reservationRole.Saw(r.ID, r.State))
			continue
		}
		amount := request.Amount
		s.Reservations.In(tx).Fire(r.ID, Update, Manager, &lifecycle.Change[ReservationSpec]{
			Force: true, Expect: r.Revision, // the combination is checked with the state of this revision
			Edit: func(r *ReservationSpec) error { r.Amount = amount; return nil },
		})
		related = append(related, reservationRole.Moves(r.ID, r.State))
	}
	return related
}

// moveEvents moves the event of the method, and changes the times of events whose
// lease was updated. It returns the events for the check of the combination.
func (s *Service) moveEvents(
	tx *lifecycle.Tx, m members, ch *lifecycle.StoredChange, spec LeaseSpec, updated bool,
) (related []relation.Related) {
	from, to := LeaseState(ch.From), LeaseState(ch.To.State)
	for _, e := range m.events {
		role, due := eventRoles[e.Payload.Type], dueAt(spec, e.Payload.Type)
		call, status := eventMove(from, to, e.Payload.Type, e.State)
		switch {
		case call != "" && e.State.IsValidTransition(status):
			s.Events.In(tx).Fire(e.ID, call, Manager, &lifecycle.Change[EventSpec]{Reason: ch.To.Reason})
			related = append(related, role.Moves(e.ID, status))
		case updated && e.State == EventUndone && !e.Payload.Time.Equal(due):
			s.Events.In(tx).Fire(e.ID, Update, Manager, &lifecycle.Change[EventSpec]{
				Force: true, Edit: func(e *EventSpec) error { e.Time = due; return nil },
			})
			related = append(related, role.Moves(e.ID, e.State))
		default:
			related = append(related, role.Saw(e.ID, e.State))
		}
	}
	return related
}

// eventMove returns the call and the new status of an event whose lease changes its
// status; "" if the event does not move.
func eventMove(from, to LeaseState, eventType string, at EventState) (Call, EventState) {
	switch {
	case to == LeaseError && at == EventInProgress:
		return Fail, EventError
	case to == LeaseStarting && eventType == StartLease, to == LeaseTerminating && eventType == EndLease:
		return Start, EventInProgress
	case from == LeaseStarting && to == LeaseActive && eventType == StartLease,
		from == LeaseTerminating && to == LeaseTerminated && eventType == EndLease:
		return Done, EventDone
	}
	return "", ""
}

// overrideEvents moves the events of a lease that an operator has moved to statuses which
// the line of its new status allows. No method is at work on the lease any more, so an event
// that stayed IN_PROGRESS would be neither executed nor ended.
func (s *Service) overrideEvents(tx *lifecycle.Tx, m members, ch *lifecycle.StoredChange) {
	line := combinationOf(LeaseState(ch.To.State))
	for _, e := range m.events {
		allowed := line.Start
		if e.Payload.Type == EndLease {
			allowed = line.End
		}
		if slices.Contains(allowed, e.State) {
			continue
		}
		to := allowed[0]
		if line.Lease == LeaseError {
			to = EventError // as after a failure of the method
		}
		s.Events.In(tx).Override(e.ID, to, ch.To.Actor, ch.To.Reason, &lifecycle.Change[EventSpec]{Expect: e.Revision})
	}
}

// dueAt returns the time of an event of a lease.
func dueAt(spec LeaseSpec, eventType string) time.Time {
	if eventType == StartLease {
		return spec.Start
	}
	return spec.End
}

// addMembers adds the reservations and events of a new lease, in the first statuses of the
// line in the table of relationships.
func (s *Service) addMembers(tx *lifecycle.Tx, ch *lifecycle.StoredChange, spec LeaseSpec) {
	line := combinationOf(LeaseState(ch.To.State))
	for i, r := range spec.Reservations {
		id := memberID(ch, fmt.Sprint("reservation-", i+1))
		s.Reservations.In(tx).Add(id, line.Reservations[0], Manager, ReservationSpec{Lease: ch.To.ID, Number: i + 1, Request: r}, nil)
	}
	addEvent := func(t string, status EventState) {
		s.Events.In(tx).Add(memberID(ch, t), status, Manager, EventSpec{Lease: ch.To.ID, Type: t, Time: dueAt(spec, t)}, nil)
	}
	addEvent(StartLease, line.Start[0])
	addEvent(EndLease, line.End[0])
}

// removeMembers removes all reservations and events of a lease.
func (s *Service) removeMembers(tx *lifecycle.Tx, m members) {
	for _, r := range m.reservations {
		s.Reservations.In(tx).Fire(r.ID, Remove, Manager, &lifecycle.Change[ReservationSpec]{Force: true})
	}
	for _, e := range m.events {
		s.Events.In(tx).Fire(e.ID, Remove, Manager, &lifecycle.Change[EventSpec]{Force: true})
	}
}
