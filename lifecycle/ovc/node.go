package ovc

import "github.com/interlock-go/interlock/fsm"

// Node is the machine of physical nodes. It is immutable and safe for
// concurrent use.
var Node = fsm.Must[struct{}](NodeTable())

// NodeTable returns the specification of [Node], for a machine with a payload of
// the caller's own.
func NodeTable() fsm.Spec[State, Event] {
	states := []fsm.State[State]{
		{Name: Enabled},
		{Name: Maintenance},
		{Name: Decommissioned, Kind: fsm.Final},
		{Name: PuttingInMaintenance, Kind: fsm.Transitional},
		{Name: Enabling, Kind: fsm.Transitional},
		{Name: Decommissioning, Kind: fsm.Transitional},
	}
	return fsm.Spec[State, Event]{
		Name: "ovc-node", Title: "OpenvCloud: physical node", Initial: Enabled,
		Actors: []fsm.Actor{API, Worker, Observer}, States: states,
		Rows: fsm.Rows(
			fsm.Move(Enabled, PutInMaintenance, PuttingInMaintenance).By(API),
			fsm.Move(PuttingInMaintenance, Done, Maintenance).By(Worker),
			fsm.Move(Maintenance, Enable, Enabling).By(API),
			fsm.Move(Enabling, Done, Enabled).By(Worker),
			fsm.Move(Enabled, Decommission, Decommissioning).AlsoFrom(Maintenance).By(API),
			fsm.Move(Decommissioning, Done, Decommissioned).By(Worker),
			selfHealing(states),
		),
	}
}
