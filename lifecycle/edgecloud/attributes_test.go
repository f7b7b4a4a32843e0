package edgecloud_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

func attributes(text string) func(*edgecloud.ClusterSpec) error {
	return func(s *edgecloud.ClusterSpec) error { s.Attributes = json.RawMessage(text); return nil }
}

// The attributes are content like any other: an update replaces them, an order has them,
// and an undo restores those from before.
func TestAttributes(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	has := func(want string) {
		t.Helper()
		now, err := c.Clusters.Get(ctx, "c")
		require.NoError(t, err)
		require.Equal(t, want, string(now.Payload.Attributes))
	}
	spec := edgecloud.ClusterSpec{Cloudlet: "b", Attributes: json.RawMessage(`{"zone":"a"}`)}
	rec, err := c.Clusters.Create(ctx, "c", spec, nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.Ready)
	has(`{"zone":"a"}`)
	rec, err = c.Clusters.Update(ctx, "c", attributes(`{"zone":"b"}`), nil)
	require.NoError(t, err)
	has(`{"zone":"b"}`)
	orders, err := c.Orders(ctx, "b")
	require.NoError(t, err)
	require.JSONEq(t, `{"zone":"b"}`, string(orders[0].Cluster.Attributes))
	report(t, c, rec, edgecloud.UpdateError)
	_, err = c.Clusters.Undo(ctx, "c", 0, "")
	require.NoError(t, err)
	has(`{"zone":"a"}`)
	rec, err = c.Clusters.Update(ctx, "c", attributes(""), nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.Ready)
	has("")
}

// Attributes that are not JSON, or too large, are refused, and nothing changes.
func TestBadAttributes(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := newCoordinator(t, s)
	createCluster(t, c, "c")
	s.Refuse(commit, errors.New("a commit"))
	for name, text := range map[string]string{
		"unfinished": "{", "no JSON": "no JSON", "large": `"` + strings.Repeat("x", 1<<20) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			bad := json.RawMessage(text)
			_, err := c.Clusters.Create(ctx, "d", edgecloud.ClusterSpec{Cloudlet: "b", Attributes: bad}, nil)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			_, err = c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c", Attributes: bad}, nil)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			_, err = c.Clusters.Update(ctx, "c", attributes(text), nil)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			_, err = c.Clusters.Add(ctx, "d", edgecloud.Ready, edgecloud.ClusterSpec{Cloudlet: "b", Attributes: bad})
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
			_, err = c.Cloudlets.Create(ctx, "d", "v1", bad)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		})
	}
}

// The attributes of a cloudlet stay while its CRMs come and go.
func TestCloudletAttributes(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	cloudlets := newCoordinator(t, s).Cloudlets
	made, err := cloudlets.Create(ctx, "c", "v1", json.RawMessage(`{"at":"north"}`))
	require.NoError(t, err)
	require.Equal(t, `{"at":"north"}`, string(made.Payload.Attributes))
	for id := range int64(2) {
		_, err = cloudlets.StartUp(ctx, "c", id+1, "v1")
		require.NoError(t, err)
		require.NoError(t, cloudlets.Acknowledge(ctx, "c", id+1))
	}
	require.NoError(t, cloudlets.Gathered(ctx, "c", 2))
	dropped, err := cloudlets.Disconnected(ctx, "c", 2)
	require.NoError(t, err)
	require.True(t, dropped)
	now, err := cloudlets.Creation(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, edgecloud.CloudletOffline, now.State)
	require.Equal(t, `{"at":"north"}`, string(now.Payload.Attributes))
	now, err = cloudlets.Create(ctx, "c", "v1", nil)
	require.NoError(t, err)
	require.Nil(t, now.Payload.Attributes)

	s.Refuse(commit, errors.New("a commit"))
	_, err = cloudlets.Create(ctx, "d", "v1", json.RawMessage("{"))
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// Instances that exist already are added at rest, and then are like those that were
// created: no sweep removes one in an error state.
func TestAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := newCoordinator(t, lifecycle.NewMemoryStore())
		for _, state := range []edgecloud.State{edgecloud.Ready, edgecloud.CreateError, edgecloud.UpdateError, edgecloud.DeleteError} {
			spec := edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 2, Results: json.RawMessage(`{"address":"10.0.0.1"}`)}
			rec, err := c.Clusters.Add(ctx, string(state), state, spec)
			require.NoError(t, err)
			require.Equal(t, state, rec.State)
			require.Equal(t, spec, rec.Payload)
			_, err = c.Apps.Add(ctx, "in "+string(state), edgecloud.Ready, edgecloud.AppSpec{ClusterInst: string(state)})
			require.NoError(t, err)
		}
		time.Sleep(time.Hour)
		results, err := c.Sweep(ctx)
		require.NoError(t, err)
		require.Empty(t, results)
		_, err = c.Clusters.Delete(ctx, "Ready", nil)
		require.ErrorIs(t, err, edgecloud.ErrInUse)
		_, err = c.Apps.Delete(ctx, "in Ready", nil)
		require.NoError(t, err)
		answer(ctx, c)
		_, err = c.Clusters.Delete(ctx, "Ready", nil)
		require.NoError(t, err)
		_, err = c.Clusters.Undo(ctx, "UpdateError", 0, "")
		require.NoError(t, err)
		requireCluster(t, c, "UpdateError", edgecloud.Ready)
		_, err = c.Clusters.Update(ctx, "UpdateError", nil, nil)
		require.NoError(t, err)
	})
}

