package edgecloud_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// upgrading starts an upgrade of cloudlet b to v2. The old CRM has notify id 1; the new
// one has connected under 2 and was acknowledged.
func upgrading(t *testing.T, store lifecycle.Store) *edgecloud.Cloudlets {
	t.Helper()
	c := newCoordinator(t, store)
	_, err := c.Cloudlets.Upgrade(t.Context(), "b", "v2", "")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.AckUpgrade(t.Context(), "b", 1))
	_, err = c.Cloudlets.StartUp(t.Context(), "b", 2, "v2")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.Acknowledge(t.Context(), "b", 2))
	return c.Cloudlets
}

func requireCloudlet(t *testing.T, c *edgecloud.Cloudlets, creation, upgrade edgecloud.CloudletState, at edgecloud.CloudletSpec) {
	t.Helper()
	start, err := c.Creation(t.Context(), "b")
	require.NoError(t, err)
	up, err := c.Upgrading(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, []any{creation, upgrade, at}, []any{start.State, up.State, start.Payload})
}

// The old CRM crashes and starts again. The new one, which has ended it, completes the
// upgrade in every state of the old one.
func TestOldCRMStartsAgain(t *testing.T) {
	ctx := t.Context()
	for name, far := range map[string]func(c *edgecloud.Cloudlets) error{
		"started":      func(*edgecloud.Cloudlets) error { return nil },
		"acknowledged": func(c *edgecloud.Cloudlets) error { return c.Acknowledge(ctx, "b", 3) },
		"gathered":     func(c *edgecloud.Cloudlets) error { return c.Gathered(ctx, "b", 3) },
		"disconnected": func(c *edgecloud.Cloudlets) error { _, err := c.Disconnected(ctx, "b", 3); return err },
	} {
		t.Run(name, func(t *testing.T) {
			c := upgrading(t, lifecycle.NewMemoryStore())
			_, err := c.StartUp(ctx, "b", 3, "v1")
			require.NoError(t, err)
			require.NoError(t, far(c))
			require.NoError(t, c.Gathered(ctx, "b", 2))
			requireCloudlet(t, c, edgecloud.CloudletReady, edgecloud.CloudletReady,
				edgecloud.CloudletSpec{NotifyID: 2, Version: "v2", OldNotifyID: 3})
			_, err = c.StartUp(ctx, "b", 3, "v1")
			require.ErrorIs(t, err, lifecycle.ErrStale, "a repeated start")
			require.ErrorIs(t, c.AckUpgrade(ctx, "b", 3), lifecycle.ErrStale, "the new CRM has ended it")
			_, err = c.StartUp(ctx, "b", 4, "v2")
			require.NoError(t, err)
		})
	}
}

// The connection of the new CRM has dropped, and its report arrives after that.
func TestNewCRMDrops(t *testing.T) {
	ctx := t.Context()
	for name, first := range map[string]bool{"before the old one starts": true, "after the old one has started": false} {
		t.Run(name, func(t *testing.T) {
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
			requireCloudlet(t, c, edgecloud.CloudletInit, edgecloud.CloudletInitOk, edgecloud.CloudletSpec{NotifyID: 3, Version: "v1"})
			_, err = c.StartUp(ctx, "b", 4, "v2")
			require.NoError(t, err)
			require.NoError(t, c.Gathered(ctx, "b", 4))
			requireCloudlet(t, c, edgecloud.CloudletReady, edgecloud.CloudletReady, edgecloud.CloudletSpec{NotifyID: 4, Version: "v2"})
		})
	}
}

// The upgrade fails and the old CRM continues, while a report of the new CRM is being
// committed: the report is refused.
func TestOldCRMContinues(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := upgrading(t, s)
	_, err := c.StartUp(ctx, "b", 3, "v1")
	require.NoError(t, err)
	require.NoError(t, c.Gathered(ctx, "b", 3))
	s.OnceBefore(commit, func() {
		require.NoError(t, c.BringUpFailed(ctx, "b", 3, "no image"))
		require.NoError(t, c.KeepOld(ctx, "b", 3))
	})
	require.ErrorIs(t, c.Gathered(ctx, "b", 2), lifecycle.ErrStale)
	requireCloudlet(t, c, edgecloud.CloudletReady, edgecloud.CloudletUpdateError,
		edgecloud.CloudletSpec{NotifyID: 3, Version: "v1", OldNotifyID: 2, OldVersion: "v2"})
}

