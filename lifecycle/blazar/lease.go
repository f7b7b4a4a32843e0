package blazar

import (
	"encoding/json"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// MethodTimeout is how long a method of the manager may work on one lease until the
// sweeper ends it, unless [Config].Timeouts has another time. A plugin that takes longer
// sends heartbeats.
const MethodTimeout = 30 * time.Minute

// LeaseSpec is the content of a lease. The zero value is a lease
// without reservations. A copy shares the reservations and the attributes.
type LeaseSpec struct {
	Name         string
	Start, End   time.Time
	Reservations []Request
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them.
	Attributes json.RawMessage `json:",omitempty"`
}

// request returns the request of the reservation with a number, nil if there is none.
func (l *LeaseSpec) request(number int) *Request {
	if number < 1 || number > len(l.Reservations) {
		return nil
	}
	return &l.Reservations[number-1]
}

// Request is what a reservation reserves. The zero value reserves nothing. A
// Request is a plain value.
type Request struct {
	Resource string // type of the resources, such as "physical:host"
	Amount   int    // number of resources
	// ResourceID is that of resources which the reservation has already. In a request it is
	// only for [Service.AddLease]; otherwise [Plugin].Reserve returns it.
	ResourceID string `json:",omitempty"`
}

// Lease is the machine of leases with the payload [LeaseSpec]. It is immutable
// and safe for concurrent use.
var Lease = fsm.Must[LeaseSpec](leaseTable())

func leaseTable() fsm.Spec[LeaseState, Call] {
	return fsm.Spec[LeaseState, Call]{
		Name: "lease", Title: "Blazar: lease", Initial: LeaseAbsent,
		Actors: []fsm.Actor{User, Manager},
		States: []fsm.State[LeaseState]{
			{Name: LeaseAbsent, Kind: fsm.Absent},
			{Name: LeaseCreating, Kind: fsm.Transitional, Target: new(LeasePending)},
			{Name: LeasePending, Doc: "created, waits for its start"},
			{Name: LeaseStarting, Kind: fsm.Transitional, Target: new(LeaseActive)},
			{Name: LeaseActive},
			{Name: LeaseUpdating, Kind: fsm.Transitional, Doc: "leads back to the origin"},
			{Name: LeaseTerminating, Kind: fsm.Transitional, Target: new(LeaseTerminated)},
			{Name: LeaseTerminated},
			{Name: LeaseDeleting, Kind: fsm.Transitional, Target: new(LeaseAbsent)},
			{Name: LeaseError, Kind: fsm.Failed, Doc: "an unrecoverable failure happened to the lease"},
		},
		Rows: append(leaseFigure(),
			// Failures of methods that only succeed in the figure, and deadlines.
			fsm.Move(LeaseCreating, Fail, LeaseError).AlsoFrom(LeaseUpdating).By(Manager).
				Note("beyond the document's figure, in its text: every unrecoverable failure is an ERROR"),
			fsm.Return(LeaseCreating, Refuse).AlsoFrom(LeaseUpdating).By(Manager).
				Note("beyond the document: a refused request changes nothing"),
			fsm.Move(LeaseCreating, TimedOut, LeaseError).AlsoFrom(LeaseStarting, LeaseTerminating, LeaseDeleting).
				After(MethodTimeout).Note("beyond the document: the manager died"),
			fsm.Return(LeaseUpdating, TimedOut).After(MethodTimeout).
				Note("beyond the document: the manager died; an update leads back to the origin"),
		),
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
			Note("delete has the highest priority: a report of the interrupted method is stale"),
		fsm.Move(LeaseDeleting, Done, LeaseAbsent).By(Manager),
		fsm.Move(LeaseDeleting, Fail, LeaseError).By(Manager),
	)
}
