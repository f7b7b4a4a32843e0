package aggregate_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
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

// A system follows its services. Their rows arrive in the wrong order and twice. A
// recount replaces the row that is lost.
func ExampleRoster() {
	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	systems := lifecycle.Must(lattice.System, store, nil)
	_, _ = systems.Create(ctx, "shop", lattice.Create, lattice.User, lattice.Content{}, nil)
	_, _ = systems.Fire(ctx, "shop", lattice.Initialized, lattice.Backend, nil)

	roster := aggregate.NewRoster(aggregate.Must(systemState()))
	events := map[lattice.State]lattice.Event{
		lattice.Stable: lattice.ServicesStable, lattice.Updating: lattice.ServicesUpdating,
		lattice.Scaling: lattice.ServicesScaling, lattice.Degraded: lattice.ServicesDegraded,
	}
	follow := func(now aggregate.Result[lattice.State]) error {
		system, err := systems.Get(ctx, "shop")
		if err != nil || system.State == now.State {
			return err
		}
		system, err = systems.Fire(ctx, "shop", events[now.State], lattice.Aggregator, nil)
		fmt.Println("the system is", system.State, now.Count, "of", now.Total)
		return err
	}

	var rows []lifecycle.HistoryRow // of all services
	services := lifecycle.Must(lattice.Service, store, &lifecycle.Config[lattice.ServiceEvent]{
		Observer: lifecycle.Observer{Changed: func(_ context.Context, row lifecycle.Changed) { rows = append(rows, row.HistoryRow) }},
	})
	for _, id := range []string{"web", "db"} {
		_, _ = services.Create(ctx, id, lattice.SeenPending, lattice.Observer, struct{}{}, nil)
		_, _ = services.Fire(ctx, id, lattice.SeenStable, lattice.Observer, nil)
	}
	_, _ = services.Fire(ctx, "db", lattice.SeenFailed, lattice.Observer, nil)

	lost := rows[len(rows)-1]
	for _, row := range slices.Backward(rows[:len(rows)-1]) { // the latest first
		for range 2 { // and each row twice
			newer, err := roster.Apply(row)
			fmt.Println(row.ID, row.To, "newer:", newer, err)
			_ = roster.Settle(follow)
		}
	}

	_ = aggregate.Recount(roster, services.All(ctx, lifecycle.Select[lattice.ServiceState]{}))
	_ = roster.Settle(follow)
	newer, _ := roster.Apply(lost)
	fmt.Println(lost.ID, lost.To, "newer:", newer)
	// Output:
	// db stable newer: true <nil>
	// db stable newer: false <nil>
	// db pending newer: false <nil>
	// db pending newer: false <nil>
	// web stable newer: true <nil>
	// web stable newer: false <nil>
	// web pending newer: false <nil>
	// web pending newer: false <nil>
	// the system is degraded 1 of 2
	// db failed newer: false
}
