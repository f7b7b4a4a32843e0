package edgecloud_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// outcomes returns where an operation can end by itself, with nothing asked by
// a user: the resting states that its status leads to.
func outcomes(t *testing.T, at fsm.Status[edgecloud.State]) []edgecloud.State {
	t.Helper()
	m := edgecloud.ClusterInst
	ends := make(map[edgecloud.State]bool)
	seen := make(map[fsm.Status[edgecloud.State]]bool)
	var follow func(fsm.Status[edgecloud.State])
	follow = func(at fsm.Status[edgecloud.State]) {
		if m.Kind(at.State).Resting() {
			ends[at.State] = true
			return
		}
		if seen[at] {
			return
		}
		seen[at] = true
		for e := range m.Events() {
			for _, a := range []fsm.Actor{edgecloud.CRM, edgecloud.Controller, fsm.Sweeper} {
				if step, err := m.NextForced(context.Background(), at, e, a, nil); err == nil {
					follow(step.Status)
				}
			}
		}
	}
	follow(at)
	var list []edgecloud.State
	for s := range m.States() {
		if ends[s] {
			list = append(list, s)
		}
	}
	return list
}

func TestTheOperationDecidesTheErrorState(t *testing.T) {
	type states = []edgecloud.State
	for _, tt := range []struct {
		from  states // where the operation began
		event edgecloud.Event
		ends  states // besides the state where it began
	}{
		{states{edgecloud.NotPresent}, edgecloud.Create, states{edgecloud.CreateError, edgecloud.Ready}},
		{states{edgecloud.Ready, edgecloud.UpdateError}, edgecloud.Update, states{edgecloud.Ready, edgecloud.UpdateError}},
		{
			states{edgecloud.Ready, edgecloud.CreateError, edgecloud.UpdateError, edgecloud.DeleteError},
			edgecloud.Delete,
			states{edgecloud.NotPresent, edgecloud.DeleteError},
		},
	} {
		for _, from := range tt.from {
			step, err := edgecloud.ClusterInst.NextForced(context.Background(), edgecloud.ClusterInst.At(from), tt.event, edgecloud.User, nil)
			require.NoError(t, err)
			want := slices.Clone(tt.ends)
			if tt.event == edgecloud.Delete && !slices.Contains(want, from) {
				want = append(want, from) // preparing may fail
			}
			require.ElementsMatch(t, want, outcomes(t, step.Status), "%s from %s", tt.event, from)
		}
	}
}

func TestMessagesThatAreLostRepeatedOrWrong(t *testing.T) {
	type say struct {
		event   edgecloud.Event
		actor   fsm.Actor
		state   edgecloud.State // afterwards
		refused error
	}
	const (
		crm        = edgecloud.CRM
		user       = edgecloud.User
		controller = edgecloud.Controller
	)
	for name, script := range map[string][]say{
		"create, Working lost": {
			{edgecloud.Create, user, edgecloud.CreateRequested, nil},
			{edgecloud.Done, crm, edgecloud.Ready, nil},
			{edgecloud.Working, crm, edgecloud.Ready, fsm.ErrNotAllowed},
		},
		"create, Done twice": {
			{edgecloud.Create, user, edgecloud.CreateRequested, nil},
			{edgecloud.Working, crm, edgecloud.Creating, nil},
			{edgecloud.Working, crm, edgecloud.Creating, fsm.ErrNotAllowed},
			{edgecloud.Done, crm, edgecloud.Ready, nil},
			{edgecloud.Done, crm, edgecloud.Ready, fsm.ErrNotAllowed},
		},
		"create fails, error after undo": {
			{edgecloud.Create, user, edgecloud.CreateRequested, nil},
			{edgecloud.Fail, crm, edgecloud.CreateError, nil},
			{edgecloud.Done, crm, edgecloud.CreateError, fsm.ErrNotAllowed},
			{edgecloud.Undo, user, edgecloud.CreateError, fsm.ErrWrongActor},
			{edgecloud.Undo, controller, edgecloud.NotPresent, nil},
			{edgecloud.Fail, crm, edgecloud.NotPresent, fsm.ErrNotAllowed},
		},
		"delete while deleting": {
			{edgecloud.Create, user, edgecloud.CreateRequested, nil},
			{edgecloud.Delete, user, edgecloud.CreateRequested, fsm.ErrNotAllowed},
			{edgecloud.Done, crm, edgecloud.Ready, nil},
			{edgecloud.Delete, user, edgecloud.DeletePrepare, nil},
			{edgecloud.Delete, user, edgecloud.DeletePrepare, fsm.ErrNotAllowed},
			{edgecloud.Done, crm, edgecloud.DeletePrepare, fsm.ErrNotAllowed},
			{edgecloud.Prepared, crm, edgecloud.DeletePrepare, fsm.ErrWrongActor},
			{edgecloud.Prepared, controller, edgecloud.DeleteRequested, nil},
			{edgecloud.Done, crm, edgecloud.NotPresent, nil},
		},
		"update fails, force": {
			{edgecloud.Create, user, edgecloud.CreateRequested, nil},
			{edgecloud.Done, crm, edgecloud.Ready, nil},
			{edgecloud.Update, user, edgecloud.UpdateRequested, nil},
			{edgecloud.TimedOut, fsm.Sweeper, edgecloud.UpdateError, nil},
			{edgecloud.Update, user, edgecloud.UpdateError, fsm.ErrForcedOnly},
			{edgecloud.Delete, user, edgecloud.UpdateError, fsm.ErrForcedOnly},
			{edgecloud.Undo, controller, edgecloud.Ready, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := edgecloud.ClusterInst.Instance()
			for _, s := range script {
				_, err := cluster.Fire(context.Background(), s.event, s.actor, &edgecloud.ClusterSpec{})
				require.ErrorIs(t, err, s.refused, "%s by %s", s.event, s.actor)
				require.Equal(t, s.state, cluster.State(), "%s by %s", s.event, s.actor)
			}
		})
	}
}

