package edgecloud_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// Who waits is told of its own operation, whatever has become of the object
// since.
func TestWaitTellsOfItsOwnOperation(t *testing.T) {
	ctx := t.Context()
	c := edgecloud.NewCoordinator(&lifecycle.MemoryStore{KeepHistory: -1}, nil)
	up(t, c, "b")
	says := func(rec edgecloud.Record[edgecloud.ClusterSpec], s edgecloud.State) {
		t.Helper()
		v, err := c.Clusters.Receive(ctx, edgecloud.Info{ID: rec.ID, Operation: rec.Operation, State: s})
		require.NoError(t, err)
		require.Equal(t, lifecycle.Applied, v)
	}
	is := func(rec edgecloud.Record[edgecloud.ClusterSpec], err error) edgecloud.Record[edgecloud.ClusterSpec] {
		t.Helper()
		require.NoError(t, err)
		return rec
	}
	spec := edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}
	create := is(c.Clusters.Create(ctx, "c", spec, nil))
	says(create, edgecloud.Ready)
	update := is(c.Clusters.Update(ctx, "c", nil, nil))
	got, err := c.Clusters.Wait(ctx, create, nil)
	require.NoError(t, err)
	require.Equal(t, edgecloud.Ready, got.State)
	require.Equal(t, create.Operation, got.Operation)

	// It failed, and somebody has undone it and asked for something else.
	says(update, edgecloud.UpdateError)
	is(c.Clusters.Undo(ctx, "c", update.Operation, "by hand"))
	remove := is(c.Clusters.Delete(ctx, "c", nil))
	_, err = c.Clusters.Wait(ctx, update, nil)
	failed, ok := errors.AsType[*edgecloud.FailedError](err)
	require.True(t, ok, "%v", err)
	require.True(t, failed.Undone)
	require.Equal(t, edgecloud.UpdateError, failed.State)

	// It is gone, and there is another one.
	says(remove, edgecloud.NotPresent)
	again := is(c.Clusters.Create(ctx, "c", spec, nil))
	got, err = c.Clusters.Wait(ctx, remove, nil)
	require.NoError(t, err)
	require.Equal(t, edgecloud.Record[edgecloud.ClusterSpec]{ID: "c"}, got)

	// It was taken away, and had no end.
	is(c.Clusters.Manager().Override(ctx, "c", edgecloud.Ready, "ann", "she knows", nil))
	_, err = c.Clusters.Wait(ctx, again, nil)
	require.ErrorIs(t, err, lifecycle.ErrStale)

	// It failed, and somebody retries it by force: that is not to be undone.
	update = is(c.Clusters.Update(ctx, "c", func(s *edgecloud.ClusterSpec) error { s.Nodes = 5; return nil }, nil))
	says(update, edgecloud.UpdateError)
	retry := is(c.Clusters.Update(ctx, "c", func(s *edgecloud.ClusterSpec) error { s.Nodes = 6; return nil }, &edgecloud.Call{Force: true}))
	_, err = c.Clusters.Wait(ctx, update, nil)
	require.ErrorIs(t, err, edgecloud.ErrFailed)
	require.ErrorIs(t, err, lifecycle.ErrStale)
	require.Equal(t, retry, is(c.Clusters.Get(ctx, "c")))
}

// A store that does not keep enough history cannot tell.
func TestWaitWithoutHistory(t *testing.T) {
	ctx := t.Context()
	c := edgecloud.NewCoordinator(&lifecycle.MemoryStore{KeepHistory: 1}, nil)
	up(t, c, "b")
	rec, err := c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	_, err = c.Clusters.Receive(ctx, edgecloud.Info{ID: "c", Operation: rec.Operation, State: edgecloud.Ready})
	require.NoError(t, err)
	_, err = c.Clusters.Update(ctx, "c", nil, nil)
	require.NoError(t, err)
	_, err = c.Clusters.Wait(ctx, rec, nil)
	require.ErrorIs(t, err, lifecycle.ErrStale)
}
