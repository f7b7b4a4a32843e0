package lattice_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/lifecycle/lattice"
)

func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", lattice.System.Table(), lattice.Deploy.Table(), lattice.Teardown.Table())
}
