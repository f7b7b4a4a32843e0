package ovc

import "github.com/interlock-go/interlock/fsm"

// Image is the machine of images. It is immutable and safe for concurrent use.
var Image = fsm.Must[struct{}](ImageTable())

// ImageTable returns the specification of [Image], for a machine with a payload
// of the caller's own.
func ImageTable() fsm.Spec[State, Event] {
	const printed = "kept as the document prints it; ENABLING is probably meant"
	states := []fsm.State[State]{
		{Name: Virtual},
		{Name: Created},
		{Name: Disabled},
		{Name: Deleted},
		{Name: Destroyed, Kind: fsm.Final},
		{Name: Creating, Kind: fsm.Transitional},
		{Name: Disabling, Kind: fsm.Transitional},
		{Name: Deleting, Kind: fsm.Transitional},
		{Name: Destroying, Kind: fsm.Transitional},
	}
	return fsm.Spec[State, Event]{
		Name: "ovc-image", Title: "OpenvCloud: image", Initial: Virtual,
		Actors: []fsm.Actor{API, Worker, Observer}, States: states,
		Rows: fsm.Rows(
			fsm.Move(Virtual, Create, Creating).By(API),
			fsm.Move(Creating, Done, Created).By(Worker),
			fsm.Move(Created, Disable, Disabling).By(API),
			fsm.Move(Disabling, Done, Disabled).Of(Created).By(Worker),
			fsm.Move(Disabled, Disable, Disabling).By(API).Note(printed),
			fsm.Move(Disabling, Done, Created).Of(Disabled).By(Worker).Note(printed),
			fsm.Move(Created, Delete, Deleting).AlsoFrom(Disabled).By(API),
			fsm.Move(Deleting, Done, Deleted).By(Worker),
			fsm.Move(Created, Destroy, Destroying).AlsoFrom(Disabled).By(API),
			fsm.Move(Destroying, Done, Destroyed).By(Worker),
			retention(Deleted),
			selfHealing(states),
		),
	}
}
