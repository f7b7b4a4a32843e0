package edgecloud_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// TestReconnectBesideAForeignRecord: one record that this version cannot read does
// not keep the account of the others from being taken, and is named.
func TestReconnectBesideAForeignRecord(t *testing.T) {
	ctx := t.Context()
	store := lifecycle.NewMemoryStore()
	c := edgecloud.NewCoordinator(store, nil)
	up(t, c, "b")
	ops := map[string]lifecycle.OpID{}
	for _, id := range []string{"c1", "c2", "c3"} {
		rec, err := c.Clusters.Create(ctx, id, edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
		require.NoError(t, err)
		ops[id] = rec.Operation
	}
	at, err := store.Get(ctx, lifecycle.Key{Machine: edgecloud.ClusterInst.Name(), ID: "c2"})
	require.NoError(t, err)
	later := at
	later.Payload, later.Sequence = []byte(`"of another version"`), at.Sequence+1
	require.NoError(t, store.Commit(ctx, &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{
		{Expect: at.Revision, From: at.State, FromOrigin: at.Origin, To: later},
	}}))

	_, err = c.Cloudlets.StartUp(ctx, "b", 2, "v1")
	require.NoError(t, err)
	account := edgecloud.Account{Clusters: []edgecloud.Info{{ID: "c3", State: edgecloud.Ready}}}
	for _, id := range []string{"c2", "c1"} {
		account.Clusters = append(account.Clusters, edgecloud.Info{ID: id, Operation: ops[id], State: edgecloud.Ready})
	}
	r, err := c.Reconnect(ctx, "b", 2, account)
	require.NoError(t, err)
	require.Len(t, r.Clusters.Failed, 1)
	require.Equal(t, "c2", r.Clusters.Failed[0].ID)
	require.ErrorIs(t, r.Clusters.Failed[0], lifecycle.ErrForeign)
	for _, id := range []string{"c1", "c3"} {
		rec, err := c.Clusters.Get(ctx, id)
		require.NoError(t, err)
		require.Equal(t, edgecloud.Ready, rec.State, id)
	}
}
