package tumblebug_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

func TestConformance(t *testing.T) {
	conform.Check(t, tumblebug.VM.Table(), "testdata/vm.json", "testdata/vm.map.txt")
	conform.Check(t, tumblebug.MCI.Table(), "testdata/mci.json", "testdata/mci.map.txt")
}

// A system without timeouts of its own runs the published tables.
func TestSystemRunsTheTables(t *testing.T) {
	s := tumblebug.Must(lifecycle.NewMemoryStore(), newCloud(), nil)
	for published, runs := range map[*fsm.Table]*fsm.Table{
		tumblebug.MCI.Table(): s.MCIs().Machine().Table(), tumblebug.VM.Table(): s.VMs().Machine().Table(),
	} {
		require.Equal(t, published.Rows, runs.Rows)
	}
	require.NoError(t, s.Close(t.Context()))
}

func TestDocumentation(t *testing.T) {
	diagramtest.Doc(t, "doc.go", tumblebug.MCI.Table())
	diagramtest.Doc(t, "doc_vm.go", tumblebug.VM.Table())
}

// The comparison with the document notices every small fault of a table.
func TestConformanceNoticesEveryMutant(t *testing.T) {
	notices(t, tumblebug.VM, "vm")
	notices(t, tumblebug.MCI, "mci")
}

func notices[S, E comparable, T any](t *testing.T, m *fsm.Machine[S, E, T], document string) {
	fsmtest.Mutate(t, m, func(t testing.TB, m *fsm.Machine[S, E, T]) {
		conform.Check(t, m.Table(), "testdata/"+document+".json", "testdata/"+document+".map.txt")
	}, nil)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
