package blazar

import (
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// ReservationSpec is the content of a reservation. The zero value reserves
// nothing. A ReservationSpec is a plain value.
type ReservationSpec struct {
	Lease      string // id of the lease that it is part of
	Resource   string // the type of what is reserved, such as "physical:host"
	Amount     int    // how many
	ResourceID string // what Plugin.Reserve has returned; may be empty

	// The document has flags for a lease that is short of resources, instead of
	// further statuses: what was reserved is not there, or is something else.
	MissingResources bool
	ResourcesChanged bool
}

// EventSpec is the content of an event. The zero value is no event's. An
// EventSpec is a plain value.
type EventSpec struct {
	Lease string    // id of the lease that it is about
	Type  string    // StartLease, EndLease or BeforeEndLease
	Time  time.Time // when it is due
}

// Reservation is the machine of reservations with the payload
// [ReservationSpec]. It is immutable and safe for concurrent use.
var Reservation = fsm.Must[ReservationSpec](ReservationTable())

// Event is the machine of events with the payload [EventSpec]. It is immutable
// and safe for concurrent use.
var Event = fsm.Must[EventSpec](EventTable())

// ReservationTable returns the specification of [Reservation], for a machine
// with a payload of your own. A reservation comes into being pending, together
// with its lease.
func ReservationTable() fsm.Spec[ReservationState, Call] {
	return fsm.Spec[ReservationState, Call]{
		Name: "reservation", Title: "Blazar: reservation", Initial: ReservationPending,
		Actors: []fsm.Actor{Manager},
		States: []fsm.State[ReservationState]{
			{Name: ReservationPending, Doc: "created, waits for the start of its lease"},
			{Name: ReservationActive},
			{Name: ReservationDeleted, Kind: fsm.Final, Doc: "the resources are free again"},
			{Name: ReservationError, Kind: fsm.Failed, Doc: "an unrecoverable failure happened to the resources"},
		},
		Rows: fsm.Rows(
			fsm.Move(ReservationPending, Start, ReservationActive).By(Manager),
			fsm.Move(ReservationPending, Delete, ReservationDeleted).AlsoFrom(ReservationActive, ReservationError).By(Manager),
			fsm.Move(ReservationPending, Fail, ReservationError).AlsoFrom(ReservationActive).By(Manager),
		),
	}
}

// EventTable returns the specification of [Event], for a machine with a payload
// of your own. An event comes into being UNDONE, together with its lease.
func EventTable() fsm.Spec[EventState, Call] {
	return fsm.Spec[EventState, Call]{
		Name: "event", Title: "Blazar: event of a lease", Initial: EventUndone,
		Actors: []fsm.Actor{Manager},
		States: []fsm.State[EventState]{
			{Name: EventUndone, Doc: "waits until it is due"},
			{Name: EventInProgress, Kind: fsm.Transitional, Target: new(EventDone)},
			{Name: EventDone, Kind: fsm.Final},
			{Name: EventError, Kind: fsm.Final, Doc: "tried once, and not again"},
		},
		Rows: fsm.Rows(
			fsm.Move(EventUndone, Start, EventInProgress).By(Manager),
			fsm.Move(EventInProgress, Done, EventDone).By(Manager),
			fsm.Move(EventInProgress, Fail, EventError).By(Manager),

			fsm.Move(EventInProgress, TimedOut, EventError).After(MethodTimeout).
				Note("beyond the document: the manager died"),
		),
	}
}
