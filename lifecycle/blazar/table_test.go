package blazar_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

func TestConformance(t *testing.T) {
	conform.Check(t, blazar.Lease.Table(), "testdata/lease.json", "testdata/lease.map.txt")
	conform.Check(t, blazar.Reservation.Table(), "testdata/reservation.json", "testdata/reservation.map.txt")
	conform.Check(t, blazar.Event.Table(), "testdata/event.json", "testdata/event.map.txt")
}

func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", blazar.Lease.Table(), blazar.Reservation.Table(), blazar.Event.Table())
}

// A lease can be deleted in every status but one, and from that one too once it
// has hung for long enough.
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

// An update leads back to where the lease was, unless it fails for good.
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
