package lattice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// A system is created, follows its services, and is deleted.
func Example() {
	ctx := context.Background()
	system := lattice.System.Instance()
	fire := func(e lattice.Event, by fsm.Actor) {
		if _, err := system.Fire(ctx, e, by, nil); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e, "->", system.State())
	}
	fire(lattice.Create, lattice.User)
	fire(lattice.Initialized, lattice.User) // only the backend knows
	fire(lattice.Initialized, lattice.Backend)
	fire(lattice.ServicesScaling, lattice.Aggregator)
	fire(lattice.Delete, lattice.User)
	fire(lattice.ServicesStable, lattice.Aggregator) // too late
	fire(lattice.TornDown, lattice.Backend)
	// Output:
	// create -> pending
	// fsm: wrong actor: lattice-system: initialized in pending by user
	// initialized -> stable
	// services now scaling -> scaling
	// delete -> deleting
	// fsm: not allowed: lattice-system: services now stable in deleting by aggregate
	// torn down -> does-not-exist
}

func ExampleAggregate() {
	ctx := context.Background()
	status := lattice.System.At(lattice.Stable)
	services := []lattice.ServiceState{lattice.ServiceStable, lattice.ServiceScaling, lattice.ServiceFailed}
	seen := lattice.Aggregate(slices.Values(services))
	step, err := lattice.System.NextTo(ctx, status, seen, lattice.Aggregator, nil)
	fmt.Println(seen, step.State, err)
	// Output: degraded degraded <nil>
}

// What was asked for may run, runs, and ends for good.
func ExampleDeployTable() {
	type rollout struct{ Path, Version string }
	deploys := fsm.Must[rollout](lattice.DeployTable())

	ctx, deploy := context.Background(), deploys.Instance()
	what := rollout{Path: "/shop/cart", Version: "1.2.0"}
	for _, e := range []lattice.ActionEvent{lattice.Accept, lattice.Begin, lattice.Succeed, lattice.Fail} {
		_, err := deploy.Fire(ctx, e, lattice.Backend, &what)
		fmt.Println(e, "->", deploy.State(), errors.Is(err, fsm.ErrNotAllowed))
	}
	// Output:
	// accept -> accepted false
	// begin -> in progress false
	// succeed -> succeeded false
	// fail -> succeeded true
}

// A teardown that its backend forgot ends by itself.
func ExampleTeardownTable() {
	teardown := fsm.Must[lattice.Action](lattice.TeardownTable()).Instance()
	what := lattice.Action{System: "shop", Path: lock.Root()}
	for _, f := range []struct {
		event lattice.ActionEvent
		actor fsm.Actor
	}{{lattice.Begin, lattice.Backend}, {lattice.Overdue, fsm.Sweeper}} {
		step, err := teardown.Fire(context.Background(), f.event, f.actor, &what)
		fmt.Println(step.State, err)
	}
	// Output:
	// in progress <nil>
	// failed <nil>
}

// A service whose backend needs twice the time.
func ExampleSystemTable() {
	spec := lattice.SystemTable()
	for i := range spec.Rows {
		spec.Rows[i].Within *= 2
	}
	systems := fsm.Must[struct{ Owner string }](spec)
	for _, row := range systems.Table().Rows {
		if row.Within > 0 {
			fmt.Println(systems.Table().States[row.From[0]].Name, row.Within)
		}
	}
	// Output:
	// pending 20m0s
	// deleting 1h0m0s
}
