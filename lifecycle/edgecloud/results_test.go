package edgecloud_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// What the work of a CRM has produced is in the record, and undone with the rest.
func TestResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := newCoordinator(t, lifecycle.NewMemoryStore())
		site := &platform{present: map[lifecycle.Key]edgecloud.Order{}, running: map[lifecycle.Key]edgecloud.Order{}}
		crm, err := edgecloud.NewResourceManager(site, func(ctx context.Context, key lifecycle.Key, r edgecloud.Report) error {
			_, err := c.Answer(ctx, 1, key, r)
			return err
		})
		require.NoError(t, err)
		serve := func(results string) {
			orders, err := c.Orders(ctx, "b")
			require.NoError(t, err)
			require.Len(t, orders, 1)
			site.results = json.RawMessage(results)
			require.NoError(t, crm.Handle(ctx, orders[0]))
		}
		has := func(want string) {
			t.Helper()
			now, err := c.Clusters.Get(ctx, "c")
			require.NoError(t, err)
			require.Equal(t, want, string(now.Payload.Results))
		}
		_, err = c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
		require.NoError(t, err)
		serve(`{"address":"10.0.0.1"}`)
		has(`{"address":"10.0.0.1"}`)
		update := func() clusterRecord {
			rec, err := c.Clusters.Update(ctx, "c", nil, nil)
			require.NoError(t, err)
			return rec
		}
		update()
		serve("") // no results: those from before stay
		has(`{"address":"10.0.0.1"}`)
		update()
		serve(`{"address":"10.0.0.2"}`)
		has(`{"address":"10.0.0.2"}`)
		rec := update()
		_, err = c.Clusters.Receive(ctx, 1, edgecloud.Report{
			ID: "c", Operation: rec.Operation, State: edgecloud.Ready, Results: json.RawMessage("{"),
		})
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, "by crm")
		report(t, c, rec, edgecloud.UpdateError)
		_, err = c.Clusters.Undo(ctx, "c", 0, "")
		require.NoError(t, err)
		has(`{"address":"10.0.0.2"}`)
		_, err = c.Clusters.Delete(ctx, "c", nil)
		require.NoError(t, err)
		serve("{}")
		requireCluster(t, c, "c", edgecloud.NotPresent)
	})
}

// The results of an AppInst are in its record too.
func TestResultsOfApp(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	createCluster(t, c, "c")
	app, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Apps.Receive(ctx, 1, edgecloud.Report{
		ID: "a", Operation: app.Operation, State: edgecloud.Ready, Results: json.RawMessage(`{"url":"http://a"}`),
	})
	require.NoError(t, err)
	now, err := c.Apps.Get(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, `{"url":"http://a"}`, string(now.Payload.Results))
}
