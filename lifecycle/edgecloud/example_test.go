package edgecloud_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// A user asks for a cluster, and a CRM makes it. Its message that it has begun is
// lost, and its last one arrives twice.
func Example() {
	ctx := context.Background()
	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	c.Cloudlets.StartUp(ctx, "berlin", 1, "v1") // its CRM connects, under notify id 1
	c.Cloudlets.Acknowledge(ctx, "berlin", 1)
	c.Cloudlets.Gathered(ctx, "berlin", 1)

	rec, _ := c.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 3}, nil)
	fmt.Println(rec.State)
	_, err := c.Apps.Create(ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1"}, nil)
	fmt.Println(errors.Is(err, lifecycle.ErrPrecondition))

	done := edgecloud.Info{ID: "c1", Operation: rec.Operation, State: edgecloud.Ready}
	fmt.Println(c.Clusters.Receive(ctx, done))
	fmt.Println(c.Clusters.Receive(ctx, done))
	rec, _ = c.Clusters.Wait(ctx, rec, nil)
	fmt.Println(rec.State)

	// Output:
	// CreateRequested
	// true
	// applied <nil>
	// repeated <nil>
	// Ready
}

// What fails is undone, with the content from before.
func ExampleInstances_Wait() {
	ctx := context.Background()
	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	c.Cloudlets.StartUp(ctx, "berlin", 1, "v1")
	c.Cloudlets.Gathered(ctx, "berlin", 1)
	rec, _ := c.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 3}, nil)
	c.Clusters.Receive(ctx, edgecloud.Info{ID: "c1", Operation: rec.Operation, State: edgecloud.Ready})

	rec, _ = c.Clusters.Update(ctx, "c1", func(s *edgecloud.ClusterSpec) error { s.Nodes = 7; return nil }, nil)
	c.Clusters.Receive(ctx, edgecloud.Info{
		ID: "c1", Operation: rec.Operation, State: edgecloud.UpdateError, Errors: []string{"no quota"},
	})
	rec, err := c.Clusters.Wait(ctx, rec, nil)
	fmt.Println(err)
	fmt.Println(rec.State, rec.Payload.Nodes)

	// Output:
	// edgecloud: operation 2 of clusterinst "c1" failed: UpdateError: no quota (undone)
	// Ready 3
}

// The same table over a payload of your own, here with one more condition.
func ExampleClusterInstTable() {
	type cluster struct{ Locked bool }
	table := edgecloud.ClusterInstTable()
	for i := range table.Rows {
		if table.Rows[i].Event == edgecloud.Delete {
			table.Rows[i] = table.Rows[i].If(fsm.When("not locked", func(_ context.Context, _, c *cluster) error {
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
