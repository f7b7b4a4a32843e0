package lattice

import (
	"encoding/json"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lock"
)

// Action is the content of a deploy or a teardown. It is a plain value; copies share
// Attributes.
type Action struct {
	System SystemID  `json:"system"`
	Path   lock.Path `json:"path,omitzero"` // that is deployed; zero: the whole system, as for every teardown
	// Attributes are content of the program that uses the package, such as the definition
	// that is deployed: a JSON value, or nil. The package does not read them.
	Attributes json.RawMessage `json:"attributes,omitempty"`
}

// ActionState is the state of a deploy or a teardown.
type ActionState string

// The states of deploys and teardowns. A teardown is never accepted: it goes
// from pending to in progress.
const (
	ActionPending    ActionState = "pending"     // requested
	ActionAccepted   ActionState = "accepted"    // has its lock
	ActionInProgress ActionState = "in progress" // runs
	ActionSucceeded  ActionState = "succeeded"
	ActionFailed     ActionState = "failed"
	ActionAbsent     ActionState = "does-not-exist" // its record was removed
)

// ActionEvent is a report about a deploy or a teardown.
type ActionEvent string

// The events of deploys and teardowns.
const (
	Accept  ActionEvent = "accept"    // by [Backend]; deploys only
	Begin   ActionEvent = "begin"     // by [Backend]
	Succeed ActionEvent = "succeed"   // by [Backend]
	Fail    ActionEvent = "fail"      // by [Backend]
	Forget  ActionEvent = "forget"    // by [User]: removes the record of an action that has ended
	Overdue ActionEvent = "timed out" // by [fsm.Sweeper]: the backend has not answered in time
)

// The time that the backend may take with a deploy or a teardown. The document has no
// figures.
const (
	AcceptTimeout = 5 * time.Minute  // until it is accepted, or a teardown begins
	BuildTimeout  = 30 * time.Minute // accepted
	RunTimeout    = time.Hour        // in progress
)

const (
	noteOverdue = "beyond the document: a backend that does not answer has failed"
	noteForget  = "beyond the document: removes the record"
)

// Deploy is the machine of deploys, with the payload [Action]. A deploy begins
// in pending. The machine is immutable and safe for concurrent use.
var Deploy = fsm.Must[Action](fsm.Spec[ActionState, ActionEvent]{
	Name: "lattice-deploy", Title: "Lattice: deploy", Initial: ActionPending,
	Actors: []fsm.Actor{User, Backend},
	States: []fsm.State[ActionState]{
		{Name: ActionPending, Kind: fsm.Transitional, Target: new(ActionSucceeded)},
		{Name: ActionAccepted, Kind: fsm.Transitional, Target: new(ActionSucceeded)},
		{Name: ActionInProgress, Kind: fsm.Transitional, Target: new(ActionSucceeded)},
		{Name: ActionSucceeded, Kind: fsm.Final},
		{Name: ActionFailed, Kind: fsm.Final},
		{Name: ActionAbsent, Kind: fsm.Absent},
	},
	Rows: fsm.Rows(
		fsm.Move(ActionPending, Accept, ActionAccepted).By(Backend),
		fsm.Move(ActionAccepted, Begin, ActionInProgress).By(Backend),
		fsm.Move(ActionInProgress, Succeed, ActionSucceeded).By(Backend),
		fsm.Move(ActionPending, Fail, ActionFailed).AlsoFrom(ActionAccepted, ActionInProgress).By(Backend),

		fsm.Move(ActionPending, Overdue, ActionFailed).After(AcceptTimeout).Note(noteOverdue),
		fsm.Move(ActionAccepted, Overdue, ActionFailed).After(BuildTimeout).Note(noteOverdue),
		fsm.Move(ActionInProgress, Overdue, ActionFailed).After(RunTimeout).Note(noteOverdue),
		fsm.Move(ActionSucceeded, Forget, ActionAbsent).AlsoFrom(ActionFailed).By(User).OnlyForced().Note(noteForget),
	),
})

// Teardown is the machine of teardowns, with the payload [Action]. A teardown
// begins in pending. The machine is immutable and safe for concurrent use.
var Teardown = fsm.Must[Action](fsm.Spec[ActionState, ActionEvent]{
	Name: "lattice-teardown", Title: "Lattice: teardown", Initial: ActionPending,
	Actors: []fsm.Actor{User, Backend},
	States: []fsm.State[ActionState]{
		{Name: ActionPending, Kind: fsm.Transitional, Target: new(ActionSucceeded)},
		{Name: ActionInProgress, Kind: fsm.Transitional, Target: new(ActionSucceeded)},
		{Name: ActionSucceeded, Kind: fsm.Final},
		{Name: ActionFailed, Kind: fsm.Final},
		{Name: ActionAbsent, Kind: fsm.Absent},
	},
	Rows: fsm.Rows(
		fsm.Move(ActionPending, Begin, ActionInProgress).By(Backend),
		fsm.Move(ActionInProgress, Succeed, ActionSucceeded).By(Backend),
		fsm.Move(ActionPending, Fail, ActionFailed).AlsoFrom(ActionInProgress).By(Backend),

		fsm.Move(ActionPending, Overdue, ActionFailed).After(AcceptTimeout).Note(noteOverdue),
		fsm.Move(ActionInProgress, Overdue, ActionFailed).After(RunTimeout).Note(noteOverdue),
		fsm.Move(ActionSucceeded, Forget, ActionAbsent).AlsoFrom(ActionFailed).By(User).OnlyForced().Note(noteForget),
	),
})
