package lifecycle_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// A lease becomes active if all its reservations are, in one commit with the
// look at them.
func ExampleRelation() {
	var (
		reservation = lifecycle.NewRole("reservation", blazar.Reservation)
		start       = lifecycle.NewRole("start_lease", blazar.Event)
	)
	leaseStates := lifecycle.MustRelation(lifecycle.RelationSpec[blazar.LeaseState]{
		Name: "lease-states", Parent: blazar.Lease,
		Rows: []lifecycle.RelationRow[blazar.LeaseState]{
			{
				States: []blazar.LeaseState{blazar.LeaseActive},
				Need: []lifecycle.Condition{
					reservation.All(blazar.ReservationActive), start.One(blazar.EventInProgress, blazar.EventDone),
				},
			},
			{States: []blazar.LeaseState{
				blazar.LeaseCreating, blazar.LeasePending, blazar.LeaseStarting, blazar.LeaseUpdating,
				blazar.LeaseTerminating, blazar.LeaseTerminated, blazar.LeaseDeleting, blazar.LeaseError,
			}, Doc: "not of this example"},
		},
	})

	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	leases := lifecycle.New(blazar.Lease, store, nil)
	reservations := lifecycle.New(blazar.Reservation, store, nil)
	_, _ = leases.Create(ctx, "l1", blazar.Create, blazar.User, blazar.LeaseSpec{})
	_, _ = leases.Fire(ctx, "l1", blazar.Done, blazar.Manager, nil)
	l1, _ := leases.Fire(ctx, "l1", blazar.Start, blazar.Manager, nil)
	r1, _ := reservations.Add(ctx, "r1", blazar.Manager, blazar.ReservationSpec{})

	_, err := leaseStates.Require(blazar.LeaseActive, reservation.Saw("r1", r1.State))
	fmt.Println(err)

	r1, _ = reservations.Fire(ctx, "r1", blazar.Start, blazar.Manager, nil)
	lifecycle.New(blazar.Event, store, nil).Add(ctx, "e1", blazar.Manager, blazar.EventSpec{})
	lifecycle.New(blazar.Event, store, nil).Fire(ctx, "e1", blazar.Start, blazar.Manager, nil)
	pins, err := leaseStates.Require(blazar.LeaseActive,
		reservation.Saw("r1", r1.State), start.Saw("e1", blazar.EventInProgress))
	fmt.Println(len(pins), err)

	_, _ = reservations.Fire(ctx, "r1", blazar.Fail, blazar.Manager, nil) // it fails meanwhile
	_, err = leases.Fire(ctx, "l1", blazar.Done, blazar.Manager, &lifecycle.Change[blazar.LeaseSpec]{
		Require: pins,
		Expect:  l1.Revision, // or Done may lead to another state than was checked
	})
	fmt.Println(errors.Is(err, lifecycle.ErrPrecondition))
	l1, _ = leases.Get(ctx, "l1")
	fmt.Println(l1.State)
	// Output:
	// lifecycle: precondition failed: lease-states: ACTIVE needs all reservation: active, but "r1" is pending
	// 2 <nil>
	// true
	// STARTING
}

// What a lease has become is told from what has become of its parts.
func ExampleRelation_Allows() {
	combinations := lifecycle.MustRelation(leaseCombinations())
	states, err := combinations.Allows(
		reservations.Saw("r1", blazar.ReservationError), reservations.Saw("r2", blazar.ReservationError),
		startLease.Saw("e1", blazar.EventError), endLease.Saw("e2", blazar.EventUndone),
	)
	fmt.Println(states, err)
	// Output:
	// [UPDATING DELETING ERROR] <nil>
}

// A reservation changes while its lease terminates: the lease is to be in that
// state still when the commit happens.
func ExampleRelation_RequireParent() {
	combinations := lifecycle.MustRelation(leaseCombinations())
	pins, err := combinations.RequireParent("l1", blazar.LeaseTerminating,
		reservations.Moves("r1", blazar.ReservationDeleted),
		startLease.Saw("e1", blazar.EventDone), endLease.Saw("e2", blazar.EventInProgress))
	fmt.Println(err)
	for _, p := range pins {
		fmt.Println(p.Machine, p.ID, p.States)
	}
	// Output:
	// <nil>
	// lease l1 [TERMINATING]
	// event e1 [DONE]
	// event e2 [IN_PROGRESS]
}

// Rows that say nothing are found when the relation is made.
func ExampleNewRelation() {
	reservation := lifecycle.NewRole("reservation", blazar.Reservation)
	_, err := lifecycle.NewRelation(lifecycle.RelationSpec[blazar.LeaseState]{
		Name: "faulty", Parent: blazar.Lease,
		Rows: []lifecycle.RelationRow[blazar.LeaseState]{
			{States: []blazar.LeaseState{
				blazar.LeaseCreating, blazar.LeasePending, blazar.LeaseStarting, blazar.LeaseUpdating,
				blazar.LeaseTerminating, blazar.LeaseDeleting, blazar.LeaseError,
			}},
			{
				States: []blazar.LeaseState{blazar.LeaseActive},
				Need:   []lifecycle.Condition{reservation.All(blazar.ReservationActive), reservation.Any(blazar.ReservationError)},
			},
			{
				States: []blazar.LeaseState{blazar.LeaseError},
				Need:   []lifecycle.Condition{reservation.All("broken")},
			},
			{
				States: []blazar.LeaseState{blazar.LeasePending},
				Need:   []lifecycle.Condition{reservation.All(blazar.ReservationPending)},
			},
		},
	})
	fmt.Println(err)
	// Output:
	// lifecycle: invalid rule faulty:
	// 	row 1 (ACTIVE: all reservation: active, any reservation: error): no reservation can satisfy all conditions on it
	// 	row 2 (ERROR: all reservation: broken): reservation: machine reservation has no state broken
	// 	row 3 (PENDING: all reservation: pending): never needed in PENDING: row 0 (CREATING|PENDING|STARTING|UPDATING|TERMINATING|DELETING|ERROR: anything) allows as much
	// 	state TERMINATED of lease has no row
}

// A relation as people read it.
func ExampleRelation_String() {
	fmt.Println(lifecycle.MustRelation(leaseCombinations()))
	// Output:
	// lease-combinations
	// 	CREATING|PENDING: all reservation: pending, one start_lease: UNDONE, one end_lease: UNDONE
	// 	STARTING: all reservation: pending or active or error, one start_lease: IN_PROGRESS, one end_lease: UNDONE
	// 	ACTIVE: all reservation: active, one start_lease: DONE, one end_lease: UNDONE
	// 	TERMINATING: all reservation: active or deleted or error, one start_lease: DONE, one end_lease: IN_PROGRESS
	// 	TERMINATED: all reservation: deleted, one start_lease: DONE, one end_lease: DONE
	// 	DELETING: anything (whatever became of the rest)
	// 	UPDATING: none start_lease: IN_PROGRESS, none end_lease: IN_PROGRESS
	// 	ERROR: all reservation: error, one start_lease: DONE or ERROR, one end_lease: UNDONE or ERROR (not in the document)
}
