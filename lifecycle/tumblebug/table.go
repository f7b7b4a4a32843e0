package tumblebug

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// This file has the states and rows that MCIs and VMs share: after its creation, an
// MCI has the states of its VMs.

func operating() []fsm.State[State] {
	return []fsm.State[State]{
		{Name: Creating, Kind: fsm.Transitional, Target: new(Running)},
		{Name: Running},
		{Name: Suspending, Kind: fsm.Transitional, Target: new(Suspended)},
		{Name: Suspended},
		{Name: Resuming, Kind: fsm.Transitional, Target: new(Running)},
		{Name: Rebooting, Kind: fsm.Transitional, Target: new(Running)},
		{Name: Terminating, Kind: fsm.Transitional, Target: new(Terminated)},
		{Name: Terminated, Kind: fsm.Final},
		{Name: Failed, Kind: fsm.Final, Doc: "only forced rows lead out"},
		{Name: Undefined, Doc: "the provider's state is unknown"},
	}
}

// actions returns the rows of the document's control actions.
func actions() []fsm.Row[State, Event] {
	return fsm.Rows(
		fsm.Move(Running, Suspend, Suspending).By(User),
		fsm.Move(Suspended, Resume, Resuming).By(User),
		fsm.Move(Running, Reboot, Rebooting).By(User),
		fsm.Move(Running, Terminate, Terminating).AlsoFrom(Suspended).By(User),
		fsm.Move(Failed, Terminate, Terminating).By(User).OnlyForced(),
	)
}

// successes returns the rows in which an actor reports that an action has succeeded.
func successes(by fsm.Actor) []fsm.Row[State, Event] {
	return fsm.Rows(
		fsm.Move(Creating, Succeed, Running).AlsoFrom(Resuming, Rebooting).By(by),
		fsm.Move(Suspending, Succeed, Suspended).By(by),
		fsm.Move(Terminating, Succeed, Terminated).By(by),
	)
}

// force returns the rows of the force flag: every action in every state except
// Terminated. The argument has the states of the machine.
func force(states []fsm.State[State]) []fsm.Row[State, Event] {
	without := func(action Event, to State, allowed ...State) fsm.Row[State, Event] {
		row := fsm.Row[State, Event]{Event: action, To: to}
		for _, s := range states {
			if s.Name != Terminated && s.Kind != fsm.Absent && !slices.Contains(allowed, s.Name) {
				row.From = append(row.From, s.Name)
			}
		}
		return row.By(User).OnlyForced().Superseding().Note("the force flag; reports of the superseded operation are stale")
	}
	return fsm.Rows(
		without(Suspend, Suspending, Running),
		without(Resume, Resuming, Suspended),
		without(Reboot, Rebooting, Running),
		without(Terminate, Terminating, Running, Suspended, Failed),
	)
}

// observations returns the rows of the observer. They never end an action: a provider
// that shows a VM as Running during a reboot does not report the end of the reboot.
func observations() []fsm.Row[State, Event] {
	return fsm.Rows(
		fsm.Move(Suspended, SeeRunning, Running).AlsoFrom(Undefined).By(Observer).
			Note("beyond the document: resumed at the provider"),
		fsm.Move(Running, SeeSuspended, Suspended).AlsoFrom(Undefined).By(Observer).
			Note("beyond the document: suspended at the provider"),
		fsm.Move(Running, SeeTerminated, Terminated).AlsoFrom(Suspended, Undefined).By(Observer).
			Note("beyond the document: terminated at the provider"),
		fsm.Move(Running, SeeFailed, Failed).AlsoFrom(Suspended, Undefined).By(Observer).
			Note("beyond the document: failed without an action"),
		fsm.Move(Running, SeeNothing, Undefined).AlsoFrom(Suspended).By(Observer).
			Note("beyond the document, which declares Undefined and has no row into it"),
	)
}
