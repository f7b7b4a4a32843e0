package blazar_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

func TestConformance(t *testing.T) {
	conforms(t, blazar.Lease, &leaseDocument, "lease")
	conforms(t, blazar.Reservation, &reservationDocument, "reservation")
	conforms(t, blazar.Event, &eventDocument, "event")
	conforms(t, blazar.ReservationRecord, &reservationDocument, "reservation-record")
	conforms(t, blazar.EventRecord, &eventDocument, "event-record")
}

// conforms compares a machine with the document, takes every row, and requires that the
// comparison finds every mutant of the table.
func conforms[S, E comparable, T any](t *testing.T, m *fsm.Machine[S, E, T], d *conform.Document, mapping string) {
	t.Run(mapping, func(t *testing.T) {
		mapped, err := conform.ReadMapping("testdata/" + mapping + ".map.txt")
		require.NoError(t, err)
		check := func(t testing.TB, m *fsm.Machine[S, E, T]) { conform.CheckDocument(t, m.Table(), d, mapped) }
		check(t, m)
		conform.Walk(t, m, new(T))
		fsmtest.Mutate(t, m, check, nil)
	})
}

func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", blazar.Lease.Table(), blazar.Reservation.Table(), blazar.Event.Table())
}

// A lease can be deleted in every status but DELETING, and after the timeout from that one
// too.
func TestDeleteFromEveryStatus(t *testing.T) {
	ctx := context.Background()
	for s := range blazar.Lease.States() {
		step, err := blazar.Lease.Next(ctx, blazar.Lease.At(s), blazar.Delete, blazar.User, nil)
		if s == blazar.LeaseAbsent || s == blazar.LeaseDeleting {
			require.Error(t, err, s)
			continue
		}
		require.NoError(t, err, s)
		step, err = blazar.Lease.Next(ctx, step.Status, blazar.TimedOut, fsm.Sweeper, nil)
		require.NoError(t, err, s)
		step, err = blazar.Lease.Next(ctx, step.Status, blazar.Delete, blazar.User, nil)
		require.NoError(t, err, s)
		step, err = blazar.Lease.Next(ctx, step.Status, blazar.Done, blazar.Manager, nil)
		require.NoError(t, err, s)
		require.Equal(t, blazar.LeaseAbsent, step.State)
	}
}

// An update leads back to the origin, unless it fails.
func TestUpdateLeadsBack(t *testing.T) {
	ctx := context.Background()
	for _, from := range []blazar.LeaseState{
		blazar.LeasePending, blazar.LeaseActive, blazar.LeaseTerminated, blazar.LeaseError,
	} {
		updating, err := blazar.Lease.Next(ctx, blazar.Lease.At(from), blazar.Update, blazar.User, nil)
		require.NoError(t, err)
		for call, to := range map[blazar.Call]blazar.LeaseState{
			blazar.Done: from, blazar.Refuse: from, blazar.Fail: blazar.LeaseError,
		} {
			step, err := blazar.Lease.Next(ctx, updating.Status, call, blazar.Manager, nil)
			require.NoError(t, err)
			require.Equal(t, to, step.State, "%s from %s", call, from)
		}
	}
}
