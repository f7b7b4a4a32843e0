package lattice

import (
	"encoding/json"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// State is the state of a system.
type State string

// The states of a system. Stable, Updating, Scaling and Degraded follow from its
// services as they were last seen.
const (
	DoesNotExist State = "does-not-exist"
	Pending      State = "pending" // the backend validates it and creates its resources
	Failed       State = "failed"  // the backend could not
	Stable       State = "stable"
	Updating     State = "updating"
	Scaling      State = "scaling"
	Degraded     State = "degraded"
	Deleting     State = "deleting" // the backend tears it down
)

// Event is a request to a system, or a report about it.
type Event string

// The events of a system.
const (
	Create      Event = "create"      // by [User]
	Initialized Event = "initialized" // by [Backend]
	InitFailed  Event = "init failed" // by [Backend]
	Delete      Event = "delete"      // by [User]
	TornDown    Event = "torn down"   // by [Backend]

	// By [Aggregator]: the state that follows from the services.
	ServicesStable   Event = "services now stable"
	ServicesUpdating Event = "services now updating"
	ServicesScaling  Event = "services now scaling"
	ServicesDegraded Event = "services now degraded"

	TimedOut Event = "timed out" // by [fsm.Sweeper]: the backend has not answered in time
)

// The actors.
const (
	User       fsm.Actor = "user"
	Backend    fsm.Actor = "backend"   // creates, deploys and tears down
	Aggregator fsm.Actor = "aggregate" // derives the state from the services
)

// The time that the backend may take with a system. The document has no figures.
const (
	InitTimeout     = 10 * time.Minute // in pending
	DeletionTimeout = 30 * time.Minute // in deleting: services end gracefully
)

// Content is the content of a system. The zero value has none. A copy shares the
// attributes.
type Content struct {
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them.
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

const derived = "the services determine when it ends"

// System is the machine of systems, with the payload [Content]. It is immutable and safe
// for concurrent use.
var System = fsm.Must[Content](fsm.Spec[State, Event]{
	Name: "lattice-system", Title: "Lattice: system", Initial: DoesNotExist,
	Actors: []fsm.Actor{User, Backend, Aggregator},
	States: []fsm.State[State]{
		{Name: DoesNotExist, Kind: fsm.Absent},
		{Name: Pending, Kind: fsm.Transitional, Target: new(Stable)},
		{Name: Failed, Kind: fsm.Failed},
		{Name: Stable},
		{Name: Updating, Kind: fsm.Transitional, Manual: derived},
		{Name: Scaling, Kind: fsm.Transitional, Manual: derived},
		{Name: Degraded, Kind: fsm.Failed},
		{Name: Deleting, Kind: fsm.Transitional, Target: new(DoesNotExist)},
	},
	Rows: fsm.Rows(
		fsm.Move(DoesNotExist, Create, Pending).By(User),
		fsm.Move(Pending, Initialized, Stable).By(Backend),
		fsm.Move(Pending, InitFailed, Failed).By(Backend),

		fsm.Move(Updating, ServicesStable, Stable).AlsoFrom(Scaling, Degraded).By(Aggregator),
		fsm.Move(Stable, ServicesUpdating, Updating).AlsoFrom(Scaling, Degraded).By(Aggregator),
		fsm.Move(Stable, ServicesScaling, Scaling).AlsoFrom(Updating, Degraded).By(Aggregator),
		fsm.Move(Stable, ServicesDegraded, Degraded).AlsoFrom(Updating, Scaling).By(Aggregator),

		fsm.Move(Failed, Delete, Deleting).AlsoFrom(Stable, Degraded).By(User),
		fsm.Move(Updating, Delete, Deleting).AlsoFrom(Scaling).By(User).Superseding(),
		fsm.Move(Pending, Delete, Deleting).By(User).Superseding().
			Note("not in the document's diagram, but in its text: a system may be deleted at any point"),
		fsm.Move(Deleting, TornDown, DoesNotExist).By(Backend),

		fsm.Move(Pending, TimedOut, Failed).After(InitTimeout).
			Note("beyond the document: a backend that does not answer has failed to initialize"),
		fsm.Move(Deleting, TimedOut, Failed).After(DeletionTimeout).
			Note("beyond the document: a backend that does not answer; the system can be deleted again"),
	),
})
