package blazar

import "github.com/interlock-go/interlock/fsm"

// ReservationRecord is the machine of the reservations that a [Service] keeps:
// [Reservation], and what its records need besides. Reservations go with their
// lease, so that there is a state in which they do not exist; what is reserved
// can be updated; and an observer can say that it is missing. None of that is a
// change from one status of the document to another. It is immutable and safe for
// concurrent use.
var ReservationRecord = fsm.Must[ReservationSpec](reservationRecordTable())

// EventRecord is the machine of the events that a [Service] keeps: [Event], and
// what its records need besides, as in [ReservationRecord]. It is immutable and
// safe for concurrent use.
var EventRecord = fsm.Must[EventSpec](eventRecordTable())

func reservationRecordTable() fsm.Spec[ReservationState, Call] {
	spec := ReservationTable()
	spec.Actors = append(spec.Actors, Observer)
	spec.States = append(spec.States, fsm.State[ReservationState]{Name: ReservationAbsent, Kind: fsm.Absent})
	for _, s := range []ReservationState{ReservationPending, ReservationActive, ReservationError} {
		spec.Rows = append(spec.Rows,
			fsm.Move(s, Observe, s).By(Observer).Note("beyond the document: the flags change, and no status"),
			fsm.Move(s, Update, s).By(Manager).OnlyForced().Note(updated),
		)
	}
	spec.Rows = append(spec.Rows, fsm.Move(ReservationPending, Remove, ReservationAbsent).
		AlsoFrom(ReservationActive, ReservationDeleted, ReservationError).By(Manager).OnlyForced().Note(removed))
	return spec
}

func eventRecordTable() fsm.Spec[EventState, Call] {
	spec := EventTable()
	spec.States = append(spec.States, fsm.State[EventState]{Name: EventAbsent, Kind: fsm.Absent})
	spec.Rows = append(spec.Rows,
		fsm.Move(EventUndone, Update, EventUndone).By(Manager).OnlyForced().Note(updated),
		fsm.Move(EventUndone, Remove, EventAbsent).AlsoFrom(EventInProgress, EventDone, EventError).
			By(Manager).OnlyForced().Note(removed),
	)
	return spec
}

// The notes of rows that change the content and no status, or remove it all.
const (
	updated = "beyond the document: the content changes with that of the lease, and no status"
	removed = "beyond the document: the lease is gone"
)
