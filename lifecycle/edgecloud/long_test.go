package edgecloud_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// failingPlatform fails every order with a text.
type failingPlatform struct{ text string }

func (p failingPlatform) Do(context.Context, edgecloud.Order) (json.RawMessage, error) {
	return nil, errors.New(p.text)
}
func (p failingPlatform) Present(context.Context) ([]lifecycle.Key, error) { return nil, nil }

// A failure is recorded, however long the text of the platform's error is, and the CRM
// can reconnect.
func TestLongErrorOfPlatform(t *testing.T) {
	ctx := t.Context()
	for name, tt := range map[string]struct{ text, want string }{
		"as long as a reason": {strings.Repeat("x", 4096), strings.Repeat("x", 4096)},
		"longer":              {strings.Repeat("x", 4097), strings.Repeat("x", 4093) + "..."},
		"with NUL":            {"a\x00b", "a\uFFFDb"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCoordinator(t, lifecycle.NewMemoryStore())
			_, err := c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
			require.NoError(t, err)
			crm, err := edgecloud.NewResourceManager(failingPlatform{tt.text}, func(ctx context.Context, k lifecycle.Key, r edgecloud.Report) error {
				_, err := c.Answer(ctx, 1, k, r)
				return err
			})
			require.NoError(t, err)
			orders, err := c.Orders(ctx, "b")
			require.NoError(t, err)
			require.NoError(t, crm.Handle(ctx, orders[0]))
			rec, err := c.Clusters.Get(ctx, "c")
			require.NoError(t, err)
			require.Equal(t, []string{tt.want}, edgecloud.Errors(rec))
			_, err = c.Cloudlets.StartUp(ctx, "b", 2, "v1")
			require.NoError(t, err)
			require.NoError(t, crm.Gather(ctx, nil, c.Uplink("b", 2)))
			at, err := c.Cloudlets.Creation(ctx, "b")
			require.NoError(t, err)
			require.Equal(t, edgecloud.CloudletReady, at.State)
		})
	}
}

// failCluster creates a cluster whose creation fails with the longest text that a record
// keeps.
func failCluster(t *testing.T, c *edgecloud.Coordinator, id string) clusterRecord {
	rec, err := c.Clusters.Create(t.Context(), id, edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	v, err := c.Clusters.Receive(t.Context(), 1, edgecloud.Report{
		ID: id, Operation: rec.Operation, State: edgecloud.CreateError, Errors: []string{strings.Repeat("x", 4096)},
	})
	require.NoError(t, err)
	require.Equal(t, lifecycle.Applied, v)
	return rec
}

// The reason of an undo is longer than that of the failure. The undo happens
// nevertheless, by a sweep and by Wait.
func TestUndoAfterLongError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, lifecycle.NewMemoryStore())
		rec := failCluster(t, c, "waits")
		_, err := c.Clusters.Wait(t.Context(), rec, 0)
		require.ErrorIs(t, err, edgecloud.ErrFailed)
		requireCluster(t, c, "waits", edgecloud.NotPresent)
		failCluster(t, c, "sweeps")
		time.Sleep(2 * time.Minute)
		_, err = c.Sweep(t.Context())
		require.NoError(t, err)
		requireCluster(t, c, "sweeps", edgecloud.NotPresent)
	})
}

// An undo that fails prevents no other one.
func TestSweepUndoesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, full := scripttest.NewStore(), errors.New("disk full")
		store.Before(func(c scripttest.Call) error {
			if c.Commit != nil && c.ID == "a" && c.Commit.Changes[0].Remove {
				return full
			}
			return nil
		})
		c := newCoordinator(t, store)
		failCluster(t, c, "a")
		failCluster(t, c, "z")
		time.Sleep(2 * time.Minute)
		_, err := c.Sweep(t.Context())
		require.ErrorIs(t, err, full)
		requireCluster(t, c, "a", edgecloud.CreateError)
		requireCluster(t, c, "z", edgecloud.NotPresent)
	})
}

// A new CRM fails with a long text: while it is started, and while it gathers its data.
func TestLongErrorOfUpgrade(t *testing.T) {
	f := newFleet(t)
	f.noImage = errors.New(strings.Repeat("x", 5000))
	require.ErrorIs(t, f.upgrade(), f.noImage)
	f.require(edgecloud.CloudletReady, edgecloud.CloudletUpdateError, "v1")

	f = newFleet(t)
	f.late = true
	require.NoError(t, f.upgrade())
	f.unread = errors.New(strings.Repeat("x", 5000))
	require.ErrorIs(t, f.crm.Gather(t.Context(), f, f.c.Uplink("b", f.running["v2"])), f.unread)
	f.require(edgecloud.CloudletOffline, edgecloud.CloudletInitOk, "v1", "v2")
}
