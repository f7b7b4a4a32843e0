package blazar

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/relation"
)

type (
	reservation = lifecycle.Record[ReservationState, ReservationSpec]
	event       = lifecycle.Record[EventState, EventSpec]
)

// parts are the reservations and events of a lease.
type parts struct {
	reservations []reservation
	events       []event
}

// parts reads them. A caller that decides on them makes their states conditions of
// its commit.
func (s *Service) parts(ctx context.Context, lease string) (p parts, err error) {
	if p.reservations, err = members(ctx, s.Reservations, lease); err == nil {
		p.events, err = members(ctx, s.Events, lease)
	}
	return p, err
}

func members[S comparable, T any](ctx context.Context, m *lifecycle.Manager[S, Call, T], lease string) (list []lifecycle.Record[S, T], err error) {
	for rec, err := range m.All(ctx, lifecycle.Select[S]{After: lease + "/", Limit: 32}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(rec.ID, lease+"/") {
			break
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
func memberID(lease string, made lifecycle.OpID, name string, args ...any) string {
	return fmt.Sprintf("%s/%d/", lease, made) + fmt.Sprintf(name, args...)
}

// beforeCommit adds to the commit of a change of a lease: its reservations and
// events come and go with it, the event of a method moves with the status, and the
// combination of all statuses is checked and made a condition of the commit.
//
// The begin of a delete adds nothing, because a delete is allowed in every
// combination. A change to ERROR has no condition: a failure that cannot be written
// is worse than a combination that no table has, and the document has no line for
// ERROR.
func (s *Service) beforeCommit(ctx context.Context, ch *lifecycle.StoredChange) (*lifecycle.Tx, error) {
	to := LeaseState(ch.To.State)
	var tx lifecycle.Tx
	switch {
	case ch.Remove:
		return &tx, s.removeMembers(ctx, &tx, ch.To.ID)
	case to == LeaseDeleting || ch.To.Event == lifecycle.Overridden:
		return nil, nil
	}
	spec, err := content[LeaseSpec](ch)
	if err != nil {
		return nil, err
	}
	if ch.From == "" {
		s.addMembers(&tx, ch, spec)
		return &tx, nil
	}
	p, err := s.parts(ctx, ch.To.ID)
	if err != nil {
		return nil, err
	}
	updated := LeaseState(ch.From) == LeaseUpdating && Call(ch.To.Event) == Done
	related := s.moveReservations(&tx, p.reservations, spec, updated)
	related = append(related, s.moveEvents(&tx, p.events, ch, spec, updated)...)
	if updated {
		s.addNotice(&tx, ch, spec, p.events)
	}
	if to == LeaseError {
		return &tx, nil
	}
	conditions, err := Relationships.Require(to, related...)
	tx.Require(conditions...)
	return &tx, err
}

// moveReservations changes the amounts of reservations whose lease was updated. It
// returns all reservations for the check of the combination.
func (s *Service) moveReservations(tx *lifecycle.Tx, reservations []reservation, spec LeaseSpec, updated bool) (related []relation.Related) {
	for i, r := range reservations {
		if !updated || i >= len(spec.Reservations) || spec.Reservations[i].Amount == r.Payload.Amount || r.State == ReservationDeleted {
			related = append(related, reservationRole.Saw(r.ID, r.State))
			continue
		}
		amount := spec.Reservations[i].Amount
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
func (s *Service) moveEvents(tx *lifecycle.Tx, events []event, ch *lifecycle.StoredChange, spec LeaseSpec, updated bool) (related []relation.Related) {
	from, to := LeaseState(ch.From), LeaseState(ch.To.State)
	for _, e := range events {
		if e.Payload.Type == BeforeEndLease && to != LeaseUpdating && !updated {
			continue
		}
		role := eventRoles[e.Payload.Type]
		call, status := moves(from, to, &e)
		switch due := dueAt(spec, e.Payload.Type); {
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

// moves returns what happens to an event of a lease that changes its status.
func moves(from, to LeaseState, e *event) (Call, EventState) {
	t := e.Payload.Type
	switch {
	case to == LeaseError && e.State == EventInProgress && t != BeforeEndLease:
		return Fail, EventError
	case to == LeaseStarting && t == StartLease, to == LeaseTerminating && t == EndLease:
		return Start, EventInProgress
	case from == LeaseStarting && to == LeaseActive && t == StartLease,
		from == LeaseTerminating && to == LeaseTerminated && t == EndLease:
		return Done, EventDone
	}
	return "", ""
}

// dueAt is when a lease has its event of a type.
func dueAt(spec LeaseSpec, eventType string) time.Time {
	switch eventType {
	case StartLease:
		return spec.Start
	case EndLease:
		return spec.End
	}
	return spec.BeforeEnd
}

// addMembers adds the reservations and events of a lease that is created.
func (s *Service) addMembers(tx *lifecycle.Tx, ch *lifecycle.StoredChange, spec LeaseSpec) {
	lease := ch.To.ID
	for i, r := range spec.Reservations {
		id := memberID(lease, ch.To.Operation, "reservation-%d", i+1)
		s.Reservations.In(tx).Add(id, Manager, ReservationSpec{Lease: lease, Resource: r.Resource, Amount: r.Amount}, nil)
	}
	for _, t := range []string{StartLease, EndLease, BeforeEndLease} {
		if due := dueAt(spec, t); t != BeforeEndLease || !due.IsZero() {
			s.addEvent(tx, ch, EventSpec{Lease: lease, Type: t, Time: due})
		}
	}
}

func (s *Service) addEvent(tx *lifecycle.Tx, ch *lifecycle.StoredChange, e EventSpec) {
	s.Events.In(tx).Add(memberID(e.Lease, ch.To.Operation, "%s", e.Type), Manager, e, nil)
}

// removeMembers removes all reservations and events of a lease.
func (s *Service) removeMembers(ctx context.Context, tx *lifecycle.Tx, lease string) error {
	p, err := s.parts(ctx, lease)
	if err != nil {
		return err
	}
	for _, r := range p.reservations {
		s.Reservations.In(tx).Fire(r.ID, Remove, Manager, &lifecycle.Change[ReservationSpec]{Force: true})
	}
	for _, e := range p.events {
		s.Events.In(tx).Fire(e.ID, Remove, Manager, &lifecycle.Change[EventSpec]{Force: true})
	}
	return nil
}

// addNotice adds an event before the end of a lease if the lease has none, or if
// its end was postponed after that event.
func (s *Service) addNotice(tx *lifecycle.Tx, ch *lifecycle.StoredChange, spec LeaseSpec, events []event) {
	if !spec.BeforeEnd.After(s.config.Now()) {
		return
	}
	for _, e := range events {
		if e.Payload.Type == BeforeEndLease && (e.State == EventUndone || !spec.BeforeEnd.After(e.Payload.Time)) {
			return
		}
	}
	s.addEvent(tx, ch, EventSpec{Lease: ch.To.ID, Type: BeforeEndLease, Time: spec.BeforeEnd})
}

// content returns the payload of an object after a change.
func content[T any](ch *lifecycle.StoredChange) (payload T, err error) {
	if len(ch.To.Payload) > 0 {
		err = json.Unmarshal(ch.To.Payload, &payload)
	}
	return payload, err
}
