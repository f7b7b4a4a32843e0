package ovc_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

func TestTablesAreThoseOfTheDocument(t *testing.T) {
	for kind := range ovc.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			files := "testdata/" + string(kind)
			conform.Check(t, kind.Machine().Table(), files+".json", files+".map.txt")
		})
	}
}

// The comparison with the document notices every small fault of a table.
func TestConformanceNoticesEveryMutant(t *testing.T) {
	for kind := range ovc.Kinds() {
		files := "testdata/" + string(kind)
		fsmtest.Mutate(t, kind.Machine(), func(t testing.TB, m *fsm.Machine[ovc.State, ovc.Event, struct{}]) {
			conform.Check(t, m.Table(), files+".json", files+".map.txt")
		}, nil)
	}
}

// One file with six tables would be too long to read.
func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", ovc.VM.Table(), ovc.Cloudspace.Table(), ovc.Account.Table())
	diagramtest.Doc(t, "doc_disk.go", ovc.Disk.Table(), ovc.Image.Table(), ovc.Node.Table())
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
