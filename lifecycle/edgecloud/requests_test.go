package edgecloud_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// A CRM reports a failure without a reason. No error is better than an empty one.
func TestFailureWithoutErrors(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	created, err := c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	_, err = c.Clusters.Receive(ctx, 1, edgecloud.Report{ID: "c", Operation: created.Operation, State: edgecloud.CreateError})
	require.NoError(t, err)
	_, err = c.Clusters.Wait(ctx, created, 0)
	require.EqualError(t, err, `edgecloud: operation 1 of clusterinst "c" failed: CreateError (undone)`)
	failed, ok := errors.AsType[*edgecloud.FailedError](err)
	require.True(t, ok)
	require.Empty(t, failed.Errors)
}

func TestErrors(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	createCluster(t, c, "c")
	app, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)

	_, err = c.Clusters.Delete(ctx, "c", nil)
	require.EqualError(t, err, `edgecloud: in use: clusterinst "c": Delete: appinst "a" is CreateRequested`)
	require.ErrorIs(t, err, edgecloud.ErrInUse)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	require.Equal(t, http.StatusPreconditionFailed, lifecycle.HTTPStatus(err))
	_, err = c.Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.ErrorIs(t, err, edgecloud.ErrInUse)

	_, err = c.Apps.Receive(ctx, 1, edgecloud.Report{
		ID: "a", Operation: app.Operation, State: edgecloud.CreateError, Errors: []string{"no\nimage", "no quota"},
	})
	require.NoError(t, err)
	_, err = c.Apps.Wait(ctx, app, 0)
	failed, ok := errors.AsType[*edgecloud.FailedError](err)
	require.True(t, ok)
	require.Equal(t, &edgecloud.FailedError{
		Key: appKey("a"), Operation: app.Operation, State: edgecloud.CreateError,
		Errors: []string{"no image", "no quota"}, Undone: true,
	}, failed)
	require.ErrorIs(t, err, edgecloud.ErrFailed)
	require.NotErrorIs(t, err, edgecloud.ErrNoAnswer)
	for code, errs := range map[int][]error{
		http.StatusUnprocessableEntity: {err, edgecloud.ErrFailed, errors.Join(err, lifecycle.ErrConflict)},
		http.StatusGatewayTimeout: {
			edgecloud.ErrNoAnswer, &edgecloud.FailedError{TimedOut: true},
			fmt.Errorf("wrapped: %w", &edgecloud.FailedError{TimedOut: true}),
		},
		http.StatusConflict: {edgecloud.ErrStillWorking, fmt.Errorf("wrapped: %w", edgecloud.ErrStillWorking)},
	} {
		t.Run(http.StatusText(code), func(t *testing.T) {
			for _, err := range errs {
				require.Equal(t, code, lifecycle.HTTPStatus(err), "%v", err)
			}
		})
	}
}

func TestInvalidRequestsChangeNothing(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	createCluster(t, c, "c")
	before, err := c.Clusters.Get(ctx, "c")
	require.NoError(t, err)
	errEdit := errors.New("no such flavor")
	badEdit := func(*edgecloud.ClusterSpec) error { return errEdit }
	update := func(edit func(*edgecloud.ClusterSpec)) error {
		_, err := c.Clusters.Update(ctx, "c", func(s *edgecloud.ClusterSpec) error { edit(s); return nil }, nil)
		return err
	}
	second := func(_ any, err error) error { return err }
	for name, tt := range map[string]struct{ got, want error }{
		"other cloudlet":   {update(func(s *edgecloud.ClusterSpec) { s.Cloudlet = "oslo" }), lifecycle.ErrInvalid},
		"negative nodes":   {update(func(s *edgecloud.ClusterSpec) { s.Nodes = -1 }), lifecycle.ErrInvalid},
		"no id":            {second(c.Clusters.Update(ctx, "", nil, nil)), lifecycle.ErrInvalid},
		"unknown cluster":  {second(c.Clusters.Delete(ctx, "d", nil)), lifecycle.ErrNotFound},
		"undo of nothing":  {second(c.Clusters.Undo(ctx, "d", 0, "")), lifecycle.ErrNotFound},
		"undo in Ready":    {second(c.Clusters.Undo(ctx, "c", 0, "")), fsm.ErrNotAllowed},
		"wait in Ready":    {second(c.Clusters.Wait(ctx, before, 0)), lifecycle.ErrInvalid},
		"unknown state":    {second(c.Clusters.Receive(ctx, 1, edgecloud.Report{ID: "c", State: "Sleeping"})), fsm.ErrUnknownState},
		"other machine":    {second(c.Answer(ctx, 1, lifecycle.Key{Machine: "vm", ID: "a"}, edgecloud.Report{State: edgecloud.Ready})), lifecycle.ErrInvalid},
		"unknown cloudlet": {second(c.Reconnect(ctx, "oslo", 1, edgecloud.Account{})), lifecycle.ErrNotFound},
		"upgrade of none":  {second(c.Cloudlets.Upgrade(ctx, "oslo", "v2", "")), lifecycle.ErrNotFound},
		"upgrade to none":  {second(c.Cloudlets.Upgrade(ctx, "b", "", "")), lifecycle.ErrInvalid},
		"error of edit":    {second(c.Clusters.Update(ctx, "c", badEdit, nil)), errEdit},
		"negative replicas": {
			second(c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c", Replicas: -1}, nil)), lifecycle.ErrInvalid,
		},
		"no store": {second(edgecloud.NewCoordinator(nil, nil)), lifecycle.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, tt.got, tt.want) })
	}
	after, err := c.Clusters.Get(ctx, "c")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// The conditions of a request are those of its transaction, and its error names the request.