// A CRM that reconnects says in which state it finds an object, and knows no
// events.
func TestReconnectByState(t *testing.T) {
	m := edgecloud.ClusterInst
	for _, tt := range []struct{ at, says edgecloud.State }{
		{edgecloud.CreateRequested, edgecloud.Creating},
		{edgecloud.CreateRequested, edgecloud.Ready},
		{edgecloud.Creating, edgecloud.CreateError},
		{edgecloud.UpdateRequested, edgecloud.Ready},
		{edgecloud.Updating, edgecloud.Ready},
		{edgecloud.DeleteRequested, edgecloud.NotPresent},
		{edgecloud.Deleting, edgecloud.NotPresent},
	} {
		step, err := m.NextTo(context.Background(), m.At(tt.at), tt.says, edgecloud.CRM, nil)
		require.NoError(t, err)
		require.Equal(t, tt.says, step.State)
	}
	_, err := m.NextTo(context.Background(), m.At(edgecloud.Ready), edgecloud.NotPresent, edgecloud.CRM, nil)
	require.ErrorIs(t, err, fsm.ErrNotAllowed, "what a user wants to be there does not vanish by itself")
}

// The machine alone, with a manager: what an undo commits is the previous state,
// its content too.
func TestManagerConfig(t *testing.T) {
	ctx := t.Context()
	for _, back := range []struct {
		begin edgecloud.Event
		nodes int
	}{{edgecloud.Update, 7}, {edgecloud.Delete, 3}} {
		clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), edgecloud.ManagerConfig())
		rec, err := clusters.Create(ctx, "c", edgecloud.Create, edgecloud.User, edgecloud.ClusterSpec{Nodes: 3})
		require.NoError(t, err)
		report := func(e edgecloud.Event) {
			v, err := clusters.Report(ctx, "c", rec.Operation, e, edgecloud.CRM, "")
			require.NoError(t, err)
			require.Equal(t, lifecycle.Applied, v)
		}
		report(edgecloud.Done)
		rec, err = clusters.Fire(ctx, "c", back.begin, edgecloud.User, &lifecycle.Change[edgecloud.ClusterSpec]{
			Edit: func(s *edgecloud.ClusterSpec) error { s.Nodes = back.nodes; return nil },
		})
		require.NoError(t, err)
		if back.begin == edgecloud.Delete {
			_, err = clusters.Fire(ctx, "c", edgecloud.Prepared, edgecloud.Controller, nil)
			require.NoError(t, err)
		}
		report(edgecloud.Fail)
		rec, err = clusters.Fire(ctx, "c", edgecloud.Undo, edgecloud.Controller, nil)
		require.NoError(t, err)
		require.Equal(t, edgecloud.Ready, rec.State)
		require.Equal(t, 3, rec.Payload.Nodes)
	}
	// Work is the CRM's.
	clusters := lifecycle.Must(edgecloud.ClusterInst, lifecycle.NewMemoryStore(), edgecloud.ManagerConfig())
	h, err := clusters.Do(ctx, "d", edgecloud.Create, edgecloud.User, lifecycle.Func(func(context.Context) error { return nil }), nil)
	require.NoError(t, err)
	rec, err := h.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, edgecloud.Ready, rec.State)
	require.Equal(t, edgecloud.CRM, rec.Actor)
}
