package edgecloud_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// inState returns a coordinator with the cluster c on cloudlet b in a state, and its
// operation.
func inState(t *testing.T, s edgecloud.State) (*edgecloud.Coordinator, lifecycle.OpID) {
	t.Helper()
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	if s == edgecloud.NotPresent {
		return c, 0
	}
	rec, err := c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
	require.NoError(t, err)
	switch s {
	case edgecloud.CreateRequested:
		return c, rec.Operation
	case edgecloud.Creating, edgecloud.CreateError, edgecloud.Ready:
		report(t, c, rec, s)
		return c, rec.Operation
	}
	report(t, c, rec, edgecloud.Ready)
	switch s {
	case edgecloud.UpdateRequested, edgecloud.Updating, edgecloud.UpdateError:
		rec, err = c.Clusters.Update(ctx, "c", func(s *edgecloud.ClusterSpec) error { s.Nodes = 2; return nil }, nil)
	case edgecloud.DeletePrepare:
		rec, err = c.Clusters.Manager().Fire(ctx, "c", edgecloud.Delete, edgecloud.User, nil)
	default:
		rec, err = c.Clusters.Delete(ctx, "c", nil)
	}
	require.NoError(t, err)
	if rec.State != s {
		report(t, c, rec, s)
	}
	return c, rec.Operation
}

var states = slices.Collect(edgecloud.ClusterInst.States())

// A report about the present operation moves an object by the document's rows. No other
// report moves it.
func TestReceiveInEveryState(t *testing.T) {
	for _, at := range states {
		for _, reported := range append(slices.Clone(states), edgecloud.Deleted) {
			for late, name := range map[int]string{0: "present", 1: "earlier", -1: "later"} {
				t.Run(string(at+" "+reported)+" of the "+name+" operation", func(t *testing.T) {
					receiveIn(t, at, reported, late)
				})
			}
		}
	}
}

func receiveIn(t *testing.T, at, reported edgecloud.State, late int) {
	ctx := t.Context()
	c, op := inState(t, at)
	before, gone := c.Clusters.Get(ctx, "c")
	v, err := c.Clusters.Receive(ctx, 1, edgecloud.Report{
		ID: "c", Operation: op - lifecycle.OpID(late), State: reported, Errors: []string{"x"},
	})
	require.NoError(t, err)
	to := reported
	if reported == edgecloud.Deleted {
		to = edgecloud.NotPresent
	}
	// TestConformance compares the rows of the machine with the document.
	m := edgecloud.ClusterInst
	_, refused := m.NextTo(ctx, m.At(at), to, edgecloud.CRM, nil)
	now, err := c.Clusters.Get(ctx, "c")
	if refused != nil || late != 0 || op == 0 {
		require.Equal(t, before, now)
		require.Equal(t, gone == nil, err == nil)
		require.NotEqual(t, lifecycle.Applied, v)
		return
	}
	require.Equal(t, lifecycle.Applied, v)
	if to == edgecloud.NotPresent {
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
		return
	}
	require.NoError(t, err)
	require.Equal(t, to, now.State)
	require.Equal(t, m.Kind(to) == fsm.Failed, len(edgecloud.Errors(now)) > 0)
}

// A CRM that has crashed reports states without operations. Existence completes an
// operation where it is unambiguous, a state that the CRM can report for the operation
// is applied, and for every other state the order is sent again.
func TestReconnectInEveryState(t *testing.T) {
	const missing edgecloud.State = ""
	type outcomes = map[edgecloud.State]edgecloud.State
	wants := map[edgecloud.State]outcomes{
		edgecloud.CreateRequested: {"Ready": "Ready", "Creating": "Creating", "CreateError": "CreateError"},
		edgecloud.Creating:        {"Ready": "Ready", "Creating": "Creating", "CreateError": "CreateError"},
		edgecloud.UpdateRequested: {"Updating": "Updating", "UpdateError": "UpdateError", "NotPresent": "UpdateError"},
		edgecloud.Updating:        {"Updating": "Updating", "UpdateError": "UpdateError", "NotPresent": "UpdateError"},
		edgecloud.DeleteRequested: {"Deleting": "Deleting", "DeleteError": "DeleteError", "NotPresent": "NotPresent"},
		edgecloud.Deleting:        {"Deleting": "Deleting", "DeleteError": "DeleteError", "NotPresent": "NotPresent"},
	}
	for _, at := range states {
		for _, found := range append(slices.Clone(states), missing, edgecloud.Deleted) {
			t.Run(string(at+" found "+found), func(t *testing.T) {
				ctx := t.Context()
				c, _ := inState(t, at)
				_, err := c.Cloudlets.StartUp(ctx, "b", 2, "v1")
				require.NoError(t, err)
				var all edgecloud.Account
				if found != missing {
					all.Clusters = []edgecloud.Report{{ID: "c", State: found, Errors: []string{"x"}}}
				}
				r, err := c.Reconnect(ctx, "b", 2, all)
				require.NoError(t, err)
				if found == missing || found == edgecloud.Deleted {
					found = edgecloud.NotPresent
				}
				want, resolved := wants[at][found]
				if !resolved {
					want = at
				}
				requireCluster(t, c, "c", want)
				require.Equal(t, wants[at] != nil && !resolved, len(r.Clusters.Resend) == 1)
			})
		}
	}
}

