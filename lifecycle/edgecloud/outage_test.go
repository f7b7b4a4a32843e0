package edgecloud_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// failing is a store whose nth call from now on fails, by the function fail.
type failing struct {
	*lifecycle.MemoryStore
	n    int
	fail func() error
}

func (s *failing) call() error {
	if s.n--; s.n != 0 {
		return nil
	}
	return s.fail()
}

func (s *failing) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if err := s.call(); err != nil {
		return lifecycle.StoredRecord{}, err
	}
	return s.MemoryStore.Get(ctx, k)
}

func (s *failing) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if err := s.call(); err != nil {
		return nil, err
	}
	return s.MemoryStore.List(ctx, q)
}

func (s *failing) History(ctx context.Context, k lifecycle.Key, after uint64, limit int) ([]lifecycle.HistoryRow, error) {
	if err := s.call(); err != nil {
		return nil, err
	}
	return s.MemoryStore.History(ctx, k, after, limit)
}

func (s *failing) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if err := s.call(); err != nil {
		return err
	}
	return s.MemoryStore.Commit(ctx, c)
}

// contents returns the states and payloads of all objects.
func (s *failing) contents(t *testing.T) (all []string) {
	t.Helper()
	for _, machine := range []string{"cloudlet-create", "cloudlet-upgrade", "clusterinst", "appinst", "edgecloud-note"} {
		list, err := s.MemoryStore.List(t.Context(), lifecycle.Query{Machine: machine, Limit: 100})
		require.NoError(t, err)
		for _, r := range list {
			r, err := s.MemoryStore.Get(t.Context(), r.Key)
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
						s := &failing{MemoryStore: lifecycle.NewMemoryStore()}
						c := newCoordinator(t, s)
						createCluster(t, c, "c")
						createCluster(t, c, "d")
						createApp(t, c, "a")
						if tt.world != nil {
							tt.world(t, c)
						}
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						s.n, s.fail = n, func() error {
							if ends {
								cancel()
								return lifecycle.Ended(ctx)
							}
							return lifecycle.ErrUnavailable
						}
						err := tt.request(ctx, c)
						if happened = n == 0 || s.n <= 0; !happened {
							require.NoError(t, err)
							return
						}
						where := fmt.Sprintf("call %d, ends: %v", n, ends)
						if n == 0 {
							require.NoError(t, err)
							want = s.contents(t)
							return
						}
						require.Error(t, err, where)
						s.n = 0
						require.NoError(t, tt.request(t.Context(), c), where)
						require.Equal(t, want, s.contents(t), where)
					})
				}
			}
		})
	}
}

// lostAnswer is a store whose answer to the commit of the state is lost, with the context of
// the call.
type lostAnswer struct {
	*lifecycle.MemoryStore
	state edgecloud.State
	end   func()
}

func (s *lostAnswer) Commit(ctx context.Context, c *lifecycle.Commit) error {
	err := s.MemoryStore.Commit(ctx, c)
	if err == nil && c.Changes[0].To.State == string(s.state) {
		s.end()
		return lifecycle.ErrUnknownOutcome
	}
	return err
}

// The second step of a delete is committed, and its answer is lost. The delete goes on.
func TestDeleteOfUnknownOutcome(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &lostAnswer{lifecycle.NewMemoryStore(), edgecloud.DeleteRequested, cancel}
	c, rec := requested(t, s)
	report(t, c, rec, edgecloud.Ready)
	_, err := c.Clusters.Delete(ctx, "c", nil)
	require.ErrorIs(t, err, lifecycle.ErrUnknownOutcome)
	requireCluster(t, c, "c", edgecloud.DeleteRequested)
}
