package edgecloud_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// A report of a CRM that was replaced, that has disconnected, or of another cloudlet is
// stale, also if its operation is the present one.
func TestReportsOfOtherCRMs(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	_, err := c.Cloudlets.StartUp(ctx, "oslo", 7, "v1")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.Gathered(ctx, "oslo", 7))
	createCluster(t, c, "c")
	cluster, err := c.Clusters.Create(ctx, "d", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	app, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	receive := func(notifyID int64, want lifecycle.Verdict) {
		t.Helper()
		for key, op := range map[lifecycle.Key]lifecycle.OpID{clusterKey("d"): cluster.Operation, appKey("a"): app.Operation} {
			v, err := c.Answer(ctx, notifyID, key, edgecloud.Report{Operation: op, State: edgecloud.Ready})
			require.NoError(t, err)
			require.Equal(t, want, v, "%v", key)
		}
	}
	receive(7, lifecycle.Stale) // the CRM of another cloudlet
	receive(0, lifecycle.Stale)
	_, err = c.Cloudlets.StartUp(ctx, "b", 2, "v1")
	require.NoError(t, err)
	receive(1, lifecycle.Stale) // the CRM that was replaced
	_, err = c.Cloudlets.Disconnected(ctx, "b", 2)
	require.NoError(t, err)
	receive(2, lifecycle.Stale) // its connection has dropped
	requireCluster(t, c, "d", edgecloud.CreateRequested)
	_, err = c.Cloudlets.StartUp(ctx, "b", 3, "v1")
	require.NoError(t, err)
	receive(3, lifecycle.Applied)
	require.Equal(t, map[lifecycle.Verdict]uint64{
		lifecycle.Applied: 2, lifecycle.Repeated: 0, lifecycle.Stale: 4, lifecycle.Refused: 0,
	}, c.Clusters.Verdicts())
}

// Notify ids grow, for concurrent callers, after a restart, and after ids that were chosen
// otherwise.
func TestNewNotifyID(t *testing.T) {
	ctx := t.Context()
	store := lifecycle.NewMemoryStore()
	var mu sync.Mutex
	seen := map[int64]bool{}
	var last int64
	for range 3 {
		c, err := edgecloud.NewCoordinator(store, nil)
		require.NoError(t, err)
		before := last
		var all errgroup.Group
		for range 8 {
			all.Go(func() error {
				id, err := c.Cloudlets.NewNotifyID(ctx, "b")
				mu.Lock()
				defer mu.Unlock()
				if seen[id] || id <= before {
					t.Errorf("%d after %d", id, before)
				}
				seen[id] = true
				last = max(last, id)
				return err
			})
		}
		require.NoError(t, all.Wait())
		last += 1 << 40
		_, err = c.Cloudlets.StartUp(ctx, "b", last, "v1")
		require.NoError(t, err)
	}
	c, err := edgecloud.NewCoordinator(store, nil)
	require.NoError(t, err)
	_, err = c.Cloudlets.StartUp(ctx, "b", math.MaxInt64, "v1")
	require.ErrorIs(t, err, lifecycle.ErrInvalid, "no later CRM could take over")
	id, err := c.Cloudlets.NewNotifyID(ctx, "b")
	require.NoError(t, err)
	_, err = c.Cloudlets.StartUp(ctx, "b", id, "v1")
	require.NoError(t, err)

	_, err = c.Cloudlets.StartUp(ctx, "b", math.MaxInt64-1, "v1")
	require.NoError(t, err)
	id, err = c.Cloudlets.NewNotifyID(ctx, "b")
	require.ErrorIs(t, err, lifecycle.ErrStale)
	require.Zero(t, id)
}

// The notify id 0 means no connection, also of a cloudlet that no CRM has connected to since it
// was created again.
func TestNoNotifyID(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	_, err := c.Cloudlets.Disconnected(ctx, "b", 1)
	require.NoError(t, err)
	_, err = c.Cloudlets.Create(ctx, "b", "v1", nil)
	require.NoError(t, err)
	_, err = c.Reconnect(ctx, "b", 0, edgecloud.Account{})
	require.ErrorIs(t, err, lifecycle.ErrStale)
	dropped, err := c.Cloudlets.Disconnected(ctx, "b", 0)
	require.NoError(t, err)
	require.False(t, dropped)
	before, err := c.Cloudlets.Creation(ctx, "b")
	require.NoError(t, err)
	for name, message := range map[string]func(ctx context.Context, id string, notifyID int64) error{
		"Acknowledge": c.Cloudlets.Acknowledge, "Gathered": c.Cloudlets.Gathered,
		"AckUpgrade": c.Cloudlets.AckUpgrade, "KeepOld": c.Cloudlets.KeepOld,
	} {
		require.ErrorIs(t, message(ctx, "b", 0), lifecycle.ErrStale, name)
	}
	now, err := c.Cloudlets.Creation(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, before, now)
}

// Two CRMs of a new cloudlet start at the same time. The cloudlet is that of the one with the
// greater notify id.
func TestFirstStartsOfTwoCRMs(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c, err := edgecloud.NewCoordinator(s, nil)
	require.NoError(t, err)
	overtaken := s.OnceBefore(commit, func() {
		_, err := c.Cloudlets.StartUp(ctx, "b", 1, "v1")
		require.NoError(t, err)
	})
	rec, err := c.Cloudlets.StartUp(ctx, "b", 2, "v1")
	require.NoError(t, err)
	require.True(t, overtaken())
	require.Equal(t, edgecloud.CloudletSpec{NotifyID: 2, Version: "v1"}, rec.Payload)
	require.ErrorIs(t, c.Cloudlets.Gathered(ctx, "b", 1), lifecycle.ErrStale)
	require.NoError(t, c.Cloudlets.Gathered(ctx, "b", 2))
}
