package edgecloud_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// A user requests a cluster, and the CRM creates it. Its report that it has started is
// lost, and its last report arrives twice.
func Example() {
	ctx := context.Background()
	c, err := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	if err != nil {
		log.Fatal(err)
	}
	c.Cloudlets.StartUp(ctx, "berlin", 1, "v1") // its CRM connects, under notify id 1
	c.Cloudlets.Acknowledge(ctx, "berlin", 1)
	c.Cloudlets.Gathered(ctx, "berlin", 1)

	rec, _ := c.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 3}, nil)
	fmt.Println(rec.State)
	_, err = c.Apps.Create(ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1"}, nil)
	fmt.Println(errors.Is(err, lifecycle.ErrPrecondition))

	done := edgecloud.Report{ID: "c1", Operation: rec.Operation, State: edgecloud.Ready}
	fmt.Println(c.Clusters.Receive(ctx, 1, done))
	fmt.Println(c.Clusters.Receive(ctx, 1, done))
	rec, _ = c.Clusters.Wait(ctx, rec, 0)
	fmt.Println(rec.State)

	// Output:
	// CreateRequested
	// true
	// applied <nil>
	// repeated <nil>
	// Ready
}

// Wait undoes a failed operation: the content from before is restored.
func ExampleInstances_Wait() {
	ctx := context.Background()
	c, err := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	if err != nil {
		log.Fatal(err)
	}
	c.Cloudlets.StartUp(ctx, "berlin", 1, "v1")
	c.Cloudlets.Gathered(ctx, "berlin", 1)
	c.Clusters.Add(ctx, "c1", edgecloud.Ready, edgecloud.ClusterSpec{ // it exists already
		Cloudlet: "berlin", Nodes: 3, Attributes: json.RawMessage(`{"labels":["test"]}`),
	})

	rec, _ := c.Clusters.Update(ctx, "c1", func(s *edgecloud.ClusterSpec) error {
		s.Nodes, s.Attributes = 7, nil
		return nil
	}, nil)
	c.Clusters.Receive(ctx, 1, edgecloud.Report{
		ID: "c1", Operation: rec.Operation, State: edgecloud.UpdateError, Errors: []string{"no quota"},
	})
	rec, err = c.Clusters.Wait(ctx, rec, 0)
	fmt.Println(err)
	fmt.Println(rec.State, rec.Payload.Nodes, string(rec.Payload.Attributes))

	// Output:
	// edgecloud: operation 1 of clusterinst "c1" failed: UpdateError: no quota (undone)
	// Ready 3 {"labels":["test"]}
}

// The new CRM completes an upgrade whose acknowledgement by the old CRM was missed.
func Example_upgrade() {
	ctx := context.Background()
	cloudlet := edgecloud.CloudletUpgrade.Instance()
	for _, report := range []struct {
		event edgecloud.CloudletEvent
		actor fsm.Actor
	}{
		{edgecloud.Upgrade, edgecloud.User},
		{edgecloud.Connected, edgecloud.Controller},
		{edgecloud.Gathered, edgecloud.CRMv1}, // only the new CRM may report this
		{edgecloud.Gathered, edgecloud.CRMv2},
	} {
		_, err := cloudlet.Fire(ctx, report.event, report.actor, nil)
		fmt.Println(cloudlet.State(), err)
	}

	// Output:
	// UpdateRequested <nil>
	// InitOk <nil>
	// InitOk fsm: wrong actor: cloudlet-upgrade: Gathered in InitOk by crm-v1
	// Ready <nil>
}
