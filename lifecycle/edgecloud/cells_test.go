package edgecloud_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// inState returns a coordinator with the cluster c on cloudlet b, in a state, and its
// operation.
func inState(t *testing.T, s edgecloud.State) (*edgecloud.Coordinator, lifecycle.OpID) {
	t.Helper()
	ctx := t.Context()
	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	up(t, c, "b")
	if s == edgecloud.NotPresent {
		return c, 0
	}
	rec, err := c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
	require.NoError(t, err)
	switch s {
	case edgecloud.CreateRequested:
		return c, rec.Operation
	case edgecloud.Creating, edgecloud.CreateError, edgecloud.Ready:
		says(t, c, rec, s)
		return c, rec.Operation
	}
	says(t, c, rec, edgecloud.Ready)
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
		says(t, c, rec, s)
	}
	return c, rec.Operation
}

func allStates() (list []edgecloud.State) {
	for s := range edgecloud.ClusterInst.States() {
		list = append(list, s)
	}
	return list
}

// What a CRM says of an object under the present operation moves it as the document's
// rows do, and nothing else does.
func TestEveryMessageInEveryState(t *testing.T) {
	ctx := t.Context()
	for _, at := range allStates() {
		for _, said := range append(allStates(), edgecloud.Deleted) {
			for _, late := range []int{0, 1, -1} {
				c, op := inState(t, at)
				before, gone := c.Clusters.Get(ctx, "c")
				info := edgecloud.Info{ID: "c", Operation: op - lifecycle.OpID(late), State: said, Errors: []string{"x"}}
				v, err := c.Clusters.Receive(ctx, info)
				require.NoError(t, err)
				to := said
				if said == edgecloud.Deleted {
					to = edgecloud.NotPresent
				}
				// The document's rows are those of the machine; a test of its own compares them.
				_, refused := edgecloud.ClusterInst.NextTo(ctx, edgecloud.ClusterInst.At(at), to, edgecloud.CRM, nil)
				now, err := c.Clusters.Get(ctx, "c")
				cell := fmt.Sprintf("%s, the CRM says %s, %d operations late", at, said, late)
				if moves := refused == nil && late == 0 && op != 0; !moves {
					require.Equal(t, before, now, cell)
					require.Equal(t, gone == nil, err == nil, cell)
					require.NotEqual(t, lifecycle.Applied, v, cell)
					continue
				}
				require.Equal(t, lifecycle.Applied, v, cell)
				if to == edgecloud.NotPresent {
					require.ErrorIs(t, err, lifecycle.ErrNotFound, cell)
					continue
				}
				require.NoError(t, err, cell)
				require.Equal(t, to, now.State, cell)
				require.Equal(t, edgecloud.ClusterInst.Kind(to) == fsm.Failed, len(edgecloud.Errors(now)) > 0, cell)
			}
		}
	}
}

// A CRM that has started anew says what it finds, of no operation. What is there, or
// not, settles what leaves no doubt; a state that it could say of what it was asked
// for is taken as said; anything else says nothing, and it is asked again. Of what is
// only prepared it is never asked.
func TestEveryStateFoundInEveryState(t *testing.T) {
	const nothing edgecloud.State = ""
	type states = map[edgecloud.State]edgecloud.State
	wants := map[edgecloud.State]states{
		edgecloud.CreateRequested: {"Ready": "Ready", "Creating": "Creating", "CreateError": "CreateError"},
		edgecloud.Creating:        {"Ready": "Ready", "Creating": "Creating", "CreateError": "CreateError"},
		edgecloud.UpdateRequested: {"Updating": "Updating", "UpdateError": "UpdateError", "NotPresent": "UpdateError"},
		edgecloud.Updating:        {"Updating": "Updating", "UpdateError": "UpdateError", "NotPresent": "UpdateError"},
		edgecloud.DeleteRequested: {"Deleting": "Deleting", "DeleteError": "DeleteError", "NotPresent": "NotPresent"},
		edgecloud.Deleting:        {"Deleting": "Deleting", "DeleteError": "DeleteError", "NotPresent": "NotPresent"},
	}
	ctx := t.Context()
	for _, at := range allStates() {
		for _, found := range append(allStates(), nothing, edgecloud.Deleted) {
			c, _ := inState(t, at)
			_, err := c.Cloudlets.StartUp(ctx, "b", 2, "v1")
			require.NoError(t, err)
			var all edgecloud.Account
			if found != nothing {
				all.Clusters = []edgecloud.Info{{ID: "c", State: found, Errors: []string{"x"}}}
			}
			r, err := c.Reconnect(ctx, "b", 2, all)
			require.NoError(t, err)
			now, err := c.Clusters.Get(ctx, "c")
			if err != nil {
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
				now.State = edgecloud.NotPresent
			}
			cell := fmt.Sprintf("%s, the CRM finds %q", at, found)
			if found == nothing || found == edgecloud.Deleted {
				found = edgecloud.NotPresent
			}
			want, settled := wants[at][found]
			if !settled {
				want = at
			}
			require.Equal(t, want, now.State, cell)
			again := wants[at] != nil && !settled
			require.Equal(t, again, len(r.Clusters.Resend) == 1, cell)
		}
	}
}

