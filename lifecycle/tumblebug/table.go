package tumblebug

import (
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// What MCIs and VMs have in common: after its creation, an MCI goes through the
// states of its VMs.

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
		{Name: Failed, Kind: fsm.Final, Doc: "only force leads out"},
		{Name: Undefined, Doc: "nobody knows what it is"},
	}
}

// actions are the rows that begin what a user asks for.
func actions() []fsm.Row[State, Event] {
	return fsm.Rows(
		fsm.Move(Running, Suspend, Suspending).By(User),
		fsm.Move(Suspended, Resume, Resuming).By(User),
		fsm.Move(Running, Reboot, Rebooting).By(User),
		fsm.Move(Running, Terminate, Terminating).AlsoFrom(Suspended).By(User),
		fsm.Move(Failed, Terminate, Terminating).By(User).OnlyForced(),
	)
}

// force are the rows of the force flag: in every state but Terminated, whatever
// the actions say. The states are those of the machine.
func force(states []fsm.State[State]) []fsm.Row[State, Event] {
	without := func(action Event, to State, allowed ...State) fsm.Row[State, Event] {
		row := fsm.Row[State, Event]{Event: action, To: to}
		for _, s := range states {
			if s.Name != Terminated && s.Kind != fsm.Absent && !slices.Contains(allowed, s.Name) {
				row.From = append(row.From, s.Name)
			}
		}
		return row.By(User).OnlyForced().Superseding().Note("the force flag; what it interrupts reports in vain")
	}
	return fsm.Rows(
		without(Suspend, Suspending, Running),
		without(Resume, Resuming, Suspended),
		without(Reboot, Rebooting, Running),
		without(Terminate, Terminating, Running, Suspended, Failed),
	)
}

// sightings are the rows of what was seen while nothing was under way. They
// never end an action: a provider that shows a VM Running while it is being
// rebooted says nothing about the reboot.
func sightings() []fsm.Row[State, Event] {
	return fsm.Rows(
		fsm.Move(Suspended, SeeRunning, Running).AlsoFrom(Undefined).By(Observer).
			Note("beyond the document: somebody else resumed it"),
		fsm.Move(Running, SeeSuspended, Suspended).AlsoFrom(Undefined).By(Observer).
			Note("beyond the document: somebody else suspended it"),
		fsm.Move(Running, SeeTerminated, Terminated).AlsoFrom(Suspended, Undefined).By(Observer).
			Note("beyond the document: somebody else terminated it"),
		fsm.Move(Running, SeeFailed, Failed).AlsoFrom(Suspended, Undefined).By(Observer).
			Note("beyond the document: it broke by itself"),
		fsm.Move(Running, SeeNothing, Undefined).AlsoFrom(Suspended).By(Observer).
			Note("beyond the document, which declares Undefined and enters it nowhere"),
	)
}
