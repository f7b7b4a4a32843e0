// Edgecloud runs a controller and two cloudlets with their CRMs. Reports are lost,
// repeated and late; a CRM fails, does not answer, crashes and is replaced; the controller
// crashes. At the end the controller creates and deletes apps by the number of customers.
//
// It prints requests, refusals and states. It fails if a request or report is accepted
// that must be refused, or if an object ends in a wrong state.
package main

import (
	"context"
	"errors"
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
	w := &world{out: out, store: &lifecycle.MemoryStore{KeepHistory: -1}, sites: map[string]*site{}}
	w.restart()
	for _, part := range []func(context.Context, *world){
		startCloudlets, loseReports, failUpdate, deleteInUse, doNotAnswer, disconnect, crashCRM, upgradeCRM, followDemand,
	} {
		if part(ctx, w); w.err != nil {
			return w.err
		}
	}
	return w.verify(ctx)
}

func startCloudlets(ctx context.Context, w *world) {
	w.printf("berlin: requested by a user; oslo: started by hand")
	_, err := w.c.Cloudlets.Create(ctx, "berlin", "v1")
	w.note(err)
	w.connect(ctx, "berlin", "v1")
	w.connect(ctx, "oslo", "v1")
}

func loseReports(ctx context.Context, w *world) {
	w.printf("c1: created; an app in it is refused until it is Ready")
	c1, err := w.c.Clusters.Create(ctx, "c1", edgecloud.ClusterSpec{Cloudlet: "berlin", Nodes: 2}, nil)
	w.note(err)
	_, err = w.c.Apps.Create(ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 1}, nil)
	w.refused(err, lifecycle.ErrPrecondition)
	w.printf("c1: the report Creating is lost, the report Ready arrives three times")
	w.sites["berlin"].lose = 1
	w.serve(ctx, "berlin")
	w.report(ctx, c1.ID, c1.Operation, edgecloud.Ready, lifecycle.Repeated)
	w.report(ctx, c1.ID, c1.Operation, edgecloud.Ready, lifecycle.Repeated)
	_, err = w.c.Apps.Create(ctx, "a1", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 1}, nil)
	w.note(err)
	w.serve(ctx, "berlin")
	w.requireCluster(ctx, "c1", edgecloud.Ready, 2)
}

func failUpdate(ctx context.Context, w *world) {
	w.printf("c1: an update to 9 nodes fails and is undone; later reports change nothing")
	w.sites["berlin"].failure = errors.New("no quota")
	rec, err := w.c.Clusters.Update(ctx, "c1", setNodes(9), nil)
	w.note(err)
	w.serve(ctx, "berlin")
	w.sites["berlin"].failure = nil
	_, err = w.c.Clusters.Wait(ctx, rec, 0)
	w.refused(err, edgecloud.ErrFailed)
	w.requireCluster(ctx, "c1", edgecloud.Ready, 2)
	w.report(ctx, "c1", rec.Operation, edgecloud.Ready, lifecycle.Refused)
	w.report(ctx, "c1", rec.Operation-1, edgecloud.Ready, lifecycle.Stale)
}

func deleteInUse(ctx context.Context, w *world) {
	w.printf("c1: a delete is refused, because a1 is in it")
	_, err := w.c.Clusters.Delete(ctx, "c1", nil)
	w.refused(err, edgecloud.ErrInUse)
	w.requireCluster(ctx, "c1", edgecloud.Ready, 2)
}