// A CRM that still runs, and has not heard of a delete, has what it could not make:
// that is not gone, and it is asked again.
func TestAFailedCreationIsNotGone(t *testing.T) {
	ctx := t.Context()
	c, op := inState(t, edgecloud.CreateError)
	rec, err := c.Clusters.Delete(ctx, "c", &edgecloud.Call{Force: true})
	require.NoError(t, err)
	_, err = c.Cloudlets.StartUp(ctx, "b", 2, "v1")
	require.NoError(t, err)
	r, err := c.Reconnect(ctx, "b", 2, edgecloud.Account{
		Clusters: []edgecloud.Info{{ID: "c", Operation: op, State: edgecloud.CreateError}},
	})
	require.NoError(t, err)
	require.Equal(t, []edgecloud.Record[edgecloud.ClusterSpec]{rec}, r.Clusters.Resend)
	now, err := c.Clusters.Get(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, rec, now)
}

// What is asked for in spite of a transition, and refused, leaves the object where it
// was.
func TestRefusedInSpiteOfATransition(t *testing.T) {
	ctx := t.Context()
	anew := &edgecloud.Call{Override: edgecloud.IgnoreTransientState}
	drop := func(t *testing.T, c *edgecloud.Coordinator) {
		_, err := c.Cloudlets.Disconnected(ctx, "b", 1)
		require.NoError(t, err)
	}
	app := func(t *testing.T, c *edgecloud.Coordinator) {
		// By the machine alone: the cluster is in transition already.
		rec, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
		require.NoError(t, err)
		_, err = c.Apps.Receive(ctx, edgecloud.Info{ID: "a", Operation: rec.Operation, State: edgecloud.Ready})
		require.NoError(t, err)
		_, err = c.Clusters.Update(ctx, "c", nil, nil)
		require.NoError(t, err)
	}
	moving := func(t *testing.T, c *edgecloud.Coordinator) {
		app(t, c)
		_, err := c.Apps.Manager().Fire(ctx, "a", edgecloud.Update, edgecloud.User, nil)
		require.NoError(t, err)
	}
	update := func(c *edgecloud.Coordinator) error { _, err := c.Clusters.Update(ctx, "c", nil, anew); return err }
	remove := func(c *edgecloud.Coordinator) error { _, err := c.Clusters.Delete(ctx, "c", anew); return err }
	for name, x := range map[string]struct {
		at    edgecloud.State
		first func(*testing.T, *edgecloud.Coordinator)
		ask   func(*edgecloud.Coordinator) error
		want  error
	}{
		"update without a CRM": {edgecloud.Creating, drop, update, lifecycle.ErrPrecondition},
		"delete without a CRM": {edgecloud.Creating, drop, remove, lifecycle.ErrPrecondition},
		"no content": {edgecloud.Creating, nil, func(c *edgecloud.Coordinator) error {
			_, err := c.Clusters.Update(ctx, "c", func(s *edgecloud.ClusterSpec) error { s.Nodes = -1; return nil }, anew)
			return err
		}, lifecycle.ErrInvalid},
		"an app is in it":         {edgecloud.Ready, app, remove, edgecloud.ErrInUse},
		"an app in it is changed": {edgecloud.Ready, moving, update, edgecloud.ErrInUse},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := inState(t, x.at)
			if x.first != nil {
				x.first(t, c)
			}
			before, err := c.Clusters.Get(ctx, "c")
			require.NoError(t, err)
			require.ErrorIs(t, x.ask(c), x.want)
			now, err := c.Clusters.Get(ctx, "c")
			require.NoError(t, err)
			require.Equal(t, before, now)
		})
	}
}

// Who waits for what was done without the CRM need not know that it was.
func TestWaitForWhatHasEnded(t *testing.T) {
	ctx := t.Context()
	c, _ := inState(t, edgecloud.Ready)
	call := &edgecloud.Call{Override: edgecloud.IgnoreCRM}
	for _, ask := range []func() (edgecloud.Record[edgecloud.ClusterSpec], error){
		func() (edgecloud.Record[edgecloud.ClusterSpec], error) { return c.Clusters.Update(ctx, "c", nil, call) },
		func() (edgecloud.Record[edgecloud.ClusterSpec], error) { return c.Clusters.Delete(ctx, "c", call) },
		func() (edgecloud.Record[edgecloud.ClusterSpec], error) {
			return c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, call)
		},
	} {
		rec, err := ask()
		require.NoError(t, err)
		got, err := c.Clusters.Wait(ctx, rec, nil)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	}
}
