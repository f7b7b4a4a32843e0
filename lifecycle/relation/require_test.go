package relation_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/lifecycle/relation"
)

// leaseWorld has managers of a lease, its reservations and its events.
type leaseWorld struct {
	store        lifecycle.Store
	leases       *lifecycle.Manager[blazar.LeaseState, blazar.Call, blazar.LeaseSpec]
	reservations *lifecycle.Manager[blazar.ReservationState, blazar.Call, blazar.ReservationSpec]
	events       *lifecycle.Manager[blazar.EventState, blazar.Call, blazar.EventSpec]
}

func newLease(t *testing.T, n int, store lifecycle.Store) leaseWorld {
	t.Helper()
	ctx := t.Context()
	w := leaseWorld{
		store: store, leases: lifecycle.Must(blazar.Lease, store, nil),
		reservations: lifecycle.Must(blazar.Reservation, store, nil), events: lifecycle.Must(blazar.Event, store, nil),
	}
	_, err := w.leases.Create(ctx, "l", blazar.Create, blazar.User, blazar.LeaseSpec{}, nil)
	require.NoError(t, err)
	_, err = w.leases.Fire(ctx, "l", blazar.Done, blazar.Manager, nil)
	require.NoError(t, err)
	for i := range n {
		_, err := w.reservations.Add(ctx, fmt.Sprint("r", i), blazar.ReservationPending, blazar.Manager, blazar.ReservationSpec{Lease: "l"}, nil)
		require.NoError(t, err)
	}
	_, err = w.events.Add(ctx, "start", blazar.EventUndone, blazar.Manager, blazar.EventSpec{Lease: "l"}, nil)
	require.NoError(t, err)
	_, err = w.events.Add(ctx, "end", blazar.EventUndone, blazar.Manager, blazar.EventSpec{Lease: "l"}, nil)
	require.NoError(t, err)
	return w
}

// observed reads the objects that are related to the lease.
func (w leaseWorld) observed(ctx context.Context, t *testing.T) []relation.Related {
	t.Helper()
	rec, err := w.events.Get(ctx, "start")
	require.NoError(t, err)
	rec2, err := w.events.Get(ctx, "end")
	require.NoError(t, err)
	related := []relation.Related{
		startLease.Saw("start", rec.State),
		endLease.Saw("end", rec2.State),
	}
	for r, err := range w.reservations.All(ctx, lifecycle.Select[blazar.ReservationState]{}) {
		require.NoError(t, err)
		related = append(related, reservations.Saw(r.ID, r.State))
	}
	return related
}

// The lease does not move if any of the objects moves between the check and the
// commit.
func TestRequire(t *testing.T) {
	table := blazar.Relationships
	ctx := t.Context()
	const n = 3
	for moved := range n + 3 {
		w := newLease(t, n, lifecycle.NewMemoryStore())
		_, err := w.events.Fire(ctx, "start", blazar.Start, blazar.Manager, nil)
		require.NoError(t, err)
		preconditions, err := table.Require(blazar.LeaseStarting, w.observed(ctx, t)...)
		require.NoError(t, err)
		require.Len(t, preconditions, n+2)
		switch moved {
		case n:
			_, err := w.events.Fire(ctx, "start", blazar.Done, blazar.Manager, nil)
			require.NoError(t, err)
		case n + 1:
			_, err := w.events.Fire(ctx, "end", blazar.Start, blazar.Manager, nil)
			require.NoError(t, err)
		case n + 2:
		default:
			_, err := w.reservations.Fire(ctx, fmt.Sprint("r", moved), blazar.Start, blazar.Manager, nil)
			require.NoError(t, err)
		}
		_, err = w.leases.Fire(ctx, "l", blazar.Start, blazar.Manager, &lifecycle.Change[blazar.LeaseSpec]{Require: preconditions})
		want := blazar.LeaseStarting
		if moved < n+2 {
			require.ErrorIs(t, err, lifecycle.ErrPrecondition, moved)
			want = blazar.LeasePending
		} else {
			require.NoError(t, err)
		}
		rec, err := w.leases.Get(ctx, "l")
		require.NoError(t, err)
		require.Equal(t, want, rec.State)
	}
}

