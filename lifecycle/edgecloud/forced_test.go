package edgecloud_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// failedUpdate returns a coordinator with the cluster c, which has the app a and an
// update that failed and is kept.
func failedUpdate(t *testing.T, store lifecycle.Store) (*edgecloud.Coordinator, clusterRecord) {
	t.Helper()
	c := newCoordinator(t, store)
	createCluster(t, c, "c")
	createApp(t, c, "a")
	rec, err := c.Clusters.Update(t.Context(), "c", nil, &edgecloud.Call{KeepError: true})
	require.NoError(t, err)
	report(t, c, rec, edgecloud.UpdateError)
	rec, err = c.Clusters.Get(t.Context(), "c")
	require.NoError(t, err)
	return c, rec
}

// A forced delete that is refused keeps the errors of the CRM and the wish to keep them.
func TestRefusedForcedDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c, before := failedUpdate(t, lifecycle.NewMemoryStore())
		_, err := c.Clusters.Delete(ctx, "c", &edgecloud.Call{Force: true})
		require.ErrorIs(t, err, edgecloud.ErrInUse)
		time.Sleep(time.Hour)
		_, err = c.Sweep(ctx)
		require.NoError(t, err)
		now, err := c.Clusters.Get(ctx, "c")
		require.NoError(t, err)
		require.Equal(t, []string{"no quota"}, edgecloud.Errors(now))
		require.Equal(t, before, now)
	})
}

// A controller dies during a forced delete: the sweeper does not blame the CRM.
func TestForcedDeleteDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := scripttest.NewStore()
		c, _ := failedUpdate(t, s)
		died := errors.New("died")
		func() {
			s.OnceBefore(listAppNotes, func() { panic(died) })
			defer func() { require.Equal(t, died, recover()) }()
			_, _ = c.Clusters.Delete(ctx, "c", &edgecloud.Call{Force: true})
		}()
		time.Sleep(time.Hour)
		_, err := c.Sweep(ctx)
		require.NoError(t, err)
		now, err := c.Clusters.Get(ctx, "c")
		require.NoError(t, err)
		require.Equal(t, edgecloud.UpdateError, now.State)
		require.Equal(t, []string{"no quota"}, edgecloud.Errors(now))
	})
}

// An operator ends a creation that is stuck, and deletes the object. The delete fails: the
// object was never Ready, so it cannot be undone to Ready.
func TestDeleteOfStuckCreation(t *testing.T) {
	ctx := t.Context()
	force := &edgecloud.Call{Force: true, KeepError: true}
	for name, deletes := range map[string]int{"one delete": 1, "two deletes": 2} {
		t.Run(name, func(t *testing.T) {
			c := newCoordinator(t, lifecycle.NewMemoryStore())
			rec, err := c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
			require.NoError(t, err)
			report(t, c, rec, edgecloud.Creating)
			_, err = c.Clusters.Manager().Override(ctx, "c", edgecloud.CreateError, "operator", "it is stuck", nil)
			require.NoError(t, err)
			for range deletes {
				rec, err = c.Clusters.Delete(ctx, "c", force)
				require.NoError(t, err)
				report(t, c, rec, edgecloud.DeleteError)
			}
			_, err = c.Clusters.Undo(ctx, "c", 0, "")
			require.ErrorIs(t, err, edgecloud.ErrNeverCreated)
			requireCluster(t, c, "c", edgecloud.DeleteError)
		})
	}
}
