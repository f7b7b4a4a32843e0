package edgecloud_test

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// A user asks for a cluster, and a CRM makes it. Its message that it has begun
// is lost, its last one arrives twice.
func Example() {
	ctx := context.Background()
	spec := &edgecloud.ClusterSpec{Cloudlet: "berlin-1", Flavor: "small", Nodes: 3}
	cluster := edgecloud.ClusterInst.Instance()

	cluster.Fire(ctx, edgecloud.Create, edgecloud.User, spec)
	fmt.Println(cluster.State())
	cluster.Fire(ctx, edgecloud.Done, edgecloud.CRM, spec)
	fmt.Println(cluster.State())
	_, err := cluster.Fire(ctx, edgecloud.Done, edgecloud.CRM, spec)
	fmt.Println(err)

	// Output:
	// CreateRequested
	// Ready
	// fsm: not allowed: clusterinst: Done in Ready by crm
}

// The same table over a payload of your own, here with one more condition.
func ExampleClusterInstTable() {
	type cluster struct{ Locked bool }
	table := edgecloud.ClusterInstTable()
	for i := range table.Rows {
		if table.Rows[i].Event == edgecloud.Delete {
			table.Rows[i] = table.Rows[i].If(fsm.When("not locked", func(_ context.Context, c *cluster) error {
				if c.Locked {
					return fmt.Errorf("it is locked")
				}
				return nil
			}))
		}
	}
	clusters := fsm.Must[cluster](table)

	err := clusters.Can(context.Background(), clusters.At(edgecloud.Ready), edgecloud.Delete, edgecloud.User, &cluster{Locked: true})
	fmt.Println(err)

	// Output:
	// fsm: refused by a guard: clusterinst: Delete in Ready by user: not locked: it is locked
}

// A second CRM takes over from the first, which did not say that it had begun.
func ExampleCloudletUpgradeTable() {
	ctx := context.Background()
	cloudlet := edgecloud.CloudletUpgrade.Instance()
	for _, say := range []struct {
		event edgecloud.CloudletEvent
		actor fsm.Actor
	}{
		{edgecloud.Upgrade, edgecloud.User},
		{edgecloud.Connected, edgecloud.Controller},
		{edgecloud.Gathered, edgecloud.CRMv1}, // only the new CRM may say so
		{edgecloud.Gathered, edgecloud.CRMv2},
	} {
		_, err := cloudlet.Fire(ctx, say.event, say.actor, nil)
		fmt.Println(cloudlet.State(), err)
	}

	// Output:
	// UpdateRequested <nil>
	// InitOk <nil>
	// InitOk fsm: wrong actor: cloudlet-upgrade: Gathered in InitOk by crm-v1
	// Ready <nil>
}
