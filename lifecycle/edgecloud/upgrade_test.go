package edgecloud_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// upgrading brings cloudlet b up under notify id 1, and begins an upgrade to v2, whose
// CRM has connected under 2 and was answered.
func upgrading(t *testing.T, store lifecycle.Store) *edgecloud.Cloudlets {
	t.Helper()
	c := edgecloud.NewCoordinator(store, nil)
	up(t, c, "b")
	_, err := c.Cloudlets.Upgrade(t.Context(), "b", "v2", "")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.AckUpgrade(t.Context(), "b", 1))
	_, err = c.Cloudlets.StartUp(t.Context(), "b", 2, "v2")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.Acknowledge(t.Context(), "b", 2))
	return c.Cloudlets
}

func requireCloudlet(t *testing.T, c *edgecloud.Cloudlets, creation, upgrade edgecloud.CloudletState, at edgecloud.Cloudlet) {
	t.Helper()
	start, err := c.Creation(t.Context(), "b")
	require.NoError(t, err)
	up, err := c.Upgrading(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, []any{creation, upgrade, at}, []any{start.State, up.State, start.Payload})
}

// The old CRM that crashes and starts again is in nobody's way: the new one, which has
// ended it, finishes the upgrade, however far the old one has come.
func TestTheOldCRMStartsAgainInAnUpgrade(t *testing.T) {
	ctx := t.Context()
	for _, far := range []func(c *edgecloud.Cloudlets) error{
		func(*edgecloud.Cloudlets) error { return nil },
		func(c *edgecloud.Cloudlets) error { return c.Acknowledge(ctx, "b", 3) },
		func(c *edgecloud.Cloudlets) error { return c.Gathered(ctx, "b", 3) },
		func(c *edgecloud.Cloudlets) error { _, err := c.Disconnected(ctx, "b", 3); return err },
	} {
		c := upgrading(t, lifecycle.NewMemoryStore())
		_, err := c.StartUp(ctx, "b", 3, "v1")
		require.NoError(t, err)
		require.NoError(t, far(c))
		require.NoError(t, c.Gathered(ctx, "b", 2))
		requireCloudlet(t, c, edgecloud.CloudletReady, edgecloud.CloudletReady,
			edgecloud.Cloudlet{NotifyID: 2, Version: "v2", OldNotifyID: 3})
		_, err = c.StartUp(ctx, "b", 3, "v1")
		require.ErrorIs(t, err, lifecycle.ErrStale, "what it said comes twice")
		require.ErrorIs(t, c.AckUpgrade(ctx, "b", 3), lifecycle.ErrStale, "it is ended")
		_, err = c.StartUp(ctx, "b", 4, "v2")
		require.NoError(t, err)
	}
}

// The new CRM has dropped, and what it said comes after that.
func TestTheNewCRMDropsWhileTheOldOneStartsAgain(t *testing.T) {
	ctx := t.Context()
	for _, first := range []bool{true, false} {
		c := upgrading(t, lifecycle.NewMemoryStore())
		drops := func() {
			moved, err := c.Disconnected(ctx, "b", 2)
			require.NoError(t, err)
			require.Equal(t, first, moved)
		}
		if first {
			drops()
		}
		_, err := c.StartUp(ctx, "b", 3, "v1")
		require.NoError(t, err)
		if !first {
			drops()
		}
		require.ErrorIs(t, c.Gathered(ctx, "b", 2), lifecycle.ErrStale)
		requireCloudlet(t, c, edgecloud.CloudletInit, edgecloud.CloudletInitOk, edgecloud.Cloudlet{NotifyID: 3, Version: "v1"})
		_, err = c.StartUp(ctx, "b", 4, "v2")
		require.NoError(t, err)
		require.NoError(t, c.Gathered(ctx, "b", 4))
		requireCloudlet(t, c, edgecloud.CloudletReady, edgecloud.CloudletReady, edgecloud.Cloudlet{NotifyID: 4, Version: "v2"})
	}
}