// An operator repairs the cloudlet while the old CRM continues: not both CRMs do.
func TestRepairWhileOldCRMContinues(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := upgrading(t, s)
	require.NoError(t, c.BringUpFailed(ctx, "b", 1, "no image"))
	gathered := errors.New("not reported")
	commits := 0
	s.Before(func(call scripttest.Call) error {
		if call.Commit == nil {
			return nil
		}
		if commits++; commits == 2 {
			require.NoError(t, c.Repaired(ctx, "b", "v2", "it is there"))
			gathered = c.Gathered(ctx, "b", 2)
		}
		return nil
	})
	kept := c.KeepOld(ctx, "b", 1)
	require.False(t, gathered == nil && kept == nil)
	requireCloudlet(t, c, edgecloud.CloudletReady, edgecloud.CloudletReady,
		edgecloud.CloudletSpec{NotifyID: 1, Version: "v1", OldNotifyID: 2, OldVersion: "v2"})
}

// The connection of the old CRM drops after or before the start of the new one: the old
// CRM does not continue under it.
func TestOldConnectionDrops(t *testing.T) {
	ctx := t.Context()
	for _, at := range []edgecloud.CloudletState{
		edgecloud.CloudletOffline, edgecloud.CloudletInit, edgecloud.CloudletInitOk, edgecloud.CloudletReady,
	} {
		t.Run("in "+string(at), func(t *testing.T) {
			c := newCoordinator(t, lifecycle.NewMemoryStore()).Cloudlets
			_, err := c.Upgrade(ctx, "b", "v2", "")
			require.NoError(t, err)
			_, err = c.StartUp(ctx, "b", 2, "v2")
			require.NoError(t, err)
			old, others := int64(1), edgecloud.CloudletSpec{NotifyID: 2, Version: "v2"}
			switch at {
			case edgecloud.CloudletOffline:
				moved, err := c.Disconnected(ctx, "b", 2)
				require.NoError(t, err)
				require.True(t, moved)
			case edgecloud.CloudletInitOk:
				require.NoError(t, c.Acknowledge(ctx, "b", 2))
			case edgecloud.CloudletReady: // the old CRM is the current one again
				require.NoError(t, c.BringUpFailed(ctx, "b", 1, ""))
				require.NoError(t, c.KeepOld(ctx, "b", 1))
				old, others = 2, edgecloud.CloudletSpec{NotifyID: 1, Version: "v1", OldNotifyID: 2}
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
			require.ErrorIs(t, err, lifecycle.ErrStale, "the notify id is not new")
			_, err = c.StartUp(ctx, "b", 3, "v1")
			require.NoError(t, err)
		})
	}
	t.Run("before the new CRM connects", func(t *testing.T) {
		c := newCoordinator(t, lifecycle.NewMemoryStore())
		_, err := c.Cloudlets.Upgrade(ctx, "b", "v2", "")
		require.NoError(t, err)
		require.NoError(t, c.Cloudlets.BringUpFailed(ctx, "b", 1, ""))
		_, err = c.Cloudlets.Disconnected(ctx, "b", 1)
		require.NoError(t, err)
		_, err = c.Cloudlets.StartUp(ctx, "b", 2, "v2")
		require.NoError(t, err)
		require.ErrorIs(t, c.Cloudlets.KeepOld(ctx, "b", 1), lifecycle.ErrStale, "it dropped before the new CRM connected")
	})
}

// A new CRM connects while the drop of the current connection is being committed: it is
// recorded as the drop of the old connection.
func TestStartUpDuringDisconnect(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := newCoordinator(t, s)
	_, err := c.Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.NoError(t, err)
	s.OnceBefore(commit, func() {
		_, err := c.Cloudlets.StartUp(ctx, "b", 2, "v2")
		require.NoError(t, err)
		_, err = c.Cloudlets.Disconnected(ctx, "b", 2)
		require.NoError(t, err)
	})
	moved, err := c.Cloudlets.Disconnected(ctx, "b", 1)
	require.NoError(t, err)
	require.False(t, moved)
	requireCloudlet(t, c.Cloudlets, edgecloud.CloudletOffline, edgecloud.CloudletUpdateRequested,
		edgecloud.CloudletSpec{NotifyID: 2, Version: "v2"})
}

// The new CRM crashes and starts again while the old one is connected: the old one can
// still end the upgrade.
func TestNewCRMStartsAgain(t *testing.T) {
	ctx := t.Context()
	l := newCoordinator(t, lifecycle.NewMemoryStore()).Cloudlets
	_, err := l.Upgrade(ctx, "b", "v2", "")
	require.NoError(t, err)
	for id := int64(2); id < 4; id++ {
		_, err = l.StartUp(ctx, "b", id, "v2")
		require.NoError(t, err)
		moved, err := l.Disconnected(ctx, "b", id)
		require.NoError(t, err)
		require.True(t, moved)
	}
	require.NoError(t, l.BringUpFailed(ctx, "b", 1, "v2 crashes"))
	require.NoError(t, l.KeepOld(ctx, "b", 1))
	at, err := l.Creation(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, edgecloud.CloudletReady, at.State)
	require.Equal(t, edgecloud.CloudletSpec{NotifyID: 1, Version: "v1", OldNotifyID: 3}, at.Payload)
}
