package ovc

import "github.com/interlock-go/interlock/fsm"

// Account is the machine of accounts. It is immutable and safe for concurrent
// use.
var Account = fsm.Must[struct{}](AccountTable())

// AccountTable returns the specification of [Account], for a machine with a
// payload of the caller's own.
func AccountTable() fsm.Spec[State, Event] {
	states := []fsm.State[State]{
		{Name: Confirmed},
		{Name: Disabled},
		{Name: Destroyed, Kind: fsm.Final},
		{Name: Deleted},
		{Name: Disabling, Kind: fsm.Transitional},
		{Name: Enabling, Kind: fsm.Transitional},
		{Name: Destroying, Kind: fsm.Transitional},
		{Name: Deleting, Kind: fsm.Transitional},
	}
	return fsm.Spec[State, Event]{
		Name: "ovc-account", Title: "OpenvCloud: account", Initial: Confirmed,
		Actors: []fsm.Actor{API, Worker, Observer}, States: states,
		Rows: fsm.Rows(
			fsm.Move(Confirmed, Disable, Disabling).By(API),
			fsm.Move(Disabling, Done, Disabled).By(Worker),
			fsm.Move(Disabled, Enable, Enabling).By(API),
			fsm.Move(Enabling, Done, Confirmed).By(Worker),
			fsm.Move(Confirmed, Destroy, Destroying).AlsoFrom(Disabled).By(API),
			fsm.Move(Destroying, Done, Destroyed).By(Worker),
			fsm.Move(Confirmed, Delete, Deleting).AlsoFrom(Disabled).By(API),
			fsm.Move(Deleting, Done, Deleted).By(Worker),
			retention(Deleted),
			selfHealing(states),
		),
	}
}