// The upgrade fails, and the old CRM that has started again goes on, while the new one
// is about to take its place: it does not.
func TestTheOldCRMGoesOnWhileTheNewOneFinishes(t *testing.T) {
	ctx := t.Context()
	s := &meddling{MemoryStore: lifecycle.NewMemoryStore()}
	c := upgrading(t, s)
	_, err := c.StartUp(ctx, "b", 3, "v1")
	require.NoError(t, err)
	require.NoError(t, c.Gathered(ctx, "b", 3))
	s.before = func() {
		require.NoError(t, c.BringUpFailed(ctx, "b", 3, "no image"))
		require.NoError(t, c.KeepOld(ctx, "b", 3))
	}
	require.ErrorIs(t, c.Gathered(ctx, "b", 2), lifecycle.ErrStale)
	requireCloudlet(t, c, edgecloud.CloudletReady, edgecloud.CloudletUpdateError,
		edgecloud.Cloudlet{NotifyID: 3, Version: "v1", OldNotifyID: 2, OldVersion: "v2"})
}

// The old CRM's connection drops after or before the new one's start takes its place: it
// does not serve on under it.
func TestTheOldConnectionDropsInAnUpgrade(t *testing.T) {
	ctx := t.Context()
	states := []edgecloud.CloudletState{
		edgecloud.CloudletOffline, edgecloud.CloudletInit, edgecloud.CloudletInitOk, edgecloud.CloudletReady,
	}
	for _, at := range states {
		c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil).Cloudlets
		_, err := c.StartUp(ctx, "b", 1, "v1")
		require.NoError(t, err)
		require.NoError(t, c.Gathered(ctx, "b", 1))
		_, err = c.Upgrade(ctx, "b", "v2", "")
		require.NoError(t, err)
		_, err = c.StartUp(ctx, "b", 2, "v2")
		require.NoError(t, err)
		old, others := int64(1), edgecloud.Cloudlet{NotifyID: 2, Version: "v2"}
		switch at {
		case edgecloud.CloudletOffline:
			moved, err := c.Disconnected(ctx, "b", 2)
			require.NoError(t, err)
			require.True(t, moved)
		case edgecloud.CloudletInitOk:
			require.NoError(t, c.Acknowledge(ctx, "b", 2))
		case edgecloud.CloudletReady: // of the one that was the old one, in its place again
			require.NoError(t, c.BringUpFailed(ctx, "b", 1, ""))
			require.NoError(t, c.KeepOld(ctx, "b", 1))
			old, others = 2, edgecloud.Cloudlet{NotifyID: 1, Version: "v1", OldNotifyID: 2}
		}
		upgrade, err := c.Upgrading(ctx, "b")
		require.NoError(t, err)
		for range 2 {
			moved, err := c.Disconnected(ctx, "b", old)
			require.NoError(t, err)
			require.False(t, moved)
			requireCloudlet(t, c, at, upgrade.State, others)
		}
		require.ErrorIs(t, c.BringUpFailed(ctx, "b", old, ""), lifecycle.ErrStale)
		require.ErrorIs(t, c.KeepOld(ctx, "b", old), lifecycle.ErrStale)
		requireCloudlet(t, c, at, upgrade.State, others)
		_, err = c.StartUp(ctx, "b", 2, "v2")
		require.ErrorIs(t, err, lifecycle.ErrStale, "it is not new, dropped or not")
		_, err = c.StartUp(ctx, "b", 3, "v1")
		require.NoError(t, err)
	}

	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	up(t, c, "b")
	_, err := c.Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.BringUpFailed(ctx, "b", 1, ""))
	_, err = c.Cloudlets.Disconnected(ctx, "b", 1)
	require.NoError(t, err)
	_, err = c.Cloudlets.StartUp(ctx, "b", 2, "v2")
	require.NoError(t, err)
	require.ErrorIs(t, c.Cloudlets.KeepOld(ctx, "b", 1), lifecycle.ErrStale, "it dropped before the other came")
}

// Another CRM takes the place while the drop of the one that had it is noted: it is
// noted as that of the old one.
func TestTheConnectionIsOvertakenWhileItDrops(t *testing.T) {
	ctx := t.Context()
	s := &meddling{MemoryStore: lifecycle.NewMemoryStore()}
	c := edgecloud.NewCoordinator(s, nil)
	up(t, c, "b")
	_, err := c.Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.NoError(t, err)
	s.before = func() {
		_, err := c.Cloudlets.StartUp(ctx, "b", 2, "v2")
		require.NoError(t, err)
		_, err = c.Cloudlets.Disconnected(ctx, "b", 2)
		require.NoError(t, err)
	}
	moved, err := c.Cloudlets.Disconnected(ctx, "b", 1)
	require.NoError(t, err)
	require.False(t, moved)
	requireCloudlet(t, c.Cloudlets, edgecloud.CloudletOffline, edgecloud.CloudletUpdateRequested,
		edgecloud.Cloudlet{NotifyID: 2, Version: "v2"})
}
