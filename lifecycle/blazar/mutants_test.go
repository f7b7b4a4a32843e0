package blazar_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// The comparison with the document notices every small fault of a table.
func TestConformanceNoticesEveryMutant(t *testing.T) {
	notices(t, blazar.Lease, "lease", "lease")
	notices(t, blazar.Reservation, "reservation", "reservation")
	notices(t, blazar.Event, "event", "event")
	notices(t, blazar.ReservationRecord, "reservation", "reservation-record")
	notices(t, blazar.EventRecord, "event", "event-record")
}

func notices[S, E comparable, T any](t *testing.T, m *fsm.Machine[S, E, T], document, mapping string) {
	document, mapping = "testdata/"+document+".json", "testdata/"+mapping+".map.txt"
	fsmtest.Mutate(t, m, func(t testing.TB, m *fsm.Machine[S, E, T]) { conform.Check(t, m.Table(), document, mapping) }, nil)
}
