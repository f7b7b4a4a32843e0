package edgecloud_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// fails has the CRM give up what was asked for.
func fails(t *testing.T, c *edgecloud.Coordinator, rec edgecloud.Record[edgecloud.ClusterSpec]) {
	t.Helper()
	_, err := c.Clusters.Receive(t.Context(), edgecloud.Info{ID: rec.ID, Operation: rec.Operation, State: edgecloud.CreateError, Errors: []string{"no"}})
	require.NoError(t, err)
}

// TestWantedAnew: what is stuck is asked for anew, and what is to be done with a
// failure is what was said then, and no more what was said first.
func TestWantedAnew(t *testing.T) {
	const anew = edgecloud.IgnoreTransientState
	for name, c := range map[string]struct {
		first, then *edgecloud.Call
		want        edgecloud.State
	}{
		"ignored":     {&edgecloud.Call{Override: edgecloud.IgnoreCRMErrors}, &edgecloud.Call{Override: anew}, edgecloud.NotPresent},
		"kept":        {&edgecloud.Call{KeepError: true}, &edgecloud.Call{Override: anew}, edgecloud.NotPresent},
		"to ignore":   {nil, &edgecloud.Call{Override: anew | edgecloud.IgnoreCRMErrors}, edgecloud.Ready},
		"to keep":     {nil, &edgecloud.Call{Override: anew, KeepError: true}, edgecloud.CreateError},
		"of the same": {&edgecloud.Call{KeepError: true}, &edgecloud.Call{Override: anew, KeepError: true}, edgecloud.CreateError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				s := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
				up(t, s, "b")
				_, err := s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, c.first)
				require.NoError(t, err)
				rec, err := s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, c.then)
				require.NoError(t, err)
				fails(t, s, rec)
				time.Sleep(2 * time.Minute)
				_, err = s.Sweep(ctx)
				require.NoError(t, err)
				now, err := s.Clusters.Get(ctx, "c")
				if c.want == edgecloud.NotPresent {
					require.ErrorIs(t, err, lifecycle.ErrNotFound)
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.want, now.State)
			})
		})
	}
}

// TestAnewElsewhere: what is stuck is asked for anew on another cloudlet: an upgrade
// of that one sees it, and it is not asked for where there is none, or none that is
// ready.
func TestAnewElsewhere(t *testing.T) {
	ctx := t.Context()
	s := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	up(t, s, "b")
	up(t, s, "d")
	begun, err := s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	anew := &edgecloud.Call{Override: edgecloud.IgnoreTransientState}
	_, err = s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "nowhere"}, anew)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	now, err := s.Clusters.Get(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, begun, now)
	_, err = s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "d"}, anew)
	require.NoError(t, err)
	_, err = s.Cloudlets.Upgrade(ctx, "d", "v2", "")
	require.ErrorIs(t, err, edgecloud.ErrInUse)
}

// TestWaitDoesWhatTheRequestSays: who waits and says nothing himself, such as another
// process, does with a failure what was said with the request.
func TestWaitDoesWhatTheRequestSays(t *testing.T) {
	for name, c := range map[string]struct {
		asked, waits *edgecloud.Call
		want         edgecloud.State
	}{
		"keep":                      {&edgecloud.Call{KeepError: true}, nil, edgecloud.CreateError},
		"ignore":                    {&edgecloud.Call{Override: edgecloud.IgnoreCRMErrors}, nil, edgecloud.Ready},
		"nothing":                   {nil, nil, edgecloud.NotPresent},
		"keep what was ignored":     {&edgecloud.Call{Override: edgecloud.IgnoreCRMErrors}, &edgecloud.Call{KeepError: true}, edgecloud.CreateError},
		"ignore what was kept":      {&edgecloud.Call{KeepError: true}, &edgecloud.Call{Override: edgecloud.IgnoreCRMErrors}, edgecloud.Ready},
		"keep, and nothing was":     {nil, &edgecloud.Call{KeepError: true}, edgecloud.CreateError},
		"patience and nothing else": {&edgecloud.Call{KeepError: true}, &edgecloud.Call{Patience: time.Hour}, edgecloud.CreateError},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
			up(t, s, "b")
			rec, err := s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, c.asked)
			require.NoError(t, err)
			fails(t, s, rec)
			after, err := s.Clusters.Wait(ctx, rec, c.waits)
			if c.want == edgecloud.Ready {
				require.NoError(t, err)
				require.Equal(t, c.want, after.State)
				return
			}
			require.ErrorIs(t, err, edgecloud.ErrFailed)
			now, err := s.Clusters.Get(ctx, "c")
			if c.want == edgecloud.NotPresent {
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, now.State)
		})
	}
}

// meanwhile is a store in which something happens once a commit of a machine's
// objects has been asked for, and before it is made.
type meanwhile struct {
	*lifecycle.MemoryStore
	machine string
	do      func()
}

func (s *meanwhile) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if do := s.do; do != nil && c.Changes[0].To.Machine == s.machine {
		s.do = nil
		do()
	}
	return s.MemoryStore.Commit(ctx, c)
}

// TestKeptOrUndone: one process undoes what was left, while who waits in another one
// wants it kept. Whoever is first, he is told what has become of it.
func TestKeptOrUndone(t *testing.T) {
	for name, machine := range map[string]string{"kept first": "clusterinst", "undone first": "cloudlet-refs"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				store := &meanwhile{MemoryStore: lifecycle.NewMemoryStore(), machine: machine}
				s := edgecloud.NewCoordinator(store, nil)
				up(t, s, "b")
				rec, err := s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
				require.NoError(t, err)
				fails(t, s, rec)
				time.Sleep(2 * time.Minute)
				keep := func() { _, err = s.Clusters.Wait(ctx, rec, &edgecloud.Call{KeepError: true}) }
				sweep := func() {
					_, err := s.Sweep(ctx)
					require.NoError(t, err)
				}
				if store.do = keep; machine == "clusterinst" {
					sweep()
				} else {
					store.do = sweep
					keep()
				}
				failed, ok := errors.AsType[*edgecloud.FailedError](err)
				require.True(t, ok, "%v", err)
				_, err = s.Clusters.Get(ctx, "c")
				require.Equal(t, machine == "cloudlet-refs", failed.Undone)
				require.Equal(t, failed.Undone, errors.Is(err, lifecycle.ErrNotFound))
			})
		})
	}
}