func doNotAnswer(ctx context.Context, w *world) {
	w.printf("c2: the CRM does not answer; then it starts and does not finish")
	const patience = 20 * time.Millisecond
	rec, err := w.c.Clusters.Create(ctx, "c2", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	w.note(err)
	_, err = w.c.Clusters.Wait(ctx, rec, patience)
	w.refused(err, edgecloud.ErrNoAnswer)
	rec, err = w.c.Clusters.Create(ctx, "c2", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	w.note(err)
	w.report(ctx, "c2", rec.Operation, edgecloud.Creating, lifecycle.Applied)
	_, err = w.c.Clusters.Wait(ctx, rec, patience)
	w.refused(err, edgecloud.ErrStillWorking)
	w.report(ctx, "c2", rec.Operation, edgecloud.CreateError, lifecycle.Applied)
	_, err = w.c.Clusters.Undo(ctx, "c2", rec.Operation, "not needed")
	w.note(err)
	w.requireCluster(ctx, "c2", edgecloud.NotPresent, 0)
}

func disconnect(ctx context.Context, w *world) {
	w.printf("a1: the network and the controller fail during an update to 3 replicas")
	_, err := w.c.Apps.Update(ctx, "a1", func(a *edgecloud.AppSpec) error { a.Replicas = 3; return nil }, nil)
	w.note(err)
	berlin := w.sites["berlin"]
	berlin.lose = 2
	w.serve(ctx, "berlin")
	w.restart()
	moved, err := w.c.Cloudlets.Disconnected(ctx, "berlin", berlin.notify)
	w.note(err)
	w.require(moved, "berlin is not Offline")
	_, err = w.c.Clusters.Create(ctx, "c3", edgecloud.ClusterSpec{Cloudlet: "berlin"}, nil)
	w.refused(err, lifecycle.ErrPrecondition)
	w.connect(ctx, "berlin", "v1")
}

func crashCRM(ctx context.Context, w *world) {
	w.printf("berlin: the CRM crashes before it has carried out its orders for a2 and c1")
	_, err := w.c.Apps.Create(ctx, "a2", edgecloud.AppSpec{ClusterInst: "c1", Replicas: 1}, nil)
	w.note(err)
	_, err = w.c.Clusters.Update(ctx, "c1", setNodes(3), nil)
	w.refused(err, edgecloud.ErrInUse)
	w.note(w.sites["berlin"].crash())
	w.connect(ctx, "berlin", "v1")
	w.serve(ctx, "berlin")
	_, err = w.c.Clusters.Update(ctx, "c1", setNodes(3), nil)
	w.note(err)
	w.note(w.sites["berlin"].crash())
	w.connect(ctx, "berlin", "v1")
	w.serve(ctx, "berlin")
	w.requireCluster(ctx, "c1", edgecloud.Ready, 3)
}

func upgradeCRM(ctx context.Context, w *world) {
	cloudlets, berlin := w.c.Cloudlets, w.sites["berlin"]
	w.printf("berlin: an upgrade to v2 fails; changes of instances are refused")
	_, err := cloudlets.Upgrade(ctx, "berlin", "v2", "")
	w.note(err)
	old := berlin.notify
	w.note(cloudlets.AckUpgrade(ctx, "berlin", old))
	_, err = w.c.Apps.Delete(ctx, "a2", nil)
	w.refused(err, lifecycle.ErrPrecondition)
	w.note(cloudlets.BringUpFailed(ctx, "berlin", old, "no image"))
	w.note(cloudlets.KeepOld(ctx, "berlin", old))
	_, err = w.c.Apps.Delete(ctx, "a2", nil)
	w.refused(err, lifecycle.ErrPrecondition)
	w.printf("berlin: repaired; v2 starts, and the acknowledgement of v1 is missed")
	w.note(cloudlets.Repaired(ctx, "berlin", "v1", "the image is available"))
	_, err = cloudlets.Upgrade(ctx, "berlin", "v2", "")
	w.note(err)
	w.note(berlin.crash()) // the new CRM has no memory of the old one
	w.connect(ctx, "berlin", "v2")
	moved, err := cloudlets.Disconnected(ctx, "berlin", old)
	w.note(err)
	w.require(!moved, "the drop of the connection of v1 has moved the cloudlet")
	w.refused(cloudlets.AckUpgrade(ctx, "berlin", old), lifecycle.ErrStale)
	_, err = w.c.Apps.Delete(ctx, "a2", nil)
	w.note(err)
	w.serve(ctx, "berlin")
}

// followDemand creates and deletes apps by the number of customers. The controller reads
// which instances are in transition, and never requests a change twice.
func followDemand(ctx context.Context, w *world) {
	const perApp = 100
	w.printf("oslo: one app for %d customers", perApp)
	for _, customers := range []int{120, 350, 60, 0} {
		want := (customers + perApp - 1) / perApp
		requests := 0
		for range 10 {
			n := w.scale(ctx, "oslo", want)
			if requests += n; n == 0 {
				break
			}
			w.require(w.scale(ctx, "oslo", want) == 0, "a change was requested twice")
			w.serve(ctx, "oslo")
		}
		apps := w.sites["oslo"].apps()
		w.printf("  %d customers: %d apps after %d requests", customers, apps, requests)
		w.require(apps == want, "%d apps for %d customers", apps, customers)
	}
}

// scale requests the missing apps of a cloudlet, or the delete of those that are too many,
// and returns the number of requests. Without apps it deletes the cluster too.
func (w *world) scale(ctx context.Context, cloudlet string, apps int) (requests int) {
	cluster := "auto-" + cloudlet
	request := func(_ any, err error) {
		w.note(err)
		requests++
	}
	switch at := state(ctx, w, w.c.Clusters, cluster); {
	case at == edgecloud.NotPresent && apps > 0:
		request(w.c.Clusters.Create(ctx, cluster, edgecloud.ClusterSpec{Cloudlet: cloudlet, Nodes: 1}, nil))
		return requests
	case at != edgecloud.Ready:
		return 0 // in transition, or not needed
	}
	left := 0
	for i := range 10 {
		id := fmt.Sprintf("%s-%d", cluster, i)
		at := state(ctx, w, w.c.Apps, id)
		if at != edgecloud.NotPresent {
			left++
		}
		switch {
		case i < apps && at == edgecloud.NotPresent:
			request(w.c.Apps.Create(ctx, id, edgecloud.AppSpec{ClusterInst: cluster, Replicas: 1}, nil))
		case i >= apps && at == edgecloud.Ready:
			request(w.c.Apps.Delete(ctx, id, nil))
		}
	}
	if left == 0 && apps == 0 {
		request(w.c.Clusters.Delete(ctx, cluster, nil))
	}
	return requests
}

func state[T any](ctx context.Context, w *world, in *edgecloud.Instances[T], id string) edgecloud.State {
	rec, err := in.Get(ctx, id)
	if errors.Is(err, lifecycle.ErrNotFound) {
		return edgecloud.NotPresent
	}
	w.note(err)
	return rec.State
}

// verify returns an error if an object is in a wrong state, in the store or on a cloudlet.
func (w *world) verify(ctx context.Context) error {
	var records []string
	for rec, err := range w.c.Clusters.Manager().All(ctx, lifecycle.Select[edgecloud.State]{}) {
		w.note(err)
		records = append(records, fmt.Sprintf("%s %s", rec.ID, rec.State))
	}
	for rec, err := range w.c.Apps.Manager().All(ctx, lifecycle.Select[edgecloud.State]{}) {
		w.note(err)
		records = append(records, fmt.Sprintf("%s %s", rec.ID, rec.State))
	}
	w.require(slices.Equal(records, []string{"c1 Ready", "a1 Ready"}), "the records are %v", records)
	berlin, oslo := w.sites["berlin"], w.sites["oslo"]
	w.require(len(berlin.present) == 2 && len(oslo.present) == 0,
		"berlin has %d instances, oslo %d", len(berlin.present), len(oslo.present))
	w.require(berlin.present[appKey("a1")].App.Replicas == 3, "a1 has %d replicas", berlin.present[appKey("a1")].App.Replicas)
	w.require(berlin.twice == 0 && oslo.twice == 0, "an operation was carried out twice")
	w.printf("end: c1 and a1 are Ready, all other instances are removed, no operation was carried out twice")
	return w.err
}