// A CRM reports the failed creation of an object that is being deleted: the object is
// not missing, and the order is sent again.
func TestReconnectAfterFailedCreation(t *testing.T) {
	ctx := t.Context()
	c, op := inState(t, edgecloud.CreateError)
	rec, err := c.Clusters.Delete(ctx, "c", &edgecloud.Call{Force: true})
	require.NoError(t, err)
	_, err = c.Cloudlets.StartUp(ctx, "b", 2, "v1")
	require.NoError(t, err)
	r, err := c.Reconnect(ctx, "b", 2, edgecloud.Account{
		Clusters: []edgecloud.Report{{ID: "c", Operation: op, State: edgecloud.CreateError}},
	})
	require.NoError(t, err)
	require.Equal(t, []clusterRecord{rec}, r.Clusters.Resend)
	now, err := c.Clusters.Get(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, rec, now)
}

// A foreign record is named in the result; the reports about other objects are applied.
func TestReconnectWithForeignRecord(t *testing.T) {
	ctx := t.Context()
	store := lifecycle.NewMemoryStore()
	c := newCoordinator(t, store)
	ops := map[string]lifecycle.OpID{}
	for _, id := range []string{"c1", "c2", "c3"} {
		rec, err := c.Clusters.Create(ctx, id, edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
		require.NoError(t, err)
		ops[id] = rec.Operation
	}
	scripttest.MakeForeign(t, store, clusterKey("c2"))
	_, err := c.Cloudlets.StartUp(ctx, "b", 2, "v1")
	require.NoError(t, err)
	r, err := c.Reconnect(ctx, "b", 2, edgecloud.Account{Clusters: []edgecloud.Report{
		{ID: "c3", State: edgecloud.Ready},
		{ID: "c2", Operation: ops["c2"], State: edgecloud.Ready},
		{ID: "c1", Operation: ops["c1"], State: edgecloud.Ready},
	}})
	require.NoError(t, err)
	require.Len(t, r.Clusters.Failed, 1)
	require.Equal(t, "c2", r.Clusters.Failed[0].ID)
	require.ErrorIs(t, r.Clusters.Failed[0], lifecycle.ErrForeign)
	requireCluster(t, c, "c1", edgecloud.Ready)
	requireCluster(t, c, "c3", edgecloud.Ready)
}

// A report about an operation that is over is stale, whatever its results are.
func TestStaleReportWithBadResults(t *testing.T) {
	c, op := inState(t, edgecloud.UpdateRequested)
	v, err := c.Clusters.Receive(t.Context(), 1, edgecloud.Report{
		ID: "c", Operation: op - 1, State: edgecloud.Ready, Results: json.RawMessage("{"),
	})
	require.NoError(t, err)
	require.Equal(t, lifecycle.Stale, v)
}

// A bad report is refused, and the other reports of the account count.
func TestBadReportInAccount(t *testing.T) {
	ctx := t.Context()
	for name, bad := range map[string]edgecloud.Report{
		"large results": {ID: "a", State: edgecloud.Ready, Results: json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)},
		"no JSON":       {ID: "a", State: edgecloud.Ready, Results: json.RawMessage(`{`)},
		"unknown state": {ID: "a", State: "Paused"},
		"no id":         {State: edgecloud.Ready},
		"long id":       {ID: strings.Repeat("a", 5000), State: edgecloud.Ready},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCoordinator(t, lifecycle.NewMemoryStore())
			a, err := c.Clusters.Create(ctx, "a", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
			require.NoError(t, err)
			z, err := c.Clusters.Create(ctx, "z", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
			require.NoError(t, err)
			bad.Operation = a.Operation
			r, err := c.Reconnect(ctx, "b", 1, edgecloud.Account{Clusters: []edgecloud.Report{
				bad, {ID: "z", Operation: z.Operation, State: edgecloud.Ready},
			}})
			require.NoError(t, err)
			require.Equal(t, []lifecycle.PeerOutcome{
				{ID: bad.ID, Operation: a.Operation, Verdict: lifecycle.Refused},
				{ID: "z", Operation: z.Operation, Verdict: lifecycle.Applied},
			}, r.Clusters.Outcomes)
			require.Equal(t, map[lifecycle.Verdict]uint64{
				lifecycle.Applied: 1, lifecycle.Repeated: 0, lifecycle.Stale: 0, lifecycle.Refused: 1,
			}, c.Clusters.Verdicts())
			requireCluster(t, c, "a", edgecloud.CreateRequested)
			requireCluster(t, c, "z", edgecloud.Ready)
		})
	}
}

// A CRM reports that an object exists in the operation that has removed it. That is no
// repetition of the removal.
func TestReadyAfterRemoval(t *testing.T) {
	ctx := t.Context()
	c, op := inState(t, edgecloud.DeleteRequested)
	for _, tt := range []struct {
		state edgecloud.State
		want  lifecycle.Verdict
	}{
		{edgecloud.NotPresent, lifecycle.Applied},
		{edgecloud.NotPresent, lifecycle.Repeated},
		{edgecloud.Deleted, lifecycle.Repeated},
		{edgecloud.Ready, lifecycle.Refused},
	} {
		v, err := c.Clusters.Receive(ctx, 1, edgecloud.Report{ID: "c", Operation: op, State: tt.state})
		require.NoError(t, err)
		require.Equal(t, tt.want, v, tt.state)
	}
}

// The ClusterInst of an AppInst does not exist, and no request has noted its cloudlet. No CRM
// is that of the AppInst.
func TestReportOfAppWithoutCloudlet(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	app, err := c.Apps.Manager().Add(ctx, "a", edgecloud.Ready, edgecloud.User, edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	v, err := c.Apps.Receive(ctx, 1, edgecloud.Report{ID: "a", Operation: app.Operation, State: edgecloud.Ready})
	require.NoError(t, err)
	require.Equal(t, lifecycle.Stale, v)
}
