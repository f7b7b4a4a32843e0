package lattice_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	conform.Check(t, lattice.System.Table(), "testdata/system.json", "testdata/system.map.txt")
	conform.Check(t, lattice.Deploy.Table(), "testdata/deploy.json", "testdata/deploy.map.txt")
	conform.Check(t, lattice.Teardown.Table(), "testdata/teardown.json", "testdata/teardown.map.txt")
}

// The comparison with the document notices every small fault of the table.
func TestConformanceNoticesEveryMutant(t *testing.T) {
	fsmtest.Mutate(t, lattice.System, func(t testing.TB, m *fsm.Machine[lattice.State, lattice.Event, lattice.Content]) {
		conform.Check(t, m.Table(), "testdata/system.json", "testdata/system.map.txt")
	}, nil)
}

func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", lattice.System.Table(), lattice.Deploy.Table(), lattice.Teardown.Table())
}
