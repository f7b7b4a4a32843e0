package blazar

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// IsStable reports whether a lease rests in this status until a method of the
// manager is called: PENDING, ACTIVE, TERMINATED and ERROR.
func (s LeaseState) IsStable() bool { return Lease.Kind(s) != fsm.Absent && Lease.Kind(s).Resting() }

// IsTransitional reports whether a method is at work on a lease in this status:
// CREATING, STARTING, UPDATING, TERMINATING and DELETING.
func (s LeaseState) IsTransitional() bool { return Lease.Kind(s) == fsm.Transitional }

// Next returns the statuses that can follow this one, in the order of the
// declaration, by the rows of the document's figure. From UPDATING a lease returns to
// its origin, which may be any stable status.
func (s LeaseState) Next() []LeaseState { return next(Lease, len(leaseFigure()), s) }

// IsValidTransition reports whether a status can follow this one, as in
// [LeaseState.Next].
func (s LeaseState) IsValidTransition(to LeaseState) bool { return slices.Contains(s.Next(), to) }

// Next returns the statuses that can follow this one, in the order of the
// declaration.
func (s ReservationState) Next() []ReservationState {
	return next(Reservation, len(reservationTable().Rows), s)
}

// IsValidTransition reports whether a status can follow this one.
func (s ReservationState) IsValidTransition(to ReservationState) bool {
	return slices.Contains(s.Next(), to)
}

// Next returns the statuses that can follow this one, in the order of the
// declaration.
func (s EventState) Next() []EventState { return next(Event, len(eventTable().Rows), s) }

// IsValidTransition reports whether a status can follow this one.
func (s EventState) IsValidTransition(to EventState) bool { return slices.Contains(s.Next(), to) }

// next returns the statuses that the first rows of a machine lead to from a status.
func next[S ~string, T any](m *fsm.Machine[S, Call, T], first int, from S) (list []S) {
	rows := slices.Collect(m.Rows())[:first]
	for to := range m.States() {
		if slices.ContainsFunc(rows, func(row fsm.Row[S, Call]) bool {
			if !slices.Contains(row.From, from) {
				return false
			}
			return row.To == to || row.Then == fsm.ThenReturn && slices.Contains(origins(m, from), to)
		}) {
			list = append(list, to)
		}
	}
	return list
}

// origins returns the origins that an object in a transitional status can have.
func origins[S ~string, T any](m *fsm.Machine[S, Call, T], s S) (list []S) {
	t := m.Table()
	for _, i := range t.Origins()[m.StateIndex(s)] {
		list = append(list, m.StateAt(i))
	}
	return list
}

// DeriveStatus returns the stable status of a lease that follows from the
// statuses of its reservations and of its events start_lease and end_lease:
//
//	start_lease  end_lease  reservations
//	UNDONE       UNDONE     all pending   PENDING
//	DONE         UNDONE     all active    ACTIVE
//	DONE         DONE       all deleted   TERMINATED
//	everything else                       ERROR
func DeriveStatus(reservations []ReservationState, start, end EventState) LeaseState {
	for _, c := range Combinations() {
		if c.Lease.IsStable() && c.Lease != LeaseError && c.Allows(reservations, start, end) {
			return c.Lease
		}
	}
	return LeaseError
}
