package diagram_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
)

func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", cranes.Table())
}
