package tumblebug

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// The time that an action on an MCI may take. Its VMs take turns, so it is longer than
// that of a VM. [Config].MCITimeouts has other times.
const (
	MCIPrepareTimeout = 30 * time.Minute // Preparing, Prepared
	MCICreateTimeout  = 2 * time.Hour
	MCIControlTimeout = time.Hour // Suspending, Resuming, Rebooting, Terminating
)

// MCISpec is the content of an MCI. It is a value; copies share the groups and the
// attributes.
type MCISpec struct {
	MciReq        // without groups if [System.AddMci] has added the MCI
	Life   string // unique for every creation; distinguishes an MCI from an earlier one of its name
	Force  bool   // the present or the last action was forced
}

// MCI is the machine of multi-cloud infrastructures with the payload [MCISpec]. It is
// immutable and safe for concurrent use.
var MCI = fsm.Must[MCISpec](mciTable())

func mciTable() fsm.Spec[State, Event] {
	states := append([]fsm.State[State]{
		{Name: Preparing, Kind: fsm.Transitional, Doc: "networks, security groups and keys are created"},
		{Name: Prepared, Kind: fsm.Transitional, Doc: "its VMs can be started"},
	}, operating()...)
	const follows = "beyond the document: failed VMs were refined or forced, and the MCI follows the others"
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
				fsm.Move(Prepared, Withdraw, Failed).By(User).
					Note("the document's action outside its diagram: ends a creation on hold, before its resources are released"),
				fsm.Move(Creating, Fail, Failed).By(Aggregate).Note("all VMs failed"),
				fsm.Move(Suspending, Fail, Failed).AlsoFrom(Resuming, Rebooting, Terminating).By(Aggregate).
					Note("beyond the document's diagram, in its text: the status follows the VMs, and all of them failed"),
			),
			successes(Aggregate), // of some VMs; Terminating requires all
			actions(),
			force(states),
			observations(),
			fsm.Rows(
				fsm.Move(Failed, SeeRunning, Running).By(Observer).OnlyForced().Note(follows),
				fsm.Move(Failed, SeeSuspended, Suspended).By(Observer).OnlyForced().Note(follows),
				fsm.Move(Failed, SeeTerminated, Terminated).By(Observer).OnlyForced().Note(follows),
				fsm.Move(Failed, SeeNothing, Undefined).By(Observer).OnlyForced().Note(follows),
				fsm.Move(Terminated, Remove, Removed).AlsoFrom(Failed).By(User).OnlyForced().
					Note("beyond the document: the name can be used again"),
			),
			fsm.Rows(
				fsm.Move(Preparing, TimedOut, Failed).AlsoFrom(Prepared).After(MCIPrepareTimeout).
					Note("beyond the document: no process continues it, and no VM was requested"),
				fsm.Move(Creating, TimedOut, Undefined).By(Aggregate).After(MCICreateTimeout).
					Note("beyond the document: the outcome of its VMs is unknown"),
				fsm.Move(Suspending, TimedOut, Undefined).AlsoFrom(Resuming, Rebooting, Terminating).By(Aggregate).After(MCIControlTimeout).
					Note("beyond the document: the outcome of its VMs is unknown"),
			),
		),
	}
}
