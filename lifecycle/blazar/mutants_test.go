package blazar_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// The comparison with the document notices every small fault of a table.
func TestConformanceNoticesEveryMutant(t *testing.T) {
	notices(t, blazar.Lease, &leaseDocument, "lease")
	notices(t, blazar.Reservation, &reservationDocument, "reservation")
	notices(t, blazar.Event, &eventDocument, "event")
	notices(t, blazar.ReservationRecord, &reservationDocument, "reservation-record")
	notices(t, blazar.EventRecord, &eventDocument, "event-record")
}

func notices[S, E comparable, T any](t *testing.T, m *fsm.Machine[S, E, T], d *conform.Document, mapping string) {
	mapped, err := conform.ReadMapping("testdata/" + mapping + ".map.txt")
	require.NoError(t, err)
	fsmtest.Mutate(t, m, func(t testing.TB, m *fsm.Machine[S, E, T]) { conform.CheckDocument(t, m.Table(), d, mapped) }, nil)
}
