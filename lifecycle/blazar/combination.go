package blazar

import (
	"slices"

	"github.com/interlock-go/interlock/lifecycle/relation"
)

// Combination is one line of the document's table of relationships: the statuses of
// reservations and events that one status of their lease requires. A nil list allows
// every status. The zero value is not a line.
type Combination struct {
	Lease        LeaseState
	Reservations []ReservationState // of each reservation of the lease
	Start        []EventState       // of its event start_lease
	End          []EventState       // of its event end_lease
}

// Combinations returns the table of relationships, one line for each status of
// a lease, in a copy that the caller may change. The document has no line for ERROR;
// here its reservations have failed, and so has an event unless the failure was outside
// of both.
func Combinations() []Combination {
	type (
		r = []ReservationState
		e = []EventState
	)
	return []Combination{
		{LeaseCreating, r{ReservationPending}, e{EventUndone}, e{EventUndone}},
		{LeasePending, r{ReservationPending}, e{EventUndone}, e{EventUndone}},
		{LeaseStarting, r{ReservationPending, ReservationActive, ReservationError}, e{EventInProgress}, e{EventUndone}},
		{LeaseActive, r{ReservationActive}, e{EventDone}, e{EventUndone}},
		{LeaseTerminating, r{ReservationActive, ReservationDeleted, ReservationError}, e{EventDone}, e{EventInProgress}},
		{LeaseTerminated, r{ReservationDeleted}, e{EventDone}, e{EventDone}},
		{LeaseDeleting, nil, nil, nil},
		{LeaseUpdating, nil, e{EventUndone, EventDone, EventError}, e{EventUndone, EventDone, EventError}},
		{LeaseError, r{ReservationError}, e{EventDone, EventError}, e{EventUndone, EventError}},
	}
}

// IsValidCombination reports whether a lease may have this status with these
// statuses of its reservations and of its events start_lease and end_lease, by the
// line of the status in [Combinations]. It is false for a name that is not a status.
func (s LeaseState) IsValidCombination(reservations []ReservationState, start, end EventState) bool {
	line := combinationOf(s)
	return line.Lease != "" && line.Allows(reservations, start, end)
}

// combinationOf returns the line of a status; the zero Combination if there is none.
func combinationOf(s LeaseState) Combination {
	for _, c := range Combinations() {
		if c.Lease == s {
			return c
		}
	}
	return Combination{}
}

// Allows reports whether these statuses satisfy the line. A lease without
// reservations satisfies every condition on them.
func (c Combination) Allows(reservations []ReservationState, start, end EventState) bool {
	for _, r := range reservations {
		if c.Reservations != nil && !slices.Contains(c.Reservations, r) {
			return false
		}
	}
	return (c.Start == nil || slices.Contains(c.Start, start)) && (c.End == nil || slices.Contains(c.End, end))
}

// The roles of the reservations and events of a lease.
var (
	reservationRole = relation.NewRole("reservation", Reservation)
	eventRoles      = map[string]relation.Role[EventState]{
		StartLease: relation.NewRole(StartLease, Event),
		EndLease:   relation.NewRole(EndLease, Event),
	}
)

// Relationships is [Combinations] as a relation. A [Service] checks it in the commit
// of every transition, except to DELETING and ERROR. A lease needs exactly one event
// of each type for which the document requires a status. Relationships is immutable and
// safe for concurrent use.
var Relationships = relation.Must(relationships())

func relationships() relation.Spec[LeaseState] {
	spec := relation.Spec[LeaseState]{Name: "relationships between statuses", Parent: Lease}
	for _, c := range Combinations() {
		row := relation.Row[LeaseState]{States: []LeaseState{c.Lease}}
		if c.Reservations != nil {
			row.Need = append(row.Need, reservationRole.All(c.Reservations...))
		}
		switch {
		case c.Lease == LeaseUpdating: // also without events
			row.Need = append(row.Need, eventRoles[StartLease].None(EventInProgress), eventRoles[EndLease].None(EventInProgress))
		case c.Start != nil:
			row.Need = append(row.Need, eventRoles[StartLease].One(c.Start...), eventRoles[EndLease].One(c.End...))
		}
		spec.Rows = append(spec.Rows, row)
	}
	return spec
}
