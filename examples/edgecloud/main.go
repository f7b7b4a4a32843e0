// Edgecloud runs a controller, and the CRM of a cloudlet. Reports are lost and repeated; the
// CRM does not answer, crashes and is upgraded; the controller crashes.
//
// It prints refusals, reports and states. It fails if a request or report is accepted that
// must be refused, or if an object ends in a wrong state.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "edgecloud:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	d := newDemo(out)
	for _, scenario := range []func(context.Context){
		d.startCloudlet, d.loseReports, d.refuseDelete, d.timeOut, d.disconnect, d.crashCRM, d.upgradeCRM,
	} {
		if scenario(ctx); d.err != nil {
			return d.err
		}
	}
	return d.verify(ctx)
}

func (d *demo) startCloudlet(ctx context.Context) {
	d.printf("berlin: a user requests the cloudlet, and its CRM connects")
	_, err := d.controller.Cloudlets.Create(ctx, "berlin", "v1", nil)
	d.keep(err)
	d.connect(ctx, "v1")
}

func (d *demo) loseReports(ctx context.Context) {
	d.printf("c1: an app is refused until the cluster is Ready")
	app := edgecloud.AppSpec{ClusterInst: "c1", Replicas: 1}
	c1, err := d.controller.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{
		Cloudlet: "berlin", Nodes: 2, Attributes: json.RawMessage(`{"labels":["web"]}`),
	}, nil)
	d.keep(err)
	_, err = d.controller.Apps.Create(ctx, "a1", app, nil)
	d.refused(err, lifecycle.ErrPrecondition)
	d.printf("c1: the report Creating is lost, the report Ready arrives three times")
	d.site.lose = 1
	d.serve(ctx)
	d.report(ctx, c1, edgecloud.Ready, lifecycle.Repeated)
	d.report(ctx, c1, edgecloud.Ready, lifecycle.Repeated)
	_, err = d.controller.Apps.Create(ctx, "a1", app, nil)
	d.keep(err)
	d.serve(ctx)
	d.requireCluster(ctx, "c1", edgecloud.Ready, 2)
}

func (d *demo) refuseDelete(ctx context.Context) {
	d.printf("c1: a delete is refused, because a1 is in the cluster")
	_, err := d.controller.Clusters.Delete(ctx, "c1", nil)
	d.refused(err, edgecloud.ErrInUse)
	d.requireCluster(ctx, "c1", edgecloud.Ready, 2)
}

func (d *demo) timeOut(ctx context.Context) {
	d.printf("c2: the CRM does not answer; then it starts and does not finish")
	const patience = 20 * time.Millisecond
	c2, err := d.controller.Clusters.Create(ctx, "c2", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	d.keep(err)
	_, err = d.controller.Clusters.Wait(ctx, c2, patience)
	d.refused(err, edgecloud.ErrNoAnswer)
	c2, err = d.controller.Clusters.Create(ctx, "c2", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	d.keep(err)
	d.report(ctx, c2, edgecloud.Creating, lifecycle.Applied)
	_, err = d.controller.Clusters.Wait(ctx, c2, patience)
	d.refused(err, edgecloud.ErrStillWorking)
	d.report(ctx, c2, edgecloud.CreateError, lifecycle.Applied)
	_, err = d.controller.Clusters.Undo(ctx, "c2", c2.Operation, "not needed")
	d.keep(err)
	d.report(ctx, c2, edgecloud.Ready, lifecycle.Refused)
	d.requireCluster(ctx, "c2", edgecloud.NotPresent, 0)
}

func (d *demo) disconnect(ctx context.Context) {
	d.printf("a1: the network and the controller fail during an update to 3 replicas")
	_, err := d.controller.Apps.Update(ctx, "a1", func(a *edgecloud.AppSpec) error { a.Replicas = 3; return nil }, nil)
	d.keep(err)
	d.site.lose = 2
	d.serve(ctx)
	d.restart()
	moved, err := d.controller.Cloudlets.Disconnected(ctx, "berlin", d.notify)
	d.keep(err)
	d.require(moved, "berlin is not Offline")
	_, err = d.controller.Clusters.Create(ctx, "c3", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	d.refused(err, lifecycle.ErrPrecondition)
	d.connect(ctx, "v1")
}

func (d *demo) crashCRM(ctx context.Context) {
	d.printf("c1: the CRM crashes before it executes an update to 3 nodes")
	_, err := d.controller.Clusters.Update(ctx, "c1", func(c *edgecloud.ClusterSpec) error { c.Nodes = 3; return nil }, nil)
	d.keep(err)
	d.startCRM()
	d.connect(ctx, "v1")
	d.serve(ctx)
	d.requireCluster(ctx, "c1", edgecloud.Ready, 3)
}

func (d *demo) upgradeCRM(ctx context.Context) {
	d.printf("berlin: during an upgrade to v2 changes of instances are refused")
	cloudlets, old := d.controller.Cloudlets, d.notify
	_, err := cloudlets.Upgrade(ctx, "berlin", "v2", "")
	d.keep(err)
	_, err = d.controller.Apps.Delete(ctx, "a1", nil)
	d.refused(err, lifecycle.ErrPrecondition)
	d.printf("berlin: v2 starts; the acknowledgement of v1 arrives too late")
	d.startCRM()
	d.connect(ctx, "v2")
	moved, err := cloudlets.Disconnected(ctx, "berlin", old)
	d.keep(err)
	d.require(!moved, "the end of the connection of v1 has moved the cloudlet")
	d.refused(cloudlets.AckUpgrade(ctx, "berlin", old), lifecycle.ErrStale)
}

// verify returns an error if an object is in a wrong state, in the store or on the
// cloudlet.
func (d *demo) verify(ctx context.Context) error {
	var records []string
	for rec, err := range d.controller.Clusters.Manager().All(ctx, lifecycle.Select[edgecloud.State]{}) {
		d.keep(err)
		records = append(records, fmt.Sprintf("%s %s", rec.ID, rec.State))
	}
	for rec, err := range d.controller.Apps.Manager().All(ctx, lifecycle.Select[edgecloud.State]{}) {
		d.keep(err)
		records = append(records, fmt.Sprintf("%s %s", rec.ID, rec.State))
	}
	d.require(slices.Equal(records, []string{"c1 Ready", "a1 Ready"}), "the records are %v", records)
	d.require(len(d.site.present) == 2, "berlin has %d instances", len(d.site.present))
	a1 := d.site.present[lifecycle.Key{Machine: edgecloud.AppInst.Name(), ID: "a1"}]
	d.require(a1.App.Replicas == 3, "a1 has %d replicas", a1.App.Replicas)
	c1 := d.site.present[lifecycle.Key{Machine: edgecloud.ClusterInst.Name(), ID: "c1"}]
	d.printf("  c1 has its attributes on the cloudlet: %s", c1.Cluster.Attributes)
	d.require(d.site.twice == 0, "%d operations were executed twice", d.site.twice)
	d.printf("end: c1 and a1 are Ready, no other instance exists, no operation was executed twice")
	return d.err
}