// The preconditions do not hold the lease itself. Expect with the revision that was
// read keeps it from moving to a state that was not checked.
func TestRequireOfAParentThatMoves(t *testing.T) {
	table := blazar.Relationships
	ctx := t.Context()
	for _, expects := range []bool{false, true} {
		w := newLease(t, 0, lifecycle.NewMemoryStore())
		seen, err := w.leases.Fire(ctx, "l", blazar.Start, blazar.Manager, nil)
		require.NoError(t, err)
		_, err = w.events.Fire(ctx, "start", blazar.Start, blazar.Manager, nil)
		require.NoError(t, err)
		_, err = w.events.Fire(ctx, "start", blazar.Done, blazar.Manager, nil)
		require.NoError(t, err)
		preconditions, err := table.Require(blazar.LeaseActive, w.observed(ctx, t)...)
		require.NoError(t, err)
		change := &lifecycle.Change[blazar.LeaseSpec]{Require: preconditions}
		if expects {
			change.Expect = seen.Revision
		}
		_, err = w.leases.Fire(ctx, "l", blazar.Done, blazar.Manager, nil)
		require.NoError(t, err)
		_, err = w.leases.Fire(ctx, "l", blazar.Terminate, blazar.Manager, nil)
		require.NoError(t, err)
		_, err = w.leases.Fire(ctx, "l", blazar.Done, blazar.Manager, change)
		now, readErr := w.leases.Get(ctx, "l")
		require.NoError(t, readErr)
		if expects {
			require.ErrorIs(t, err, lifecycle.ErrConflict)
			require.Equal(t, blazar.LeaseTerminating, now.State)
			continue
		}
		require.NoError(t, err)
		require.Error(t, table.Check(now.State, w.observed(ctx, t)...))
	}
}

// The preconditions are on the objects that the commit does not move. An object
// that does not exist must not exist at the commit.
func TestRequireIsOnTheOthers(t *testing.T) {
	table := blazar.Relationships
	preconditions, err := table.Require(blazar.LeaseStarting,
		reservations.Moves("r0", blazar.ReservationActive), reservations.Saw("r1", blazar.ReservationPending),
		startLease.Saw("e", blazar.EventInProgress), endLease.Saw("f", blazar.EventUndone))
	require.NoError(t, err)
	on := func(machine, id, state string) lifecycle.Precondition {
		return lifecycle.Precondition{Key: lifecycle.Key{Machine: machine, ID: id}, States: []string{state}}
	}
	require.Equal(t, []lifecycle.Precondition{
		on("reservation", "r1", "pending"), on("event", "e", "IN_PROGRESS"), on("event", "f", "UNDONE"),
	}, preconditions)

	preconditions, err = relation.Must(noteWith(vmRole.All("Ready"))).Require("Draft", vmRole.Saw("a", "None"), vmRole.Saw("b", "Ready"))
	require.NoError(t, err)
	require.Equal(t, []lifecycle.Precondition{on("vm", "a", ""), on("vm", "b", "Ready")}, preconditions)
}

// lone is a store that commits one change and no precondition.
type lone struct{ *lifecycle.MemoryStore }

func (lone) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 1} }

func (s lone) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if len(c.Changes)+len(c.Require) > 1 {
		return errors.ErrUnsupported
	}
	return s.MemoryStore.Commit(ctx, c)
}

// A store that cannot check that many preconditions in one commit refuses.
func TestBeyondTheStore(t *testing.T) {
	table := blazar.Relationships
	ctx := t.Context()
	for _, w := range []leaseWorld{
		newLease(t, 1, lone{lifecycle.NewMemoryStore()}),
		newLease(t, lifecycle.NewMemoryStore().Capabilities().Changes-2, lifecycle.NewMemoryStore()),
	} {
		_, err := w.events.Fire(ctx, "start", blazar.Start, blazar.Manager, nil)
		require.NoError(t, err)
		preconditions, err := table.Require(blazar.LeaseStarting, w.observed(ctx, t)...)
		require.NoError(t, err)
		require.Less(t, w.store.Capabilities().Changes, 1+len(preconditions))
		_, err = w.leases.Fire(ctx, "l", blazar.Start, blazar.Manager, &lifecycle.Change[blazar.LeaseSpec]{Require: preconditions})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		rec, err := w.leases.Get(ctx, "l")
		require.NoError(t, err)
		require.Equal(t, blazar.LeasePending, rec.State)
	}
}
