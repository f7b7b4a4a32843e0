package edgecloud_test

import (
	"testing"

	"github.com/interlock-go/interlock/fsm/diagram/diagramtest"
	"github.com/interlock-go/interlock/internal/conform"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

func TestConformance(t *testing.T) {
	conform.Check(t, edgecloud.ClusterInst.Table(), "testdata/trackedstate.json", "testdata/trackedstate.map.txt")
	conform.Check(t, edgecloud.AppInst.Table(), "testdata/trackedstate.json", "testdata/trackedstate.map.txt")
	conform.Check(t, edgecloud.CloudletCreate.Table(), "testdata/cloudlet-create.json", "testdata/cloudlet-create.map.txt")
	conform.Check(t, edgecloud.CloudletUpgrade.Table(), "testdata/cloudlet-upgrade.json", "testdata/cloudlet-upgrade.map.txt")
}

func TestDocumentation(t *testing.T) {
	// The rows of AppInst are those of ClusterInst, which TestConformance proves.
	diagramtest.Doc(t, "doc.go", edgecloud.ClusterInst.Table(),
		edgecloud.CloudletCreate.Table(), edgecloud.CloudletUpgrade.Table())
}