// An object that is not at rest, exists, or has no parent, is not added.
func TestAddRefusals(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	createCluster(t, c, "c")
	spec := edgecloud.ClusterSpec{Cloudlet: "b"}
	for name, tt := range map[string]struct {
		id    string
		state edgecloud.State
		spec  edgecloud.ClusterSpec
		want  error
		text  string
	}{
		"transitional":   {"d", edgecloud.Updating, spec, lifecycle.ErrInvalid, `state "Updating" is transitional`},
		"absent":         {"d", edgecloud.NotPresent, spec, lifecycle.ErrInvalid, `state "NotPresent" is absent`},
		"unknown state":  {"d", "Flying", spec, fsm.ErrUnknownState, "Flying"},
		"no cloudlet":    {"d", edgecloud.Ready, edgecloud.ClusterSpec{}, lifecycle.ErrInvalid, "needs a cloudlet"},
		"other cloudlet": {"d", edgecloud.Ready, edgecloud.ClusterSpec{Cloudlet: "other"}, lifecycle.ErrPrecondition, "other"},
		"exists":         {"c", edgecloud.Ready, spec, lifecycle.ErrExists, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Clusters.Add(ctx, tt.id, tt.state, tt.spec)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
		})
	}
	app := edgecloud.AppSpec{ClusterInst: "gone"}
	_, err := c.Apps.Add(ctx, "a", edgecloud.Ready, app)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	app.ClusterInst = "c"
	_, err = c.Clusters.Delete(ctx, "c", nil)
	require.NoError(t, err)
	_, err = c.Apps.Add(ctx, "a", edgecloud.Ready, app)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
}

// A report about an AppInst whose ClusterInst was removed by an override comes from the
// cloudlet where the app was requested.
func TestReportsWithoutCluster(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	_, err := c.Cloudlets.StartUp(ctx, "oslo", 7, "v1")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.Gathered(ctx, "oslo", 7))
	createCluster(t, c, "c")
	app, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Clusters.Manager().Override(ctx, "c", edgecloud.NotPresent, "operator", "it burnt down", nil)
	require.NoError(t, err)
	receive := func(notifyID int64, op lifecycle.OpID, state edgecloud.State) lifecycle.Verdict {
		t.Helper()
		v, err := c.Answer(ctx, notifyID, appKey("a"), edgecloud.Report{Operation: op, State: state})
		require.NoError(t, err)
		return v
	}
	require.Equal(t, lifecycle.Stale, receive(7, app.Operation, edgecloud.Ready))
	require.Equal(t, lifecycle.Stale, receive(0, app.Operation, edgecloud.Ready))
	require.Equal(t, lifecycle.Applied, receive(1, app.Operation, edgecloud.Ready))
	app, err = c.Apps.Delete(ctx, "a", nil)
	require.NoError(t, err)
	require.Equal(t, lifecycle.Stale, receive(7, app.Operation, edgecloud.NotPresent))
	require.Equal(t, lifecycle.Applied, receive(1, app.Operation, edgecloud.NotPresent))
}

// An operator removes an object whose content cannot be read.
func TestOverrideOfForeignRecord(t *testing.T) {
	ctx := t.Context()
	store := lifecycle.NewMemoryStore()
	c := newCoordinator(t, store)
	createCluster(t, c, "c")
	createApp(t, c, "a")
	scripttest.MakeForeign(t, store, appKey("a"))
	_, err := c.Apps.Manager().Override(ctx, "a", edgecloud.NotPresent, "operator", "test", nil)
	require.NoError(t, err)
	scripttest.MakeForeign(t, store, clusterKey("c"))
	_, err = c.Clusters.Manager().Override(ctx, "c", edgecloud.NotPresent, "operator", "test", nil)
	require.NoError(t, err)
	_, err = c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
}

// A record that cannot be read hides no other one, and the error names it.
func TestListsWithForeignRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := lifecycle.NewMemoryStore()
		c := newCoordinator(t, store)
		for _, id := range []string{"c1", "c2", "c3"} {
			_, err := c.Clusters.Create(ctx, id, edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
			require.NoError(t, err)
		}
		scripttest.MakeForeign(t, store, clusterKey("c1"))
		orders, err := c.Orders(ctx, "b")
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		require.ErrorContains(t, err, "c1")
		require.Len(t, orders, 2)
		time.Sleep(time.Hour)
		_, err = c.Sweep(ctx) // the operations fail
		require.NoError(t, err)
		scripttest.MakeForeign(t, store, clusterKey("c2"))
		time.Sleep(time.Hour)
		_, err = c.Sweep(ctx)
		require.ErrorIs(t, err, lifecycle.ErrForeign)
		require.ErrorContains(t, err, "c2")
		requireCluster(t, c, "c3", edgecloud.NotPresent)
	})
}
