package ovc

import "github.com/interlock-go/interlock/fsm"

// VM is the machine of virtual machines. It is immutable and safe for
// concurrent use.
var VM = fsm.Must[struct{}](VMTable())

// VMTable returns the specification of [VM], for a machine with a payload of
// the caller's own:
//
//	var machines = fsm.Must[MyMachine](ovc.VMTable())
func VMTable() fsm.Spec[State, Event] {
	states := []fsm.State[State]{
		{Name: Virtual},
		{Name: Running},
		{Name: Paused},
		{Name: Halted, Doc: "the document has no action that starts a halted machine"},
		{Name: Deleted},
		{Name: Destroyed, Kind: fsm.Final},
		{Name: Deploying, Kind: fsm.Transitional},
		{Name: Pausing, Kind: fsm.Transitional},
		{Name: Resuming, Kind: fsm.Transitional},
		{Name: Stopping, Kind: fsm.Transitional},
		{Name: Deleting, Kind: fsm.Transitional},
		{Name: Destroying, Kind: fsm.Transitional},
		{Name: Rebooting, Kind: fsm.Transitional},
		{Name: Resetting, Kind: fsm.Transitional},
		{Name: AddingDisk, Kind: fsm.Transitional},
		{Name: AttachingDisk, Kind: fsm.Transitional},
		{Name: DetachingDisk, Kind: fsm.Transitional},
	}
	return fsm.Spec[State, Event]{
		Name: "ovc-vm", Title: "OpenvCloud: virtual machine", Initial: Virtual,
		Actors: []fsm.Actor{API, Worker, Observer}, States: states,
		Rows: fsm.Rows(
			fsm.Move(Virtual, Deploy, Deploying).By(API),
			fsm.Move(Deploying, Done, Running).By(Worker),
			fsm.Move(Running, Pause, Pausing).By(API),
			fsm.Move(Pausing, Done, Paused).By(Worker),
			fsm.Move(Paused, Resume, Resuming).By(API),
			fsm.Move(Resuming, Done, Running).By(Worker),
			fsm.Move(Running, Stop, Stopping).AlsoFrom(Paused).By(API),
			fsm.Move(Stopping, Done, Halted).By(Worker),
			fsm.Move(Running, Delete, Deleting).AlsoFrom(Paused, Halted).By(API),
			fsm.Move(Deleting, Done, Deleted).By(Worker),
			fsm.Move(Running, Destroy, Destroying).AlsoFrom(Paused, Halted).By(API),
			fsm.Move(Destroying, Done, Destroyed).By(Worker),
			fsm.Move(Running, Reboot, Rebooting).AlsoFrom(Paused).By(API),
			fsm.Move(Rebooting, Done, Running).By(Worker),
			fsm.Move(Running, Reset, Resetting).By(API),
			fsm.Move(Resetting, Done, Running).By(Worker),
			fsm.Move(Running, AddDisk, AddingDisk).AlsoFrom(Paused, Halted).By(API),
			fsm.Move(Running, AttachDisk, AttachingDisk).AlsoFrom(Paused, Halted).By(API),
			fsm.Move(Running, DetachDisk, DetachingDisk).AlsoFrom(Paused, Halted).By(API),
			fsm.Return(AddingDisk, Done).AlsoFrom(AttachingDisk, DetachingDisk).By(Worker).
				Note("running stays running, paused stays paused, halted stays halted"),
			retention(Deleted),
			selfHealing(states),
		),
	}
}