func TestInvalidCloudletNamesTheInstance(t *testing.T) {
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	_, err := c.Clusters.Create(t.Context(), "c", edgecloud.ClusterSpec{Cloudlet: "\x00"}, nil)
	require.EqualError(t, err, `lifecycle: create clusterinst "c": Create by user: invalid request: NUL in id of a precondition "\x00"`)
}

// The last request determines whether a failure is kept, for Wait and for the sweep.
func TestKeepError(t *testing.T) {
	force, keep := &edgecloud.Call{Force: true}, &edgecloud.Call{KeepError: true}
	both := &edgecloud.Call{Force: true, KeepError: true}
	for name, tt := range map[string]struct {
		first, second *edgecloud.Call
		kept          bool
	}{
		"no request keeps":        {nil, force, false},
		"only the first keeps":    {keep, force, false},
		"only the second keeps":   {nil, both, true},
		"both requests keep":      {keep, both, true},
		"only one request":        {nil, nil, false},
		"only one request, keeps": {keep, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				c := newCoordinator(t, lifecycle.NewMemoryStore())
				createCluster(t, c, "c")
				rec, err := c.Clusters.Update(ctx, "c", nil, tt.first)
				require.NoError(t, err)
				report(t, c, rec, edgecloud.UpdateError)
				if tt.second != nil {
					rec, err = c.Clusters.Update(ctx, "c", nil, tt.second)
					require.NoError(t, err)
					report(t, c, rec, edgecloud.UpdateError)
				}
				if tt.kept {
					_, err := c.Clusters.Wait(ctx, rec, 0)
					require.ErrorIs(t, err, edgecloud.ErrFailed)
				}
				time.Sleep(2 * time.Minute)
				_, err = c.Sweep(ctx)
				require.NoError(t, err)
				want := edgecloud.Ready
				if tt.kept {
					want = edgecloud.UpdateError
				}
				requireCluster(t, c, "c", want)
			})
		})
	}
}

func TestWaitIsCancelled(t *testing.T) {
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	rec, err := c.Clusters.Create(t.Context(), "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("shutdown"))
	_, err = c.Clusters.Wait(ctx, rec, 0)
	require.ErrorIs(t, err, context.Canceled)
	now, err := c.Clusters.Get(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, rec, now)
}

// Wait returns the outcome of its own operation, whatever has happened to the object
// since.
func TestWaitForPastOperation(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, &lifecycle.MemoryStore{KeepHistory: -1})
	ok := func(rec clusterRecord, err error) clusterRecord {
		t.Helper()
		require.NoError(t, err)
		return rec
	}
	spec := edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}
	create := ok(c.Clusters.Create(ctx, "c", spec, nil))
	report(t, c, create, edgecloud.Ready)
	update := ok(c.Clusters.Update(ctx, "c", nil, nil))
	got := ok(c.Clusters.Wait(ctx, create, 0))
	require.Equal(t, edgecloud.Ready, got.State)
	require.Equal(t, create.Operation, got.Operation)

	// It failed, another caller has undone it, and a delete has started.
	report(t, c, update, edgecloud.UpdateError)
	ok(c.Clusters.Undo(ctx, "c", update.Operation, "undo"))
	remove := ok(c.Clusters.Delete(ctx, "c", nil))
	_, err := c.Clusters.Wait(ctx, update, 0)
	failed, isFailed := errors.AsType[*edgecloud.FailedError](err)
	require.True(t, isFailed, "%v", err)
	require.True(t, failed.Undone)
	require.Equal(t, edgecloud.UpdateError, failed.State)

	// The object was removed, and created again.
	report(t, c, remove, edgecloud.NotPresent)
	again := ok(c.Clusters.Create(ctx, "c", spec, nil))
	require.Equal(t, clusterRecord{ID: "c"}, ok(c.Clusters.Wait(ctx, remove, 0)))

	// An override has superseded the operation.
	ok(c.Clusters.Manager().Override(ctx, "c", edgecloud.Ready, "operator", "test", nil))
	_, err = c.Clusters.Wait(ctx, again, 0)
	require.ErrorIs(t, err, lifecycle.ErrStale)

	// It failed, and another caller updates again by force. Wait does not undo that.
	update = ok(c.Clusters.Update(ctx, "c", nil, nil))
	report(t, c, update, edgecloud.UpdateError)
	retry := ok(c.Clusters.Update(ctx, "c", nil, &edgecloud.Call{Force: true}))
	_, err = c.Clusters.Wait(ctx, update, 0)
	require.ErrorIs(t, err, edgecloud.ErrFailed)
	require.Equal(t, retry, ok(c.Clusters.Get(ctx, "c")))
}

// The history does not have the end of the operation any more.
func TestWaitWithoutHistory(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, &lifecycle.MemoryStore{KeepHistory: 1})
	rec, err := c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.Ready)
	_, err = c.Clusters.Update(ctx, "c", nil, nil)
	require.NoError(t, err)
	_, err = c.Clusters.Wait(ctx, rec, 0)
	require.ErrorIs(t, err, lifecycle.ErrStale)
}
