package edgecloud_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/fsmtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The comparison with the document notices every small fault of a table.
func TestConformanceNoticesEveryMutant(t *testing.T) {
	notices(t, edgecloud.ClusterInst, "trackedstate")
	notices(t, edgecloud.AppInst, "trackedstate")
	notices(t, edgecloud.CloudletCreate, "cloudlet-create")
	notices(t, edgecloud.CloudletUpgrade, "cloudlet-upgrade")
}

func notices[S, E comparable, T any](t *testing.T, m *fsm.Machine[S, E, T], document string) {
	fsmtest.Mutate(t, m, func(t testing.TB, m *fsm.Machine[S, E, T]) {
		conform.Check(t, m.Table(), "testdata/"+document+".json", "testdata/"+document+".map.txt")
	}, nil)
}
