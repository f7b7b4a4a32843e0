package ovc_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// The comparison with the document notices every small fault of a table.
func TestConformanceNoticesEveryMutant(t *testing.T) {
	for kind := range ovc.Kinds() {
		files := "testdata/" + string(kind)
		fsmtest.Mutate(t, kind.Machine(), func(t testing.TB, m *fsm.Machine[ovc.State, ovc.Event, struct{}]) {
			conform.Check(t, m.Table(), files+".json", files+".map.txt")
		}, nil)
	}
}
