package lattice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// A system is created and deployed to. While the deploy runs, a teardown is refused.
func Example() {
	ctx := context.Background()
	running, finish := make(chan struct{}), make(chan struct{})
	c, _ := lattice.Start(ctx, lifecycle.NewMemoryStore(), lattice.Infrastructure{
		Deploy: func(_ context.Context, d lattice.Running) error {
			fmt.Println("deploy", d.ID, string(d.Attributes))
			close(running)
			<-finish
			return nil
		},
	}, nil)
	shop, _ := c.CreateSystem(ctx, "shop", nil)
	_, _ = shop.Wait(ctx)

	_, _ = c.Deploy(ctx, "shop", "d1", lock.MustParse("/web/cart"), json.RawMessage(`{"version":2}`))
	<-running
	_, _ = c.Teardown(ctx, "shop", "t1", nil)
	t1, _ := c.WaitTeardown(ctx, "shop", "t1")
	fmt.Println("teardown", t1.State+":", t1.Reason)
	close(finish)
	d1, _ := c.WaitDeploy(ctx, "shop", "d1")
	fmt.Println("deploy", d1.State)

	_ = c.SetService(ctx, "shop", lock.MustParse("/web/cart"), lattice.ServiceDegraded)
	now, _ := c.Systems().Get(ctx, "shop")
	fmt.Println("system", now.State)
	// Output:
	// deploy d1 {"version":2}
	// teardown failed: unable to acquire lifecycle lock: locked by deploys d1
	// deploy succeeded
	// system degraded
}

// Deploys of unrelated paths run at once. A refusal names the holders.
func ExampleLifecycleActionManager() {
	var actions lattice.LifecycleActionManager
	fmt.Println(actions.AcquireDeploy("shop", "d1", lock.MustParse("/a/b")))
	fmt.Println(actions.AcquireDeploy("shop", "d2", lock.MustParse("/a/c")))
	fmt.Println(actions.AcquireDeploy("shop", "d3", lock.MustParse("/a")))
	err := actions.AcquireTeardown("shop", "t1")
	fmt.Println(err, errors.Is(err, lock.ErrConflict))

	actions.ReleaseDeploy("shop", "d1")
	actions.ReleaseDeploy("shop", "d2")
	fmt.Println(actions.AcquireTeardown("shop", "t1"))
	fmt.Println(actions.InProgressActions("shop"))
	// Output:
	// <nil>
	// <nil>
	// lattice: system shop is locked by deploys d1, d2
	// lattice: system shop is locked by deploys d1, d2 true
	// <nil>
	// [] t1
}

// The table alone, without a store: a system follows its services, and is deleted.
func ExampleSystem() {
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
	fire(lattice.Initialized, lattice.User) // the actor must be the backend
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
