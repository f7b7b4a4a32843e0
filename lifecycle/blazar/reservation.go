package blazar

import (
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// ReservationSpec is the content of a reservation. The zero value reserves
// nothing. A ReservationSpec is a plain value.
type ReservationSpec struct {
	Lease   string // id of the lease that it is part of
	Number  int    // of its request in [LeaseSpec].Reservations, from 1; 0: an operator has added it
	Request        // its ResourceID is the result of Plugin.Reserve, and may be empty
	Flags
}

// EventSpec is the content of an event. The zero value belongs to no event. An
// EventSpec is a plain value.
type EventSpec struct {
	Lease string    // id of the lease
	Type  string    // StartLease or EndLease
	Time  time.Time // when it is due
}

// Reservation is the machine of reservations with the payload [ReservationSpec]. It is
// immutable and safe for concurrent use.
var Reservation = fsm.Must[ReservationSpec](reservationTable())

// Event is the machine of events with the payload [EventSpec]. It is immutable and safe
// for concurrent use.
var Event = fsm.Must[EventSpec](eventTable())

// The notes of rows that change the content but no status, and of removals.
const (
	noteUpdate = "beyond the document: the content changes with that of the lease, the status does not"
	noteRemove = "beyond the document: removed with the lease"
)

func reservationTable() fsm.Spec[ReservationState, Call] {
	spec := fsm.Spec[ReservationState, Call]{
		Name: "reservation", Title: "Blazar: reservation", Initial: ReservationPending,
		Actors: []fsm.Actor{Manager, Observer},
		States: []fsm.State[ReservationState]{
			{Name: ReservationPending, Doc: "created, waits for the start of its lease"},
			{Name: ReservationActive},
			{Name: ReservationDeleted, Kind: fsm.Final, Doc: "the resources are released"},
			{Name: ReservationError, Kind: fsm.Failed, Doc: "an unrecoverable failure happened to the resources"},
			{Name: ReservationAbsent, Kind: fsm.Absent},
		},
		Rows: reservationFigure(),
	}
	for _, s := range []ReservationState{ReservationPending, ReservationActive, ReservationError} {
		spec.Rows = append(spec.Rows,
			fsm.Move(s, Observe, s).By(Observer).Note("beyond the document: the flags change, the status does not"),
			fsm.Move(s, Update, s).By(Manager).OnlyForced().Note(noteUpdate),
		)
	}
	spec.Rows = append(spec.Rows, fsm.Move(ReservationPending, Remove, ReservationAbsent).
		AlsoFrom(ReservationActive, ReservationDeleted, ReservationError).By(Manager).OnlyForced().Note(noteRemove))
	return spec
}

// reservationFigure are the rows of the document's figure.
func reservationFigure() []fsm.Row[ReservationState, Call] {
	return fsm.Rows(
		fsm.Move(ReservationPending, Start, ReservationActive).By(Manager),
		fsm.Move(ReservationPending, Delete, ReservationDeleted).AlsoFrom(ReservationActive, ReservationError).By(Manager),
		fsm.Move(ReservationPending, Fail, ReservationError).AlsoFrom(ReservationActive).By(Manager),
	)
}

func eventTable() fsm.Spec[EventState, Call] {
	return fsm.Spec[EventState, Call]{
		Name: "event", Title: "Blazar: event of a lease", Initial: EventUndone,
		Actors: []fsm.Actor{Manager},
		States: []fsm.State[EventState]{
			{Name: EventUndone, Doc: "waits until it is due"},
			{Name: EventInProgress, Kind: fsm.Transitional, Target: new(EventDone)},
			{Name: EventDone, Kind: fsm.Final},
			{Name: EventError, Kind: fsm.Final, Doc: "failed; it is not tried again"},
			{Name: EventAbsent, Kind: fsm.Absent},
		},
		Rows: append(eventFigure(),
			fsm.Move(EventInProgress, TimedOut, EventError).After(MethodTimeout).
				Note("beyond the document: the manager died"),
			fsm.Move(EventUndone, Update, EventUndone).By(Manager).OnlyForced().Note(noteUpdate),
			fsm.Move(EventUndone, Fail, EventError).By(Manager).OnlyForced().
				Note("beyond the document: it can never be executed, so it is never IN_PROGRESS"),
			fsm.Move(EventUndone, Remove, EventAbsent).AlsoFrom(EventInProgress, EventDone, EventError).
				By(Manager).OnlyForced().Note(noteRemove),
		),
	}
}

// eventFigure are the rows of the document's figure.
func eventFigure() []fsm.Row[EventState, Call] {
	return fsm.Rows(
		fsm.Move(EventUndone, Start, EventInProgress).By(Manager),
		fsm.Move(EventInProgress, Done, EventDone).By(Manager),
		fsm.Move(EventInProgress, Fail, EventError).By(Manager),
	)
}
