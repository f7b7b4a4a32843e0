package blazar_test

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// A lease is updated while it is active and goes on. Later it hangs while it
// ends, and can be deleted all the same.
func Example() {
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
