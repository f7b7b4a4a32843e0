package blazar

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
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

// parts reads them. Who acts on what is read pins it.
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

// memberID is the id of a reservation or an event. The number of the operation
// that has made the lease is part of it, so that whoever still speaks of a lease
// of this id that was deleted does not find the reservations of another one.
func memberID(lease string, made lifecycle.OpID, name string, args ...any) string {
	return fmt.Sprintf("%s/%d/", lease, made) + fmt.Sprintf(name, args...)
}

// along says what goes along with a change of a lease: its reservations and events
// come and go with it, the event of a method moves with the status, and the
// combination of all statuses is checked and pinned.
//
// A delete needs nothing of all that, whatever the others are. Nor does ERROR: a
// failure that could not be written down would be worse than a combination that no
// table has, and the document has no line for it.
func (s *Service) along(ctx context.Context, ch *lifecycle.StoredChange) (lifecycle.Along, error) {
	to := LeaseState(ch.To.State)
	switch {
	case ch.From == "":
		return s.comes(ch)
	case ch.Remove:
		return s.goes(ctx, ch.To.ID)
	case to == LeaseDeleting || ch.To.Event == lifecycle.Overridden:
		return lifecycle.Along{}, nil
	}
	spec, err := leaseSpec(ch)
	if err != nil {
		return lifecycle.Along{}, err
	}
	p, err := s.parts(ctx, ch.To.ID)
	if err != nil {
		return lifecycle.Along{}, err
	}
	var along lifecycle.Along
	var related []lifecycle.Related
	updated := LeaseState(ch.From) == LeaseUpdating && Call(ch.To.Event) == Done
	for i, r := range p.reservations {
		if updated && i < len(spec.Reservations) && spec.Reservations[i].Amount != r.Payload.Amount && r.State != ReservationDeleted {
			amount := spec.Reservations[i].Amount
			along.Parts = append(along.Parts, s.Reservations.Firing(r.ID, Update, Manager, &lifecycle.Change[ReservationSpec]{
				Force: true, Expect: r.Revision, // it moves on to where it is, which is what the combination is checked with
				Edit: func(r *ReservationSpec) error { r.Amount = amount; return nil },
			}))
			related = append(related, reservationRole.Moves(r.ID, r.State))
			continue
		}
		related = append(related, reservationRole.Saw(r.ID, r.State))
	}
	for _, e := range p.events {
		if e.Payload.Type == BeforeEndLease && to != LeaseUpdating && !updated {
			continue
		}
		role := eventRoles[e.Payload.Type]
		call, status := moves(LeaseState(ch.From), to, &e)
		switch due := dueAt(spec, e.Payload.Type); {
		case call != "" && e.State.IsValidTransition(status):
			along.Parts = append(along.Parts, s.Events.Firing(e.ID, call, Manager, &lifecycle.Change[EventSpec]{Reason: ch.To.Reason}))
			related = append(related, role.Moves(e.ID, status))
		case updated && e.State == EventUndone && !e.Payload.Time.Equal(due):
			along.Parts = append(along.Parts, s.Events.Firing(e.ID, Update, Manager, &lifecycle.Change[EventSpec]{
				Force: true, Edit: func(e *EventSpec) error { e.Time = due; return nil },
			}))
			related = append(related, role.Moves(e.ID, e.State))
		default:
			related = append(related, role.Saw(e.ID, e.State))
		}
	}
	if updated {
		along.Parts = append(along.Parts, s.anotherNotice(ch, spec, p.events)...)
	}
	if to != LeaseError {
		along.Require, err = Relationships.Require(to, related...)
	}
	return along, err
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

// comes is what a lease is made with.
func (s *Service) comes(ch *lifecycle.StoredChange) (along lifecycle.Along, err error) {
	spec, err := leaseSpec(ch)
	if err != nil {
		return along, err
	}
	lease := ch.To.ID
	for i, r := range spec.Reservations {
		id := memberID(lease, ch.To.Operation, "reservation-%d", i+1)
		along.Parts = append(along.Parts, s.Reservations.Adding(id, Manager,
			ReservationSpec{Lease: lease, Resource: r.Resource, Amount: r.Amount}, nil))
	}
	for _, t := range []string{StartLease, EndLease, BeforeEndLease} {
		if due := dueAt(spec, t); t != BeforeEndLease || !due.IsZero() {
			along.Parts = append(along.Parts, s.Events.Adding(memberID(lease, ch.To.Operation, "%s", t), Manager,
				EventSpec{Lease: lease, Type: t, Time: due}, nil))
		}
	}
	return along, nil
}

// goes removes everything that is the lease's.
func (s *Service) goes(ctx context.Context, lease string) (along lifecycle.Along, err error) {
	p, err := s.parts(ctx, lease)
	for _, r := range p.reservations {
		along.Parts = append(along.Parts, s.Reservations.Firing(r.ID, Remove, Manager, &lifecycle.Change[ReservationSpec]{Force: true}))
	}
	for _, e := range p.events {
		along.Parts = append(along.Parts, s.Events.Firing(e.ID, Remove, Manager, &lifecycle.Change[EventSpec]{Force: true}))
	}
	return along, err
}

// anotherNotice adds an event before the end of a lease that has had its own
// already, or none, when its end was put off.
func (s *Service) anotherNotice(ch *lifecycle.StoredChange, spec LeaseSpec, events []event) []lifecycle.AnyPart {
	if !spec.BeforeEnd.After(s.config.Now()) {
		return nil
	}
	for _, e := range events {
		if e.Payload.Type == BeforeEndLease && (e.State == EventUndone || !spec.BeforeEnd.After(e.Payload.Time)) {
			return nil
		}
	}
	return []lifecycle.AnyPart{s.Events.Adding(memberID(ch.To.ID, ch.To.Operation, "%s", BeforeEndLease), Manager,
		EventSpec{Lease: ch.To.ID, Type: BeforeEndLease, Time: spec.BeforeEnd}, nil)}
}

// leaseSpec is the content of a lease after a change.
func leaseSpec(ch *lifecycle.StoredChange) (spec LeaseSpec, err error) {
	if ch.To.Payload == nil {
		return spec, nil
	}
	data, err := ch.To.Payload.Bytes()
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &spec)
	}
	return spec, err
}
