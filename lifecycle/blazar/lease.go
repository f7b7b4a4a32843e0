package blazar

import (
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// MethodTimeout is how long a method of the manager may work on one lease or
// event before the sweeper gives it up.
const MethodTimeout = 30 * time.Minute

// LeaseSpec is the content of a lease. The zero value is a lease
// without reservations. A copy shares the reservations.
type LeaseSpec struct {
	Name       string
	Project    string // whose quota it uses
	Start, End time.Time
	// BeforeEnd is when something is to be done while the lease goes on. Zero: not
	// at all.
	BeforeEnd    time.Time
	Reservations []Request
}

// Request is what a reservation of a lease is to be. The zero value reserves
// nothing. A Request is a plain value.
type Request struct {
	Resource string // the type of what is reserved, such as "physical:host"
	Amount   int    // how many
}

// Lease is the machine of leases with the payload [LeaseSpec]. It is immutable
// and safe for concurrent use.
var Lease = fsm.Must[LeaseSpec](LeaseTable())

// LeaseTable returns the specification of [Lease], for a machine with a payload
// of your own.
func LeaseTable() fsm.Spec[LeaseState, Call] {
	return fsm.Spec[LeaseState, Call]{
		Name: "lease", Title: "Blazar: lease", Initial: LeaseAbsent,
		Actors: []fsm.Actor{User, Manager},
		States: []fsm.State[LeaseState]{
			{Name: LeaseAbsent, Kind: fsm.Absent},
			{Name: LeaseCreating, Kind: fsm.Transitional, Target: new(LeasePending)},
			{Name: LeasePending, Doc: "created, waits for its start"},
			{Name: LeaseStarting, Kind: fsm.Transitional, Target: new(LeaseActive)},
			{Name: LeaseActive},
			{Name: LeaseUpdating, Kind: fsm.Transitional, Doc: "leads back to where the lease was"},
			{Name: LeaseTerminating, Kind: fsm.Transitional, Target: new(LeaseTerminated)},
			{Name: LeaseTerminated},
			{Name: LeaseDeleting, Kind: fsm.Transitional, Target: new(LeaseAbsent)},
			{Name: LeaseError, Kind: fsm.Failed, Doc: "an unrecoverable failure happened to the lease"},
		},
		Rows: append(leaseFigure(), leaseBeyond()...),
	}
}

// leaseFigure are the rows of the document's figure.
func leaseFigure() []fsm.Row[LeaseState, Call] {
	return fsm.Rows(
		fsm.Move(LeaseAbsent, Create, LeaseCreating).By(User),
		fsm.Move(LeaseCreating, Done, LeasePending).By(Manager),

		fsm.Move(LeasePending, Start, LeaseStarting).By(Manager),
		fsm.Move(LeaseStarting, Done, LeaseActive).By(Manager),
		fsm.Move(LeaseStarting, Fail, LeaseError).By(Manager),

		fsm.Move(LeaseActive, Terminate, LeaseTerminating).AlsoFrom(LeaseError).By(Manager),
		fsm.Move(LeaseTerminating, Done, LeaseTerminated).By(Manager),
		fsm.Move(LeaseTerminating, Fail, LeaseError).By(Manager),

		fsm.Move(LeasePending, Update, LeaseUpdating).AlsoFrom(LeaseActive, LeaseTerminated, LeaseError).By(User),
		fsm.Return(LeaseUpdating, Done).By(Manager),

		fsm.FromAny(Delete, LeaseDeleting).By(User).Superseding().
			Note("delete goes before everything: what it interrupts reports in vain"),
		fsm.Move(LeaseDeleting, Done, LeaseAbsent).By(Manager),
		fsm.Move(LeaseDeleting, Fail, LeaseError).By(Manager),
	)
}

// leaseBeyond are rows that the figure does not have: how methods fail that it
// lets only succeed, and deadlines.
func leaseBeyond() []fsm.Row[LeaseState, Call] {
	return fsm.Rows(
		fsm.Move(LeaseCreating, Fail, LeaseError).AlsoFrom(LeaseUpdating).By(Manager).
			Note("beyond the document's figure, in its text: every unrecoverable failure is an ERROR"),
		fsm.Return(LeaseCreating, Refuse).AlsoFrom(LeaseUpdating).By(Manager).
			Note("beyond the document: a request that was refused leaves the lease as it was, or none"),
		fsm.Move(LeaseCreating, TimedOut, LeaseError).AlsoFrom(LeaseStarting, LeaseTerminating, LeaseDeleting).
			After(MethodTimeout).Note("beyond the document: the manager died"),
		fsm.Return(LeaseUpdating, TimedOut).After(MethodTimeout).
			Note("beyond the document: the manager died; an update leads back whatever became of it"),
	)
}
