package blazar_test

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// Two hosts are leased for an hour. The service starts the lease when it is due,
// and ends it in time.
func Example() {
	ctx, now := context.Background(), time.Date(2030, 1, 1, 8, 0, 0, 0, time.UTC)
	service := blazar.New(lifecycle.NewMemoryStore(), &blazar.Config{
		Now: func() time.Time { return now },
		Plugins: map[string]blazar.Plugin{"host": {
			OnStart: func(_ context.Context, a blazar.Allocation) error { fmt.Println("hand out", a.Amount); return nil },
			OnEnd:   func(_ context.Context, a blazar.Allocation) error { fmt.Println("take back", a.Amount); return nil },
		}},
	})
	lease, err := service.CreateLease(ctx, "demo", blazar.LeaseSpec{
		Start: now.Add(time.Hour), End: now.Add(2 * time.Hour),
		Reservations: []blazar.Request{{Resource: "host", Amount: 2}},
	})
	for err == nil && lease.Status != blazar.LeaseTerminated {
		fmt.Println(now.Format(time.Kitchen), lease.Status)
		now = now.Add(time.Hour)
		_, err = service.Process(ctx) // what is due; Service.Run does so again and again
		lease, _ = service.GetLease(ctx, "demo")
	}
	fmt.Println(now.Format(time.Kitchen), lease.Status, err)

	// Output:
	// 8:00AM PENDING
	// hand out 2
	// 9:00AM ACTIVE
	// take back 2
	// 10:00AM TERMINATED <nil>
}

// The tables alone. A lease is updated while it is active and goes on. Later it
// hangs while it ends, and can be deleted all the same.
func ExampleLease() {
	lease := blazar.Lease.Instance()
	for _, say := range []struct {
		call blazar.Call
		by   fsm.Actor
	}{
		{blazar.Create, blazar.User},
		{blazar.Done, blazar.Manager},
		{blazar.Start, blazar.User}, // only the manager, and only when it is due
		{blazar.Start, blazar.Manager},
		{blazar.Done, blazar.Manager},
		{blazar.Update, blazar.User},
		{blazar.Done, blazar.Manager},
		{blazar.Terminate, blazar.Manager},
		{blazar.Delete, blazar.User},
		{blazar.Done, blazar.Manager},
	} {
		_, err := lease.Fire(context.Background(), say.call, say.by, nil)
		fmt.Println(say.call, lease.State(), err)
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

// Which statuses go with an active lease.
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
