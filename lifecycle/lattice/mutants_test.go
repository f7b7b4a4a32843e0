package lattice_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

// The comparison with the document notices every small fault of the table.
func TestConformanceNoticesEveryMutant(t *testing.T) {
	fsmtest.Mutate(t, lattice.System, func(t testing.TB, m *fsm.Machine[lattice.State, lattice.Event, lattice.Content]) {
		conform.Check(t, m.Table(), "testdata/system.json", "testdata/system.map.txt")
	}, nil)
}
