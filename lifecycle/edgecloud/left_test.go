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

// TestKeptOrUndone: somebody does something about a failure, while who waits in another
// process wants it kept. Whoever is first, he is told what has become of it.
func TestKeptOrUndone(t *testing.T) {
	type state = edgecloud.State
	for name, c := range map[string]struct {
		asked   *edgecloud.Call // of the request that fails
		fails   state
		machine string // the keeping commits first, or last
		other   func(*testing.T, *edgecloud.Coordinator, edgecloud.Record[edgecloud.ClusterSpec])
		undone  bool
		ends    state
	}{
		"kept, then swept":        {nil, edgecloud.CreateError, "clusterinst", swept, false, edgecloud.CreateError},
		"swept, then kept":        {nil, edgecloud.CreateError, "clusterinst-ref", swept, true, edgecloud.NotPresent},
		"update kept, then swept": {nil, edgecloud.UpdateError, "clusterinst", swept, false, edgecloud.UpdateError},
		"update swept, then kept": {nil, edgecloud.UpdateError, "clusterinst-ref", swept, true, edgecloud.Ready},
		"kept, then waited for":   {nil, edgecloud.UpdateError, "clusterinst", waited, false, edgecloud.UpdateError},
		"waited for, then kept":   {nil, edgecloud.UpdateError, "clusterinst-ref", waited, true, edgecloud.Ready},
		"kept, not ignored": {
			&edgecloud.Call{Override: edgecloud.IgnoreCRMErrors},
			edgecloud.UpdateError, "clusterinst", swept, false, edgecloud.UpdateError,
		},
		"tried again, then kept": {nil, edgecloud.UpdateError, "clusterinst-ref", again, true, edgecloud.Ready},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				store := &meanwhile{MemoryStore: lifecycle.NewMemoryStore(), machine: c.machine}
				s := edgecloud.NewCoordinator(store, nil)
				up(t, s, "b")
				rec, err := s.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, c.asked)
				require.NoError(t, err)
				if c.fails == edgecloud.UpdateError {
					says(t, s, rec, edgecloud.Ready)
					rec, err = s.Clusters.Update(ctx, "c", nil, c.asked)
					require.NoError(t, err)
				}
				says(t, s, rec, c.fails)
				time.Sleep(2 * time.Minute)
				keep := func() { _, err = s.Clusters.Wait(ctx, rec, &edgecloud.Call{KeepError: true}) }
				if store.do = keep; c.machine == "clusterinst" {
					c.other(t, s, rec)
				} else {
					store.do = func() { c.other(t, s, rec) }
					keep()
				}
				failed, ok := errors.AsType[*edgecloud.FailedError](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, c.undone, failed.Undone)
				// And nobody has it kept who did not say so.
				time.Sleep(2 * time.Minute)
				swept(t, s, rec)
				now, err := s.Clusters.Get(ctx, "c")
				if c.ends == edgecloud.NotPresent {
					require.ErrorIs(t, err, lifecycle.ErrNotFound)
					return
				}
				require.NoError(t, err)
				require.Equal(t, c.ends, now.State)
			})
		})
	}
}

func says(t *testing.T, s *edgecloud.Coordinator, rec edgecloud.Record[edgecloud.ClusterSpec], state edgecloud.State) {
	t.Helper()
	v, err := s.Clusters.Receive(t.Context(), edgecloud.Info{ID: rec.ID, Operation: rec.Operation, State: state})
	require.NoError(t, err)
	require.Equal(t, lifecycle.Applied, v)
}

func swept(t *testing.T, s *edgecloud.Coordinator, _ edgecloud.Record[edgecloud.ClusterSpec]) {
	_, err := s.Sweep(t.Context())
	require.NoError(t, err)
}

func waited(t *testing.T, s *edgecloud.Coordinator, rec edgecloud.Record[edgecloud.ClusterSpec]) {
	_, err := s.Clusters.Wait(t.Context(), rec, nil)
	require.IsType(t, &edgecloud.FailedError{}, err)
}

// again is a second try, which fails too, and is to be undone.
func again(t *testing.T, s *edgecloud.Coordinator, rec edgecloud.Record[edgecloud.ClusterSpec]) {
	rec, err := s.Clusters.Update(t.Context(), rec.ID, nil, &edgecloud.Call{Force: true})
	require.NoError(t, err)
	says(t, s, rec, edgecloud.UpdateError)
}

// TestKeptIsNoLaterFailure: who waits for a failed update and wants it kept is overtaken
// by a second try, wherever he is: what that one comes to is undone.
func TestKeptIsNoLaterFailure(t *testing.T) {
	for n := 1; ; n++ {
		happened := false
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			store := &nth{MemoryStore: lifecycle.NewMemoryStore()}
			s := edgecloud.NewCoordinator(store, nil)
			up(t, s, "b")
			ready(t, s, "c")
			rec, err := s.Clusters.Update(ctx, "c", nil, nil)
			require.NoError(t, err)
			says(t, s, rec, edgecloud.UpdateError)
			store.n, store.do = n, func() { again(t, s, rec) }
			_, err = s.Clusters.Wait(ctx, rec, &edgecloud.Call{KeepError: true})
			require.ErrorIs(t, err, edgecloud.ErrFailed)
			if happened = store.do == nil; !happened {
				return
			}
			time.Sleep(2 * time.Minute)
			swept(t, s, rec)
			now, err := s.Clusters.Get(ctx, "c")
			require.NoError(t, err)
			require.Equal(t, edgecloud.Ready, now.State, "at call %d of the store", n)
		})
		if !happened {
			require.Greater(t, n, 5)
			return
		}
	}
}

// nth is a store in which something happens before its nth call.
type nth struct {
	*lifecycle.MemoryStore
	n  int
	do func()
}

func (s *nth) call() {
	if s.n--; s.n == 0 && s.do != nil {
		do := s.do
		s.do = nil
		do()
	}
}

func (s *nth) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	s.call()
	return s.MemoryStore.Get(ctx, k)
}

func (s *nth) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	s.call()
	return s.MemoryStore.List(ctx, q)
}

func (s *nth) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.call()
	return s.MemoryStore.Commit(ctx, c)
}
