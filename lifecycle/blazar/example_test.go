package blazar_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// A lease of two hosts for an hour. Process starts the lease when it is due, and ends it
// in time.
func Example() {
	ctx, now := context.Background(), time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)
	service, err := blazar.New(lifecycle.NewMemoryStore(), &blazar.Config{
		Now: func() time.Time { return now },
		Plugins: map[string]blazar.Plugin{"host": {
			OnStart: func(_ context.Context, a blazar.Allocation) error { fmt.Println("start", a.Amount); return nil },
			OnEnd:   func(_ context.Context, a blazar.Allocation) error { fmt.Println("release", a.Amount); return nil },
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	lease, err := service.CreateLease(ctx, "demo", blazar.LeaseSpec{
		Start: now.Add(time.Hour), End: now.Add(2 * time.Hour),
		Reservations: []blazar.Request{{Resource: "host", Amount: 2}},
	})
	for err == nil && lease.Status != blazar.LeaseTerminated {
		fmt.Println(now.Format(time.Kitchen), lease.Status)
		now = now.Add(time.Hour)
		_, err = service.Process(ctx) // Service.Run does this at an interval
		lease, _ = service.GetLease(ctx, "demo")
	}
	fmt.Println(now.Format(time.Kitchen), lease.Status, err)

	// Output:
	// 8:00AM PENDING
	// start 2
	// 9:00AM ACTIVE
	// release 2
	// 10:00AM TERMINATED <nil>
}

// A lease that exists already is taken over, with content of the program, and ends in
// time.
func ExampleService_AddLease() {
	ctx, now := context.Background(), time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)
	service, err := blazar.New(lifecycle.NewMemoryStore(), &blazar.Config{
		Now: func() time.Time { return now },
		Plugins: map[string]blazar.Plugin{"host": {
			OnEnd: func(_ context.Context, a blazar.Allocation) error { fmt.Println("release", a.ResourceID); return nil },
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	lease, err := service.AddLease(ctx, "demo", blazar.LeaseActive, blazar.LeaseSpec{
		Start: now.Add(-time.Hour), End: now.Add(time.Hour),
		Reservations: []blazar.Request{{Resource: "host", Amount: 1, ResourceID: "rack-7"}},
		Attributes:   json.RawMessage(`{"purpose":"tests"}`),
	})
	fmt.Println(lease.Status, string(lease.Spec.Attributes), err)
	now = now.Add(time.Hour)
	_, err = service.Process(ctx)
	lease, _ = service.GetLease(ctx, "demo")
	fmt.Println(lease.Status, err)

	// Output:
	// ACTIVE {"purpose":"tests"} <nil>
	// release rack-7
	// TERMINATED <nil>
}

// The table alone. A lease is updated while it is active. Later its end hangs, and it is
// deleted.
func ExampleLease() {
	lease := blazar.Lease.Instance()
	for _, step := range []struct {
		call  blazar.Call
		actor fsm.Actor
	}{
		{blazar.Create, blazar.User},
		{blazar.Done, blazar.Manager},
		{blazar.Start, blazar.User}, // only the manager starts a lease
		{blazar.Start, blazar.Manager},
		{blazar.Done, blazar.Manager},
		{blazar.Update, blazar.User},
		{blazar.Done, blazar.Manager},
		{blazar.Terminate, blazar.Manager},
		{blazar.Delete, blazar.User},
		{blazar.Done, blazar.Manager},
	} {
		_, err := lease.Fire(context.Background(), step.call, step.actor, nil)
		fmt.Println(step.call, lease.State(), err)
	}

	// Output:
	// create CREATING <nil>
	// done PENDING <nil>
	// start PENDING fsm: wrong actor: lease: start in PENDING by user
	// start STARTING <nil>
	// done ACTIVE <nil>
	// update UPDATING <nil>
	// done ACTIVE <nil>
	// terminate TERMINATING <nil>
	// delete DELETING <nil>
	// done ABSENT <nil>
}

// The statuses that an active lease requires.
func ExampleCombinations() {
	active := []blazar.ReservationState{blazar.ReservationActive}
	for _, c := range blazar.Combinations() {
		if c.Lease == blazar.LeaseActive {
			fmt.Println(c.Allows(active, blazar.EventDone, blazar.EventUndone))
			fmt.Println(c.Allows(active, blazar.EventInProgress, blazar.EventUndone))
		}
	}

	// Output:
	// true
	// false
}
