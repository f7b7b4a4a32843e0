package edgecloud_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// Errors are for programs: each says what to do, and who is in the way.
func TestErrors(t *testing.T) {
	ctx := t.Context()
	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	up(t, c, "b")
	ready(t, c, "c")
	app, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)

	_, err = c.Clusters.Delete(ctx, "c", nil)
	used, ok := errors.AsType[*edgecloud.InUseError](err)
	require.True(t, ok)
	require.Equal(t, &edgecloud.InUseError{
		Key: clusterKey("c"), Verb: edgecloud.Delete, By: []edgecloud.Referrer{{Key: appKey("a"), State: edgecloud.CreateRequested}},
	}, used)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	require.Equal(t, http.StatusPreconditionFailed, lifecycle.HTTPStatus(err))
	_, err = c.Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.ErrorIs(t, err, edgecloud.ErrInUse)

	_, err = c.Apps.Receive(ctx, edgecloud.Info{ID: "a", Operation: app.Operation, State: edgecloud.CreateError, Errors: []string{"no\nimage", "no luck"}})
	require.NoError(t, err)
	_, err = c.Apps.Wait(ctx, app, &edgecloud.Call{KeepError: true})
	failed, ok := errors.AsType[*edgecloud.FailedError](err)
	require.True(t, ok)
	require.Equal(t, &edgecloud.FailedError{
		Key: appKey("a"), Operation: app.Operation, State: edgecloud.CreateError, Errors: []string{"no image", "no luck"},
	}, failed)
	require.ErrorIs(t, err, edgecloud.ErrFailed)
	require.NotErrorIs(t, err, edgecloud.ErrNoAnswer)
	for code, errs := range map[int][]error{
		http.StatusUnprocessableEntity: {err, edgecloud.ErrFailed, errors.Join(err, lifecycle.ErrConflict)},
		http.StatusGatewayTimeout: {
			edgecloud.ErrNoAnswer, &edgecloud.FailedError{TimedOut: true, Silent: true},
			fmt.Errorf("who knows: %w", &edgecloud.FailedError{TimedOut: true}),
		},
		http.StatusConflict: {edgecloud.ErrStillWorking, fmt.Errorf("%w: look again", edgecloud.ErrStillWorking)},
	} {
		for _, err := range errs {
			require.Equal(t, code, lifecycle.HTTPStatus(err), "%v", err)
		}
	}

	// A content that would be elsewhere, or is none, changes nothing.
	before, err := c.Clusters.Get(ctx, "c")
	require.NoError(t, err)
	for _, edit := range []func(*edgecloud.ClusterSpec) error{
		func(s *edgecloud.ClusterSpec) error { s.Cloudlet = "elsewhere"; return nil },
		func(s *edgecloud.ClusterSpec) error { s.Nodes = -1; return nil },
		func(s *edgecloud.ClusterSpec) error { return fmt.Errorf("%w: no", lifecycle.ErrInvalid) },
	} {
		for _, call := range []*edgecloud.Call{nil, {Override: edgecloud.IgnoreCRM}} {
			_, err := c.Clusters.Update(ctx, "c", edit, call)
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		}
	}
	_, err = c.Apps.Update(ctx, "a", nil, &edgecloud.Call{Override: edgecloud.IgnoreCRM})
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	_, err = c.Clusters.Update(ctx, "", nil, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = c.Clusters.Delete(ctx, "nobody", nil)
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = c.Clusters.Undo(ctx, "nobody", 0, "")
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	_, err = c.Clusters.Undo(ctx, "c", 0, "")
	require.ErrorIs(t, err, fsm.ErrNotAllowed)
	_, err = c.Clusters.Wait(ctx, before, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	after, err := c.Clusters.Get(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, before, after)

	_, err = c.Answer(ctx, lifecycle.Key{Machine: "vm", ID: "a"}, edgecloud.Info{State: edgecloud.Ready})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = c.Clusters.Receive(ctx, edgecloud.Info{ID: "c", State: "Sleeping"})
	require.ErrorIs(t, err, fsm.ErrUnknownState)
	_, err = c.Reconnect(ctx, "nowhere", 1, edgecloud.Account{})
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
	soon, stop := context.WithTimeout(ctx, time.Second)
	defer stop()
	_, err = c.Cloudlets.Upgrade(soon, "nowhere", "v2", "")
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// Waiting ends with the caller, and changes nothing then.
func TestWaitIsCancelled(t *testing.T) {
	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	up(t, c, "b")
	rec, err := c.Clusters.Create(t.Context(), "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("gone home"))
	_, err = c.Clusters.Wait(ctx, rec, nil)
	require.ErrorIs(t, err, context.Canceled)
	now, err := c.Clusters.Get(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, rec, now)
}

// What a crashed CRM can say by what is there.
func TestResolve(t *testing.T) {
	for state := range edgecloud.ClusterInst.States() {
		for _, there := range []bool{true, false} {
			says, asked := edgecloud.Resolve(state, there)
			if says == "" {
				require.Equal(t, asked, edgecloud.ClusterInst.Kind(state) == fsm.Transitional && state != edgecloud.DeletePrepare, "%s %v", state, there)
				continue
			}
			require.True(t, asked)
			step, err := edgecloud.ClusterInst.NextTo(t.Context(), edgecloud.ClusterInst.At(state), says, edgecloud.CRM, nil)
			require.NoError(t, err, "%s %v: the table lets the CRM say it", state, there)
			require.True(t, edgecloud.ClusterInst.Kind(step.State).Resting())
		}
	}
}

// A cluster goes, and another one of its name comes on another cloudlet, while an
// app in it is being created: the app counts on the cloudlet where it really is.
func TestAClusterMovesWhileAnAppComes(t *testing.T) {
	s := &meddling{MemoryStore: lifecycle.NewMemoryStore(), machine: "clusterinst-refs"}
	c := edgecloud.NewCoordinator(s, nil)
	up(t, c, "b")
	up(t, c, "oslo")
	ready(t, c, "c")
	s.at = func() {
		rec, err := c.Clusters.Delete(t.Context(), "c", nil)
		require.NoError(t, err)
		_, err = c.Clusters.Receive(t.Context(), edgecloud.Info{ID: "c", Operation: rec.Operation, State: edgecloud.NotPresent})
		require.NoError(t, err)
		rec, err = c.Clusters.Create(t.Context(), "c", edgecloud.ClusterSpec{Cloudlet: "oslo"}, nil)
		require.NoError(t, err)
		_, err = c.Clusters.Receive(t.Context(), edgecloud.Info{ID: "c", Operation: rec.Operation, State: edgecloud.Ready})
		require.NoError(t, err)
	}
	_, err := c.Apps.Create(t.Context(), "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Cloudlets.Upgrade(t.Context(), "oslo", "v2", "")
	require.ErrorIs(t, err, edgecloud.ErrInUse)
	_, err = c.Cloudlets.Upgrade(t.Context(), "b", "v2", "")
	require.NoError(t, err)
}

// Another CRM comes between the look at its version and the commit that begins an
// upgrade: the upgrade is of the one that runs then.
func TestAnotherCRMComesWhileAnUpgradeBegins(t *testing.T) {
	s := &meddling{MemoryStore: lifecycle.NewMemoryStore(), machine: "cloudlet-refs"}
	c := edgecloud.NewCoordinator(s, nil)
	up(t, c, "b")
	ready(t, c, "c")
	starts := func(notifyID int64, version string) func() {
		return func() {
			_, err := c.Cloudlets.StartUp(t.Context(), "b", notifyID, version)
			require.NoError(t, err)
			require.NoError(t, c.Cloudlets.Gathered(t.Context(), "b", notifyID))
		}
	}
	s.at = starts(7, "v9")
	_, err := c.Cloudlets.Upgrade(t.Context(), "b", "v9", "")
	require.ErrorIs(t, err, lifecycle.ErrInvalid, "it has that version now")
	s.at = starts(8, "v3")
	rec, err := c.Cloudlets.Upgrade(t.Context(), "b", "v10", "")
	require.NoError(t, err)
	require.Equal(t, edgecloud.Cloudlet{Version: "v10", OldVersion: "v3"}, rec.Payload)
	require.NoError(t, c.Cloudlets.AckUpgrade(t.Context(), "b", 8), "by the CRM that is replaced")
}

// An upgrade needs the CRM Ready, also if it is not in the moment of the commit.
func TestTheCRMGoesWhileAnUpgradeBegins(t *testing.T) {
	s := &meddling{MemoryStore: lifecycle.NewMemoryStore(), machine: "cloudlet-refs"}
	c := edgecloud.NewCoordinator(s, nil)
	up(t, c, "b")
	ready(t, c, "c")
	s.at = func() {
		dropped, err := c.Cloudlets.Disconnected(t.Context(), "b", 1)
		require.NoError(t, err)
		require.True(t, dropped)
	}
	_, err := c.Cloudlets.Upgrade(t.Context(), "b", "v2", "")
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	rec, err := c.Cloudlets.Upgrading(t.Context(), "b")
	require.NoError(t, err)
	require.Equal(t, edgecloud.CloudletReady, rec.State)
}

// A cluster comes, and is Ready, after an app in it has looked where it is: the app
// is not made, because its cloudlet would not know of it.
func TestAClusterComesWhileAnAppInItIsAskedFor(t *testing.T) {
	s := &meddling{MemoryStore: lifecycle.NewMemoryStore()}
	c := edgecloud.NewCoordinator(s, nil)
	up(t, c, "b")
	s.before = func() { ready(t, c, "c") }
	_, err := c.Apps.Create(t.Context(), "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	s.before = nil
	_, err = c.Apps.Get(t.Context(), "a")
	require.ErrorIs(t, err, lifecycle.ErrNotFound)
}

// meddling calls a function once, when a record of a machine is about to be read,
// or before a commit.
type meddling struct {
	*lifecycle.MemoryStore
	machine string
	at      func()
	before  func()
}

func (m *meddling) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	return m.MemoryStore.Commit(ctx, c)
}

func (m *meddling) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if at := m.at; at != nil && k.Machine == m.machine {
		m.at = nil
		at()
	}
	return m.MemoryStore.Get(ctx, k)
}
