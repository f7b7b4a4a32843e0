package edgecloud_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

type clusterRecord = edgecloud.Record[edgecloud.ClusterSpec]

// newCoordinator returns a coordinator with the cloudlet b, whose CRM is Ready under
// notify id 1.
func newCoordinator(t testing.TB, store lifecycle.Store) *edgecloud.Coordinator {
	t.Helper()
	c, err := edgecloud.NewCoordinator(store, nil)
	require.NoError(t, err)
	up(t, c, "b")
	return c
}

// up starts the CRM of a cloudlet.
func up(t testing.TB, c *edgecloud.Coordinator, id string) {
	t.Helper()
	_, err := c.Cloudlets.StartUp(t.Context(), id, 1, "v1")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.Acknowledge(t.Context(), id, 1))
	require.NoError(t, c.Cloudlets.Gathered(t.Context(), id, 1))
}

// createCluster creates a cluster on cloudlet b, which is Ready.
func createCluster(t testing.TB, c *edgecloud.Coordinator, id string) {
	t.Helper()
	rec, err := c.Clusters.Create(t.Context(), id, edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.Ready)
}

// createApp creates an app in cluster c, which is Ready.
func createApp(t testing.TB, c *edgecloud.Coordinator, id string) {
	t.Helper()
	rec, err := c.Apps.Create(t.Context(), id, edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Apps.Receive(t.Context(), notifyID(t.Context(), c, "b"), edgecloud.Report{ID: id, Operation: rec.Operation, State: edgecloud.Ready})
	require.NoError(t, err)
}

// report reports a state of a cluster in the operation of a record.
func report(t testing.TB, c *edgecloud.Coordinator, rec clusterRecord, state edgecloud.State) {
	t.Helper()
	v, err := c.Clusters.Receive(t.Context(), notifyID(t.Context(), c, rec.Payload.Cloudlet), edgecloud.Report{
		ID: rec.ID, Operation: rec.Operation, State: state, Errors: []string{"no quota"},
	})
	require.NoError(t, err)
	require.Equal(t, lifecycle.Applied, v)
}

// notifyID returns the notify id of the present CRM of a cloudlet.
func notifyID(ctx context.Context, c *edgecloud.Coordinator, cloudlet string) int64 {
	at, _ := c.Cloudlets.Creation(ctx, cloudlet)
	return at.Payload.NotifyID
}

// requireCluster requires that a cluster is in a state.
func requireCluster(t testing.TB, c *edgecloud.Coordinator, id string, state edgecloud.State) {
	t.Helper()
	rec, err := c.Clusters.Get(t.Context(), id)
	if state == edgecloud.NotPresent {
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
		return
	}
	require.NoError(t, err)
	require.Equal(t, state, rec.State)
}

// answer is a CRM that completes all orders of cloudlet b.
func answer(ctx context.Context, c *edgecloud.Coordinator) {
	orders, _ := c.Orders(ctx, "b")
	for _, o := range orders {
		state := edgecloud.Ready
		if o.Verb == edgecloud.Delete {
			state = edgecloud.NotPresent
		}
		_, _ = c.Answer(ctx, notifyID(ctx, c, "b"), o.Key, edgecloud.Report{Operation: o.Operation, State: state})
	}
}

func clusterKey(id string) lifecycle.Key { return lifecycle.Key{Machine: "clusterinst", ID: id} }
func appKey(id string) lifecycle.Key     { return lifecycle.Key{Machine: "appinst", ID: id} }

// hooked is a store that calls a function before every call, with the method and the
// machine.
type hooked struct {
	*lifecycle.MemoryStore
	before func(method, machine string)
	after  func(*lifecycle.Commit) // after a commit that succeeded
}

func (s *hooked) hook(method, machine string) {
	if s.before != nil {
		s.before(method, machine)
	}
}

func (s *hooked) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	s.hook("get", of(k.Machine, k.ID))
	return s.MemoryStore.Get(ctx, k)
}

func (s *hooked) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	s.hook("list", of(q.Machine, q.After))
	return s.MemoryStore.List(ctx, q)
}

func (s *hooked) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.hook("commit", c.Changes[0].To.Machine)
	err := s.MemoryStore.Commit(ctx, c)
	if err == nil && s.after != nil {
		s.after(c)
	}
	return err
}

// of returns the machine, and for notes the kind of their objects too.
func of(machine, id string) string {
	if machine != "edgecloud-note" {
		return machine
	}
	kind, _, _ := strings.Cut(id, "/")
	return machine + " " + kind
}

// once calls do before the next call of a method for a machine; "" is every machine.
func (s *hooked) once(method, machine string, do func()) {
	s.before = func(m, of string) {
		if m == method && (machine == "" || machine == of) {
			s.before = nil
			do()
		}
	}
}

// nth calls do before the nth call from now on.
func (s *hooked) nth(n int, do func()) {
	s.before = func(string, string) {
		if n--; n == 0 {
			s.before = nil
			do()
		}
	}
}
