package tumblebug_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

func TestConformance(t *testing.T) {
	conform.Check(t, tumblebug.VM.Table(), "testdata/vm.json", "testdata/vm.map.txt")
	conform.Check(t, tumblebug.MCI.Table(), "testdata/mci.json", "testdata/mci.map.txt")
}

func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", tumblebug.MCI.Table())
	diagramtest.Doc(t, "doc_vm.go", tumblebug.VM.Table())
}
