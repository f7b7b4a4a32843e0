package ovc_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// One file with six tables would be too long to read.
func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", ovc.VM.Table(), ovc.Cloudspace.Table(), ovc.Account.Table())
	diagramtest.Doc(t, "doc_disk.go", ovc.Disk.Table(), ovc.Image.Table(), ovc.Node.Table())
}
