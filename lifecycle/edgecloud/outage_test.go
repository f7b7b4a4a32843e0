package edgecloud_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// contents returns the states and payloads of all objects.
func contents(t *testing.T, s *lifecycle.MemoryStore) (all []string) {
	t.Helper()
	for _, machine := range []string{"cloudlet-create", "cloudlet-upgrade", "clusterinst", "appinst", "edgecloud-note"} {
		list, err := s.List(t.Context(), lifecycle.Query{Machine: machine, Limit: 100})
		require.NoError(t, err)
		for _, r := range list {
			r, err := s.Get(t.Context(), r.Key)
			require.NoError(t, err)
			all = append(all, fmt.Sprintf("%s %s %s %s", machine, r.ID, r.State, r.Payload))
		}
	}
	return all
}

// Every request, with a failure of every single call of the store, and with the end of its
// context there. The request that is repeated afterwards has the same effect as one without
// a failure.
func TestRequestsAfterAFailure(t *testing.T) {
	type coordinator = edgecloud.Coordinator
	type request = func(ctx context.Context, c *coordinator) error
	second := func(_ any, err error) error { return err }
	app, spec := edgecloud.AppSpec{ClusterInst: "c"}, edgecloud.ClusterSpec{Cloudlet: "b"}
	start := func(c *coordinator, id int64, version string) error {
		return second(c.Cloudlets.StartUp(context.Background(), "b", id, version))
	}
	upgrading := func(t *testing.T, c *coordinator) {
		require.NoError(t, second(c.Cloudlets.Upgrade(t.Context(), "b", "v2", "")))
	}
	connected := func(t *testing.T, c *coordinator) {
		upgrading(t, c)
		require.NoError(t, start(c, 2, "v2"))
	}
	failed := func(t *testing.T, c *coordinator) {
		connected(t, c)
		require.NoError(t, c.Cloudlets.BringUpFailed(t.Context(), "b", 1, "no image"))
	}
	updating := func(t *testing.T, c *coordinator) {
		require.NoError(t, second(c.Apps.Update(t.Context(), "a", nil, nil)))
	}
	updateFailed := func(t *testing.T, c *coordinator) {
		rec, err := c.Clusters.Update(t.Context(), "c", nil, nil)
		require.NoError(t, err)
		report(t, c, rec, edgecloud.UpdateError)
		time.Sleep(time.Hour)
	}
	for name, tt := range map[string]struct {
		world   func(*testing.T, *coordinator)
		request request
	}{
		"create an app":    {nil, func(ctx context.Context, c *coordinator) error { return second(c.Apps.Create(ctx, "n", app, nil)) }},
		"update an app":    {nil, func(ctx context.Context, c *coordinator) error { return second(c.Apps.Update(ctx, "a", nil, nil)) }},
		"delete an app":    {nil, func(ctx context.Context, c *coordinator) error { return second(c.Apps.Delete(ctx, "a", nil)) }},
		"create a cluster": {nil, func(ctx context.Context, c *coordinator) error { return second(c.Clusters.Create(ctx, "n", spec, nil)) }},
		"update a cluster": {nil, func(ctx context.Context, c *coordinator) error { return second(c.Clusters.Update(ctx, "c", nil, nil)) }},
		"delete a cluster": {nil, func(ctx context.Context, c *coordinator) error { return second(c.Clusters.Delete(ctx, "d", nil)) }},
		"add a cluster": {nil, func(ctx context.Context, c *coordinator) error {
			return second(c.Clusters.Add(ctx, "n", edgecloud.Ready, spec))
		}},
		"upgrade": {nil, func(ctx context.Context, c *coordinator) error {
			return second(c.Cloudlets.Upgrade(ctx, "b", "v2", ""))
		}},
		"start up":       {nil, func(ctx context.Context, c *coordinator) error { return second(c.Cloudlets.StartUp(ctx, "b", 2, "v1")) }},
		"first start up": {nil, func(ctx context.Context, c *coordinator) error { return second(c.Cloudlets.StartUp(ctx, "n", 1, "v1")) }},
		"disconnect":     {nil, func(ctx context.Context, c *coordinator) error { return second(c.Cloudlets.Disconnected(ctx, "b", 1)) }},
		"acknowledge":    {connected, func(ctx context.Context, c *coordinator) error { return c.Cloudlets.Acknowledge(ctx, "b", 2) }},
		"gathered":       {connected, func(ctx context.Context, c *coordinator) error { return c.Cloudlets.Gathered(ctx, "b", 2) }},
		"bring-up fails": {upgrading, func(ctx context.Context, c *coordinator) error { return c.Cloudlets.BringUpFailed(ctx, "b", 1, "") }},
		"keep old":       {failed, func(ctx context.Context, c *coordinator) error { return c.Cloudlets.KeepOld(ctx, "b", 1) }},
		"report": {updating, func(ctx context.Context, c *coordinator) error {
			return second(c.Apps.Receive(ctx, 1, edgecloud.Report{ID: "a", Operation: 2, State: edgecloud.UpdateError}))
		}},
		"reconnect": {func(t *testing.T, c *coordinator) { updating(t, c); require.NoError(t, start(c, 2, "v1")) }, func(ctx context.Context, c *coordinator) error {
			return second(c.Reconnect(ctx, "b", 2, edgecloud.Account{Clusters: []edgecloud.Report{{ID: "c", State: edgecloud.Ready}}}))
		}},
		"undo":  {updateFailed, func(ctx context.Context, c *coordinator) error { return second(c.Clusters.Undo(ctx, "c", 0, "")) }},
		"sweep": {updateFailed, func(ctx context.Context, c *coordinator) error { return second(c.Sweep(ctx)) }},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, ends := range []bool{false, true} {
				for n, happened := 0, true; happened; n++ {
					synctest.Test(t, func(t *testing.T) {
						s := scripttest.NewStore()
						c := newCoordinator(t, s)
						createCluster(t, c, "c")
						createCluster(t, c, "d")
						createApp(t, c, "a")
						if tt.world != nil {
							tt.world(t, c)
						}
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						calls := 0
						s.Before(func(scripttest.Call) error {
							if calls++; calls != n {
								return nil
							}
							if ends {
								cancel()
								return lifecycle.Ended(ctx)
							}
							return lifecycle.ErrUnavailable
						})
						err := tt.request(ctx, c)
						if happened = calls >= n; !happened {
							require.NoError(t, err)
							return
						}
						where := fmt.Sprintf("call %d, ends: %v", n, ends)
						if n == 0 {
							require.NoError(t, err)
							want = contents(t, s.MemoryStore)
							return
						}
						require.Error(t, err, where)
						s.Before(nil)
						require.NoError(t, tt.request(t.Context(), c), where)
						require.Equal(t, want, contents(t, s.MemoryStore), where)
					})
				}
			}
		})
	}
}

// The second step of a delete is committed, and its answer is lost. The delete goes on.
func TestDeleteOfUnknownOutcome(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := scripttest.NewStore()
	s.After(func(c scripttest.Call) error {
		if c.Is(scripttest.Call{Method: "Commit", State: string(edgecloud.DeleteRequested)}) {
			cancel()
			return lifecycle.ErrUnknownOutcome
		}
		return nil
	})
	c, rec := requested(t, s)
	report(t, c, rec, edgecloud.Ready)
	_, err := c.Clusters.Delete(ctx, "c", nil)
	require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
	requireCluster(t, c, "c", edgecloud.DeleteRequested)
}
