package aggregate_test

import (
	"fmt"

	"github.com/interlock-go/interlock/lifecycle/aggregate"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// The status of an MCI is the status that most of its VMs have.
func ExampleAggregate_Of() {
	status := aggregate.Must(aggregate.Spec[tumblebug.State, tumblebug.State]{
		Name: "mci-status", Rule: aggregate.Dominant, Children: tumblebug.VM,
		Classes: aggregate.Each(tumblebug.Failed, tumblebug.Suspended, tumblebug.Running, tumblebug.Terminated,
			tumblebug.Creating, tumblebug.Suspending, tumblebug.Resuming, tumblebug.Rebooting,
			tumblebug.Terminating, tumblebug.Undefined),
		Empty: tumblebug.Undefined,
	})
	vms := map[tumblebug.State]int{tumblebug.Creating: 2, tumblebug.Running: 3}
	mci, err := status.Of(vms)
	fmt.Println(mci.State, mci.Count, "of", mci.Total, "partial:", mci.Partial, err)

	for range 2 { // the others are created
		vms[tumblebug.Creating]--
		vms[tumblebug.Running]++
	}
	mci, err = status.Of(vms)
	fmt.Println(mci.State, mci.Count, "of", mci.Total, "partial:", mci.Partial, err)

	vms[tumblebug.Suspended]-- // the change to Suspended was lost
	_, err = status.Of(vms)
	fmt.Println(err)
	// Output:
	// Running 3 of 5 partial: true <nil>
	// Running 5 of 5 partial: false <nil>
	// aggregate: compute "mci-status": lifecycle: invalid request: -1 children in state "Suspended"
}

// The state of a system is the worst state of its services. A class has several
// states of services.
func ExampleAggregate() {
	type states = []lattice.ServiceState
	system := aggregate.Must(aggregate.Spec[lattice.ServiceState, lattice.State]{
		Name: "system-state", Rule: aggregate.Priority, Children: lattice.Service,
		Classes: []aggregate.Class[lattice.ServiceState, lattice.State]{
			{State: lattice.Degraded, States: states{lattice.ServiceDegraded, lattice.ServiceFailed}},
			{State: lattice.Updating, States: states{lattice.ServiceUpdating, lattice.ServicePending, lattice.ServiceDeleting}},
			{State: lattice.Scaling, States: states{lattice.ServiceScaling}},
			{State: lattice.Stable, States: states{lattice.ServiceStable}},
		},
		Empty: lattice.Stable,
	})
	for _, services := range []map[lattice.ServiceState]int{
		{},
		{lattice.ServiceStable: 1, lattice.ServiceScaling: 1},
		{lattice.ServiceStable: 7, lattice.ServiceScaling: 1, lattice.ServicePending: 1},
		{lattice.ServiceStable: 7, lattice.ServiceFailed: 1, lattice.ServicePending: 2},
	} {
		now, err := system.Of(services)
		fmt.Println(now.State, err)
	}
	// Output:
	// stable <nil>
	// scaling <nil>
	// updating <nil>
	// degraded <nil>
}

// New refuses a rule that leaves out a state of the children's machine.
func ExampleNew() {
	_, err := aggregate.New(aggregate.Spec[tumblebug.State, string]{
		Name: "health", Rule: aggregate.Priority, Children: tumblebug.VM,
		Classes: []aggregate.Class[tumblebug.State, string]{
			{State: "bad", States: []tumblebug.State{tumblebug.Failed, tumblebug.Undefined}},
			{State: "busy", States: []tumblebug.State{
				tumblebug.Creating, tumblebug.Suspending, tumblebug.Resuming, tumblebug.Rebooting,
			}},
			{State: "good", States: []tumblebug.State{tumblebug.Running, tumblebug.Suspended, "Asleep"}},
		},
		Empty: "good",
	})
	fmt.Println(err)
	// Output:
	// aggregate: compile "health": lifecycle: invalid request:
	// 	class good: machine vm has no state Asleep
	// 	state Terminating of machine vm is in no class
	// 	state Terminated of machine vm is in no class
}
