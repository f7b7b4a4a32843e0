package ovc

import "github.com/interlock-go/interlock/fsm"

// Disk is the machine of disks. It is immutable and safe for concurrent use.
var Disk = fsm.Must[struct{}](DiskTable())

// DiskTable returns the specification of [Disk], for a machine with a payload of
// the caller's own.
func DiskTable() fsm.Spec[State, Event] {
	states := []fsm.State[State]{
		{Name: Modeled},
		{Name: Created, Doc: "detached"},
		{Name: Assigned, Doc: "attached to a machine"},
		{Name: Deleted},
		{Name: Destroyed, Kind: fsm.Final},
		{Name: ToBeDeleted, Doc: "deleted together with its machine"},
		{Name: Creating, Kind: fsm.Transitional},
		{Name: Assigning, Kind: fsm.Transitional},
		{Name: Attaching, Kind: fsm.Transitional},
		{Name: Detaching, Kind: fsm.Transitional},
		{Name: Deleting, Kind: fsm.Transitional},
		{Name: Destroying, Kind: fsm.Transitional},
	}
	return fsm.Spec[State, Event]{
		Name: "ovc-disk", Title: "OpenvCloud: disk", Initial: Modeled,
		Actors: []fsm.Actor{API, Worker, Observer}, States: states,
		Rows: fsm.Rows(
			fsm.Move(Modeled, Create, Creating).By(API),
			fsm.Move(Creating, Done, Created).By(Worker),
			fsm.Move(Modeled, Assign, Assigning).By(API),
			fsm.Move(Assigning, Done, Assigned).By(Worker),
			fsm.Move(Created, Attach, Attaching).By(API),
			fsm.Move(Attaching, Done, Assigned).By(Worker),
			fsm.Move(Assigned, Detach, Detaching).By(API),
			fsm.Move(Detaching, Done, Created).By(Worker),
			fsm.Move(Created, Delete, Deleting).AlsoFrom(Assigned).By(API),
			fsm.Move(Deleting, Done, Deleted).Of(Created).By(Worker),
			fsm.Move(Deleting, Done, ToBeDeleted).Of(Assigned).By(Worker),
			fsm.Move(Created, Destroy, Destroying).AlsoFrom(Assigned).By(API),
			fsm.Move(Destroying, Done, Destroyed).By(Worker),
			retention(Deleted).AlsoFrom(ToBeDeleted),
			selfHealing(states),
		),
	}
}
