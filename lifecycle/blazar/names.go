package blazar

import "github.com/interlock-go/interlock/fsm"

// The actors. The document changes a status when a method of the manager is
// called, and again when the method has ended. Users ask for leases to be
// created, updated and deleted; everything else the manager does by itself,
// when an event of the lease is due or a method ends. The observer is beyond the
// document: it reports the condition of the resources.
const (
	User     fsm.Actor = "user"
	Manager  fsm.Actor = "manager"
	Observer fsm.Actor = "observer"
)

// LeaseState is the status of a lease.
type LeaseState string

// The statuses of leases. LeaseAbsent is no status of the document: the lease
// does not exist yet, or no more.
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

// The statuses of reservations. ReservationAbsent is no status of the document:
// the reservation went with its lease.
const (
	ReservationPending ReservationState = "pending"
	ReservationActive  ReservationState = "active"
	ReservationDeleted ReservationState = "deleted"
	ReservationError   ReservationState = "error"
	ReservationAbsent  ReservationState = "absent"
)

// EventState is the status of an event of a lease, such as its start.
type EventState string

// The statuses of events. EventAbsent is no status of the document: the event
// went with its lease.
const (
	EventUndone     EventState = "UNDONE"
	EventInProgress EventState = "IN_PROGRESS"
	EventDone       EventState = "DONE"
	EventError      EventState = "ERROR"
	EventAbsent     EventState = "ABSENT"
)

// The types of events: what happens to the lease when one is due. The document
// speaks of the first two.
const (
	StartLease     = "start_lease"
	EndLease       = "end_lease"
	BeforeEndLease = "before_end_lease" // something is done while the lease goes on, such as a warning
)

// Call is what makes a lease, a reservation or an event change its status: a
// method of the manager that is called, or how it ended. Package fsm calls that
// an event; here events are objects.
type Call string

// The calls.
const (
	Create    Call = "create"
	Update    Call = "update"
	Delete    Call = "delete"
	Start     Call = "start"     // of a lease, a reservation or an event
	Terminate Call = "terminate" // of a lease: its end has come

	Done   Call = "done"   // the method has done what was asked
	Fail   Call = "fail"   // an unrecoverable failure
	Refuse Call = "refuse" // the method refused what was asked and has changed nothing

	TimedOut Call = "timed-out" // the method has not ended in time

	Observe Call = "observe" // of a reservation: its resources are others, or missing
	Remove  Call = "remove"  // of a reservation or an event: its lease is gone
)
