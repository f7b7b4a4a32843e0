package edgecloud_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

type clusterRecord = edgecloud.Record[edgecloud.ClusterSpec]

// newCoordinator returns a coordinator with the cloudlet b, whose CRM is Ready under
// notify id 1.
func newCoordinator(t testing.TB, store lifecycle.Store) *edgecloud.Coordinator {
	t.Helper()
	c, err := edgecloud.NewCoordinator(store, nil)
	require.NoError(t, err)
	up(t, c, "b")
	return c
}

// up starts the CRM of a cloudlet.
func up(t testing.TB, c *edgecloud.Coordinator, id string) {
	t.Helper()
	_, err := c.Cloudlets.StartUp(t.Context(), id, 1, "v1")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.Acknowledge(t.Context(), id, 1))
	require.NoError(t, c.Cloudlets.Gathered(t.Context(), id, 1))
}

// createCluster creates a cluster on cloudlet b, which is Ready.
func createCluster(t testing.TB, c *edgecloud.Coordinator, id string) {
	t.Helper()
	rec, err := c.Clusters.Create(t.Context(), id, edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.Ready)
}

// createApp creates an app in cluster c, which is Ready.
func createApp(t testing.TB, c *edgecloud.Coordinator, id string) {
	t.Helper()
	rec, err := c.Apps.Create(t.Context(), id, edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Apps.Receive(t.Context(), notifyID(t.Context(), c, "b"), edgecloud.Report{ID: id, Operation: rec.Operation, State: edgecloud.Ready})
	require.NoError(t, err)
}

// report reports a state of a cluster in the operation of a record.
func report(t testing.TB, c *edgecloud.Coordinator, rec clusterRecord, state edgecloud.State) {
	t.Helper()
	v, err := c.Clusters.Receive(t.Context(), notifyID(t.Context(), c, rec.Payload.Cloudlet), edgecloud.Report{
		ID: rec.ID, Operation: rec.Operation, State: state, Errors: []string{"no quota"},
	})
	require.NoError(t, err)
	require.Equal(t, lifecycle.Applied, v)
}

// notifyID returns the notify id of the present CRM of a cloudlet.
func notifyID(ctx context.Context, c *edgecloud.Coordinator, cloudlet string) int64 {
	at, _ := c.Cloudlets.Creation(ctx, cloudlet)
	return at.Payload.NotifyID
}

// requireCluster requires that a cluster is in a state.
func requireCluster(t testing.TB, c *edgecloud.Coordinator, id string, state edgecloud.State) {
	t.Helper()
	rec, err := c.Clusters.Get(t.Context(), id)
	if state == edgecloud.NotPresent {
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
		return
	}
	require.NoError(t, err)
	require.Equal(t, state, rec.State)
}

// answer is a CRM that completes all orders of cloudlet b.
func answer(ctx context.Context, c *edgecloud.Coordinator) {
	orders, _ := c.Orders(ctx, "b")
	for _, o := range orders {
		state := edgecloud.Ready
		if o.Verb == edgecloud.Delete {
			state = edgecloud.NotPresent
		}
		_, _ = c.Answer(ctx, notifyID(ctx, c, "b"), o.Key, edgecloud.Report{Operation: o.Operation, State: state})
	}
}

func clusterKey(id string) lifecycle.Key { return lifecycle.Key{Machine: "clusterinst", ID: id} }
func appKey(id string) lifecycle.Key     { return lifecycle.Key{Machine: "appinst", ID: id} }

// Calls of a store.
var (
	commit           = scripttest.Call{Method: "Commit"}
	commitOfCluster  = scripttest.Call{Method: "Commit", Machine: "clusterinst"}
	readCloudletNote = scripttest.Call{Method: "Get", Machine: "edgecloud-note", ID: "cloudlet/"}
	readClusterNote  = scripttest.Call{Method: "Get", Machine: "edgecloud-note", ID: "clusterinst/"}
	listAppNotes     = scripttest.Call{Method: "List", Machine: "edgecloud-note", ID: "appinst/"}
)
