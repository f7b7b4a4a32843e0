package ovc

import "github.com/interlock-go/interlock/fsm"

// Cloudspace is the machine of cloudspaces. It is immutable and safe for
// concurrent use.
var Cloudspace = fsm.Must[struct{}](CloudspaceTable())

// CloudspaceTable returns the specification of [Cloudspace], for a machine with
// a payload of the caller's own.
func CloudspaceTable() fsm.Spec[State, Event] {
	states := []fsm.State[State]{
		{Name: Virtual},
		{Name: Deployed},
		{Name: Disabled},
		{Name: Deleted},
		{Name: Destroyed, Kind: fsm.Final},
		{Name: Paused, Doc: "an administrator stopped the virtual firewall"},
		{Name: Deploying, Kind: fsm.Transitional},
		{Name: Disabling, Kind: fsm.Transitional},
		{Name: Enabling, Kind: fsm.Transitional},
		{Name: Deleting, Kind: fsm.Transitional},
		{Name: Destroying, Kind: fsm.Transitional},
		{Name: Restoring, Kind: fsm.Transitional},
		{Name: Pausing, Kind: fsm.Transitional},
		{Name: Resuming, Kind: fsm.Transitional},
		{Name: Resetting, Kind: fsm.Transitional},
	}
	return fsm.Spec[State, Event]{
		Name: "ovc-cloudspace", Title: "OpenvCloud: cloudspace", Initial: Virtual,
		Actors: []fsm.Actor{API, Worker, Observer}, States: states,
		Rows: fsm.Rows(
			fsm.Move(Virtual, Deploy, Deploying).By(API),
			fsm.Move(Deploying, Done, Deployed).By(Worker),
			fsm.Move(Deployed, Disable, Disabling).By(API),
			fsm.Move(Disabling, Done, Disabled).By(Worker),
			fsm.Move(Disabled, Enable, Enabling).By(API),
			fsm.Move(Enabling, Done, Deployed).By(Worker),
			fsm.Move(Deployed, Delete, Deleting).AlsoFrom(Disabled).By(API),
			fsm.Move(Deleting, Done, Deleted).By(Worker),
			fsm.Move(Deleted, Destroy, Destroying).By(API),
			fsm.Move(Destroying, Done, Destroyed).By(Worker),
			fsm.Move(Deleted, Restore, Restoring).By(API),
			fsm.Move(Restoring, Done, Deployed).By(Worker),
			fsm.Move(Deployed, Pause, Pausing).By(API),
			fsm.Move(Pausing, Done, Paused).By(Worker),
			fsm.Move(Paused, Resume, Resuming).By(API),
			fsm.Move(Resuming, Done, Deployed).By(Worker),
			fsm.Move(Deployed, Reset, Resetting).By(API),
			fsm.Move(Resetting, Done, Deployed).By(Worker),
			retention(Deleted),
			selfHealing(states),
		),
	}
}
