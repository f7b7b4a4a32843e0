package edgecloud_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// The context of a sweep ends before it undoes the first of two failed operations. Nothing
// is undone, and the error is one line.
func TestCancelledSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := scripttest.NewStore()
		c := newCoordinator(t, s)
		failCluster(t, c, "a")
		failCluster(t, c, "z")
		time.Sleep(2 * time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		s.OnceBefore(readClusterNote, cancel)
		_, err := c.Sweep(ctx)
		require.EqualError(t, err, "context canceled")
		_, err = c.Sweep(ctx)
		require.EqualError(t, err, "lifecycle: sweep clusterinst: context canceled")
		requireCluster(t, c, "a", edgecloud.CreateError)
		requireCluster(t, c, "z", edgecloud.CreateError)
	})
}

// Another process undoes a failed operation while a sweep does. The result of the sweep is
// Overtaken and has no error.
func TestSweepLosesTheUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := scripttest.NewStore()
		c := newCoordinator(t, s)
		failCluster(t, c, "a")
		time.Sleep(2 * time.Minute)
		s.OnceBefore(commitOfCluster, func() {
			_, err := c.Clusters.Undo(ctx, "a", 0, "")
			require.NoError(t, err)
		})
		results, err := c.Sweep(ctx)
		require.NoError(t, err)
		require.Equal(t, []lifecycle.SweepResult{{
			Key: clusterKey("a"), From: "CreateError", Operation: 1, Event: "Undo", Actor: edgecloud.Controller, Resolution: lifecycle.Overtaken,
		}}, results)
	})
}

// A coordinator without UndoAfter undoes nothing in its sweeps.
func TestSweepUndoesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		failCluster(t, newCoordinator(t, store), "a")
		c, err := edgecloud.NewCoordinator(store, &edgecloud.Config{UndoAfter: -1})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		results, err := c.Sweep(t.Context())
		require.NoError(t, err)
		require.Empty(t, results)
		requireCluster(t, c, "a", edgecloud.CreateError)
	})
}
