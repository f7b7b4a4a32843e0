package blazar

import "github.com/interlock-go/interlock/fsm"

// IsStable reports whether a lease rests in this status until a method of the
// manager is called: PENDING, ACTIVE, TERMINATED and ERROR.
func (s LeaseState) IsStable() bool { return Lease.Kind(s) != fsm.Absent && Lease.Kind(s).Resting() }

// IsTransitional reports whether a method is at work on a lease in this status:
// CREATING, STARTING, UPDATING, TERMINATING and DELETING.
func (s LeaseState) IsTransitional() bool { return Lease.Kind(s) == fsm.Transitional }

// IsValidTransition reports whether a status can follow this one, by the rows of the
// document's figure. From UPDATING a lease returns to its origin, which may be any stable
// status.
func (s LeaseState) IsValidTransition(to LeaseState) bool {
	return follows(Lease, len(leaseFigure()), s, to)
}

// IsValidTransition reports whether a status can follow this one.
func (s ReservationState) IsValidTransition(to ReservationState) bool {
	return follows(Reservation, len(reservationFigure()), s, to)
}

// IsValidTransition reports whether a status can follow this one.
func (s EventState) IsValidTransition(to EventState) bool {
	return follows(Event, len(eventFigure()), s, to)
}

// follows reports whether one of the first rows of a machine leads from a status to another.
func follows[S ~string, T any](m *fsm.Machine[S, Call, T], first int, from, to S) bool {
	source, target := m.StateIndex(from), m.StateIndex(to)
	for e := range m.Table().Edges() {
		if e.Row < first && e.From == source && e.To == target {
			return true
		}
	}
	return false
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
