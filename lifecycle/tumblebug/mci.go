package tumblebug

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// How long an action on an MCI may take before the sweeper gives it up. Its VMs
// take turns, so it has longer than a VM.
const (
	MCIPrepareTimeout = 30 * time.Minute // Preparing, Prepared
	MCICreateTimeout  = 2 * time.Hour
	MCIControlTimeout = time.Hour // Suspending, Resuming, Rebooting, Terminating
)

// MCISpec is the content of an MCI. The zero value has no name and no VMs. It is
// a value, and copies share the groups.
type MCISpec struct {
	Name        string
	Life        string // new with every creation, so that an MCI is not taken for an earlier one of its name
	Description string
	SubGroups   []SubGroup
	Policy      Policy
	Hold        bool // stay Prepared until somebody says continue or withdraw
	Withdrawn   bool // somebody has said withdraw, and what was prepared is released
	GivenUp     bool // it could not be prepared, and what was is released
	Force       bool // the action under way, or the last one, was forced
}

// MCI is the machine of multi-cloud infrastructures with the payload [MCISpec].
// It is immutable and safe for concurrent use.
var MCI = fsm.Must[MCISpec](MCITable())

// MCITable returns the specification of [MCI], for a machine with a payload of
// your own. An MCI comes into being Preparing.
func MCITable() fsm.Spec[State, Event] {
	states := append([]fsm.State[State]{
		{Name: Preparing, Kind: fsm.Transitional, Doc: "networks, security groups and keys are made"},
		{Name: Prepared, Kind: fsm.Transitional, Doc: "its VMs can be started"},
	}, operating()...)
	states = append(states, fsm.State[State]{Name: Removed, Kind: fsm.Absent})
	return fsm.Spec[State, Event]{
		Name: "mci", Title: "CB-Tumblebug: MCI", Initial: Preparing,
		Actors: []fsm.Actor{User, Tumblebug, Aggregate, Observer},
		States: states,
		Rows: slices.Concat(
			fsm.Rows(
				fsm.Move(Preparing, Succeed, Prepared).By(Tumblebug),
				fsm.Move(Preparing, Fail, Failed).By(Tumblebug),
				fsm.Move(Prepared, Provision, Creating).By(Tumblebug),
				fsm.Move(Prepared, Fail, Failed).By(Tumblebug),
				fsm.Move(Prepared, Withdraw, Removed).By(User).
					Note("the document's action outside its diagram; the answer to a creation that was asked to hold"),
				fsm.Move(Prepared, Release, Prepared).By(User).OnlyForced().
					Note("beyond the document: withdraw was said; whoever takes over releases what was prepared, and withdraws"),
				fsm.Move(Preparing, Release, Preparing).By(Tumblebug).OnlyForced().
					Note("beyond the document: it cannot be prepared; whoever takes over releases what was, and says that it failed"),
				fsm.Move(Creating, Succeed, Running).By(Aggregate).Note("all or some VMs run"),
				fsm.Move(Creating, Fail, Failed).By(Aggregate).Note("all VMs failed"),
			),
			actions(),
			fsm.Rows(
				fsm.Move(Suspending, Succeed, Suspended).By(Aggregate).Note("all or some VMs are suspended"),
				fsm.Move(Resuming, Succeed, Running).By(Aggregate).Note("all or some VMs run"),
				fsm.Move(Rebooting, Succeed, Running).By(Aggregate),
				fsm.Move(Terminating, Succeed, Terminated).By(Aggregate).Note("all VMs are terminated"),
				fsm.Move(Suspending, Fail, Failed).AlsoFrom(Resuming, Rebooting, Terminating).By(Aggregate).
					Note("beyond the document's diagram, in its text: the status follows the VMs, and all of them failed"),
			),
			force(states),
			sightings(),
			fsm.Rows(
				fsm.Move(Failed, SeeRunning, Running).By(Observer).OnlyForced().
					Note("beyond the document: what had failed is refined away or was forced, and some VMs run"),
				fsm.Move(Failed, SeeSuspended, Suspended).By(Observer).OnlyForced().
					Note("beyond the document: as above, and some VMs are suspended"),
				fsm.Move(Failed, SeeTerminated, Terminated).By(Observer).OnlyForced().
					Note("beyond the document: as above, and all VMs that are left are terminated"),
				fsm.Move(Failed, SeeNothing, Undefined).By(Observer).OnlyForced().
					Note("beyond the document: as above, and nobody knows what the VMs are"),
				fsm.Move(Terminated, Remove, Removed).AlsoFrom(Failed).By(User).OnlyForced().
					Note("beyond the document: its name is free again"),
			),
			fsm.Rows(
				fsm.Move(Preparing, TimedOut, Failed).AlsoFrom(Prepared).After(MCIPrepareTimeout).
					Note("beyond the document: nobody works on it, and no VM was asked for"),
				fsm.Move(Creating, TimedOut, Undefined).After(MCICreateTimeout).
					Note("beyond the document: nobody says what became of the VMs"),
				fsm.Move(Suspending, TimedOut, Undefined).AlsoFrom(Resuming, Rebooting, Terminating).After(MCIControlTimeout).
					Note("beyond the document: nobody says what became of the VMs"),
			),
		),
	}
}
