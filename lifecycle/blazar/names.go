package blazar

import "github.com/interlock-go/interlock/fsm"

// The actors. The document does not name the callers of methods. Users create, update
// and delete leases; the manager does everything else, when an event of a lease is due or
// a method ends. The observer is beyond the document: it reports the condition of
// resources.
const (
	User     fsm.Actor = "user"
	Manager  fsm.Actor = "manager"
	Observer fsm.Actor = "observer"
)

// LeaseState is the status of a lease.
type LeaseState string

// The statuses of leases. LeaseAbsent is not a status of the document: the lease
// does not exist.
const (
	LeaseAbsent      LeaseState = "ABSENT"
	LeaseCreating    LeaseState = "CREATING"
	LeasePending     LeaseState = "PENDING"
	LeaseStarting    LeaseState = "STARTING"
	LeaseActive      LeaseState = "ACTIVE"
	LeaseUpdating    LeaseState = "UPDATING"
	LeaseTerminating LeaseState = "TERMINATING"
	LeaseTerminated  LeaseState = "TERMINATED"
	LeaseDeleting    LeaseState = "DELETING"
	LeaseError       LeaseState = "ERROR"
)

// ReservationState is the status of a reservation.
type ReservationState string

// The statuses of reservations. ReservationAbsent is not a status of the document:
// the reservation was removed with its lease.
const (
	ReservationPending ReservationState = "pending"
	ReservationActive  ReservationState = "active"
	ReservationDeleted ReservationState = "deleted"
	ReservationError   ReservationState = "error"
	ReservationAbsent  ReservationState = "absent"
)

// EventState is the status of an event of a lease, such as its start.
type EventState string

// The statuses of events. EventAbsent is not a status of the document: the event
// was removed with its lease.
const (
	EventUndone     EventState = "UNDONE"
	EventInProgress EventState = "IN_PROGRESS"
	EventDone       EventState = "DONE"
	EventError      EventState = "ERROR"
	EventAbsent     EventState = "ABSENT"
)

// The types of events.
const (
	StartLease = "start_lease"
	EndLease   = "end_lease"
)

// Call changes the status of a lease, a reservation or an event: the call of a method of
// the manager, or its outcome. Package fsm names that an event; here events are objects.
type Call string

// The calls.
const (
	Create    Call = "create"
	Update    Call = "update"
	Delete    Call = "delete"
	Start     Call = "start" // of a lease, a reservation or an event
	Terminate Call = "terminate"

	Done   Call = "done"   // the method has succeeded
	Fail   Call = "fail"   // an unrecoverable failure
	Refuse Call = "refuse" // the method has refused the request and changed nothing

	TimedOut Call = "timed-out" // the method has not ended in time

	Observe Call = "observe" // of a reservation: its resources are missing or were replaced
	Remove  Call = "remove"  // of a reservation or an event: its lease is removed
)
