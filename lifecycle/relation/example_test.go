package relation_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/lifecycle/relation"
)

// A lease becomes active if all its reservations are active. The commit checks that
// they still are.
func ExampleRelation() {
	var (
		reservation = relation.NewRole("reservation", blazar.Reservation)
		start       = relation.NewRole("start_lease", blazar.Event)
	)
	leaseStates := relation.Must(relation.Spec[blazar.LeaseState]{
		Name: "lease-states", Parent: blazar.Lease,
		Rows: []relation.Row[blazar.LeaseState]{
			{
				States: []blazar.LeaseState{blazar.LeaseActive},
				Need: []relation.Condition{
					reservation.All(blazar.ReservationActive), start.One(blazar.EventInProgress, blazar.EventDone),
				},
			},
			{States: []blazar.LeaseState{
				blazar.LeaseCreating, blazar.LeasePending, blazar.LeaseStarting, blazar.LeaseUpdating,
				blazar.LeaseTerminating, blazar.LeaseTerminated, blazar.LeaseDeleting, blazar.LeaseError,
			}}, // not in this example
		},
	})

	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	leases := lifecycle.Must(blazar.Lease, store, nil)
	reservations := lifecycle.Must(blazar.Reservation, store, nil)
	_, _ = leases.Create(ctx, "l1", blazar.Create, blazar.User, blazar.LeaseSpec{}, nil)
	_, _ = leases.Fire(ctx, "l1", blazar.Done, blazar.Manager, nil)
	l1, _ := leases.Fire(ctx, "l1", blazar.Start, blazar.Manager, nil)
	r1, _ := reservations.Add(ctx, "r1", blazar.ReservationPending, blazar.Manager, blazar.ReservationSpec{}, nil)

	_, err := leaseStates.Require(blazar.LeaseActive, reservation.Saw("r1", r1.State))
	fmt.Println(err)

	r1, _ = reservations.Fire(ctx, "r1", blazar.Start, blazar.Manager, nil)
	lifecycle.Must(blazar.Event, store, nil).Add(ctx, "e1", blazar.EventUndone, blazar.Manager, blazar.EventSpec{}, nil)
	lifecycle.Must(blazar.Event, store, nil).Fire(ctx, "e1", blazar.Start, blazar.Manager, nil)
	require, err := leaseStates.Require(blazar.LeaseActive,
		reservation.Saw("r1", r1.State), start.Saw("e1", blazar.EventInProgress))
	fmt.Println(len(require), err)

	_, _ = reservations.Fire(ctx, "r1", blazar.Fail, blazar.Manager, nil) // r1 fails after the check
	_, err = leases.Fire(ctx, "l1", blazar.Done, blazar.Manager, &lifecycle.Change[blazar.LeaseSpec]{
		Require: require,
		Expect:  l1.Revision, // otherwise Done may lead to a state that was not checked
	})
	fmt.Println(errors.Is(err, lifecycle.ErrPrecondition))
	l1, _ = leases.Get(ctx, "l1")
	fmt.Println(l1.State)
	// Output:
	// relation: check "lease-states": lifecycle: precondition failed: ACTIVE needs all reservation: active, but "r1" is pending
	// 2 <nil>
	// true
	// STARTING
}

// New refuses rows that no object can satisfy.
func ExampleNew() {
	reservation := relation.NewRole("reservation", blazar.Reservation)
	_, err := relation.New(relation.Spec[blazar.LeaseState]{
		Name: "faulty", Parent: blazar.Lease,
		Rows: []relation.Row[blazar.LeaseState]{
			{States: []blazar.LeaseState{
				blazar.LeaseCreating, blazar.LeasePending, blazar.LeaseStarting, blazar.LeaseUpdating,
				blazar.LeaseTerminating, blazar.LeaseDeleting,
			}},
			{
				States: []blazar.LeaseState{blazar.LeaseActive},
				Need:   []relation.Condition{reservation.All(blazar.ReservationActive), reservation.One(blazar.ReservationError)},
			},
			{
				States: []blazar.LeaseState{blazar.LeaseError},
				Need:   []relation.Condition{reservation.All("broken")},
			},
		},
	})
	fmt.Println(err)
	// Output:
	// relation: compile "faulty": lifecycle: invalid request:
	// 	row 1: the conditions leave no state to role reservation
	// 	row 2: all reservation: "broken": machine reservation has no state "broken"
	// 	state TERMINATED of machine lease has no row
}
