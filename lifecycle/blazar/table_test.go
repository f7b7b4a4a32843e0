package blazar_test

import (
	"testing"

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
