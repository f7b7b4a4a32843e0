package edgecloud_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// work is what a request has asked of a store.
type work struct{ reads, listed, changes, bytes int }

// scales is a store that counts.
type scales struct {
	*lifecycle.MemoryStore
	work
}

func (s *scales) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	s.reads++
	return s.MemoryStore.Get(ctx, k)
}

func (s *scales) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	list, err := s.MemoryStore.List(ctx, q)
	s.reads, s.listed = s.reads+1, s.listed+len(list)
	return list, err
}

func (s *scales) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.changes += len(c.Changes)
	for i := range c.Changes {
		s.bytes += len(c.Changes[i].To.Payload)
	}
	return s.MemoryStore.Commit(ctx, c)
}

// What a request costs does not depend on how many instances are there.
func TestRequestsCostTheSameAmongMany(t *testing.T) {
	costs := func(apps int) (list []work) {
		ctx := t.Context()
		s := &scales{MemoryStore: lifecycle.NewMemoryStore()}
		c := edgecloud.NewCoordinator(s, nil)
		up(t, c, "b")
		ready(t, c, "c")
		make := func(id string) {
			rec, err := c.Apps.Create(ctx, id, edgecloud.AppSpec{ClusterInst: "c"}, nil)
			require.NoError(t, err)
			_, err = c.Apps.Receive(ctx, edgecloud.Info{ID: id, Operation: rec.Operation, State: edgecloud.Ready})
			require.NoError(t, err)
		}
		for i := range apps {
			make(fmt.Sprintf("a%04d", i))
		}
		for _, do := range []func() error{
			func() error { make("one"); return nil },
			func() error { _, err := c.Apps.Update(ctx, "one", nil, nil); return err },
			func() error {
				rec, err := c.Apps.Get(ctx, "one")
				require.NoError(t, err)
				_, err = c.Apps.Receive(ctx, edgecloud.Info{ID: "one", Operation: rec.Operation, State: edgecloud.UpdateError})
				return err
			},
			func() error { _, err := c.Apps.Undo(ctx, "one", 0, "test"); return err },
			func() error {
				_, err := c.Apps.Delete(ctx, "one", &edgecloud.Call{Override: edgecloud.IgnoreCRM})
				return err
			},
			func() error { _, err := c.Clusters.Update(ctx, "c", nil, nil); return err },
			func() error {
				rec, err := c.Clusters.Get(ctx, "c")
				require.NoError(t, err)
				_, err = c.Clusters.Receive(ctx, edgecloud.Info{ID: "c", Operation: rec.Operation, State: edgecloud.Ready})
				return err
			},
			func() error { _, err := c.Cloudlets.Upgrade(ctx, "b", "v2", ""); return err },
		} {
			s.work = work{}
			require.NoError(t, do())
			list = append(list, s.work)
		}
		return list
	}
	require.Equal(t, costs(3), costs(300))
}

// Whoever refuses because of many names some.
func TestManyReferrers(t *testing.T) {
	ctx := t.Context()
	s := &scales{MemoryStore: lifecycle.NewMemoryStore()}
	c := edgecloud.NewCoordinator(s, nil)
	up(t, c, "b")
	ready(t, c, "c")
	for i := range edgecloud.MaxReferrers + 5 {
		_, err := c.Apps.Create(ctx, fmt.Sprintf("a%04d", i), edgecloud.AppSpec{ClusterInst: "c"}, nil)
		require.NoError(t, err)
	}
	for _, ask := range []func() error{
		func() error { _, err := c.Clusters.Delete(ctx, "c", nil); return err },
		func() error { _, err := c.Clusters.Update(ctx, "c", nil, nil); return err },
		func() error { _, err := c.Cloudlets.Upgrade(ctx, "b", "v2", ""); return err },
	} {
		err := ask()
		used, ok := errors.AsType[*edgecloud.InUseError](err)
		require.True(t, ok, "%v", err)
		require.Len(t, used.By, edgecloud.MaxReferrers)
		require.Equal(t, edgecloud.Referrer{Key: appKey("a0000"), State: edgecloud.CreateRequested}, used.By[0])
	}
}

// The names of what is in a cluster are not those of what is in another one.
func TestReferrersByName(t *testing.T) {
	ctx := t.Context()
	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	up(t, c, "b")
	long := strings.Repeat("x", lifecycle.MaxID-1)
	clusters := []string{"c", "c/", "c/d", "c%2F", "d", "#", "ж", "c0", long + "1", long + "2", strings.Repeat("/", lifecycle.MaxID)}
	apps := []string{"a", "d", "d/a", "/", "%", long + "1", long + "2", strings.Repeat("%", lifecycle.MaxID)}
	for _, id := range clusters {
		ready(t, c, id)
	}
	for k, app := range apps {
		in := clusters[(k*3)%len(clusters)]
		rec, err := c.Apps.Create(ctx, app, edgecloud.AppSpec{ClusterInst: in}, nil)
		require.NoError(t, err, "%q in %q", app, in)
		for _, id := range clusters {
			deleting, err := c.Clusters.Delete(ctx, id, nil)
			if id == in {
				require.ErrorIs(t, err, edgecloud.ErrInUse, "%q in %q", app, in)
				continue
			}
			require.NoError(t, err, "%q, and %q is in %q", id, app, in)
			_, err = c.Clusters.Receive(ctx, edgecloud.Info{ID: id, Operation: deleting.Operation, State: edgecloud.NotPresent})
			require.NoError(t, err)
			ready(t, c, id)
		}
		_, err = c.Apps.Receive(ctx, edgecloud.Info{ID: app, Operation: rec.Operation, State: edgecloud.CreateError})
		require.NoError(t, err)
		_, err = c.Apps.Undo(ctx, app, 0, "test")
		require.NoError(t, err)
	}
}

// What is gone leaves no record behind, however it goes.
func TestNothingIsLeftOfWhatIsGone(t *testing.T) {
	type coordinator = edgecloud.Coordinator
	spec := edgecloud.ClusterSpec{Cloudlet: "b"}
	for name, goes := range map[string]func(*testing.T, *coordinator){
		"deleted": func(t *testing.T, c *coordinator) {
			ready(t, c, "c")
			rec, err := c.Clusters.Delete(t.Context(), "c", nil)
			require.NoError(t, err)
			says(t, c, rec, edgecloud.NotPresent)
		},
		"undone": func(t *testing.T, c *coordinator) {
			rec, err := c.Clusters.Create(t.Context(), "c", spec, nil)
			require.NoError(t, err)
			says(t, c, rec, edgecloud.CreateError)
			_, err = c.Clusters.Wait(t.Context(), rec, nil)
			require.ErrorIs(t, err, edgecloud.ErrFailed)
		},
		"undone by a sweep": func(t *testing.T, c *coordinator) {
			rec, err := c.Clusters.Create(t.Context(), "c", spec, nil)
			require.NoError(t, err)
			says(t, c, rec, edgecloud.CreateError)
			time.Sleep(2 * time.Minute)
			_, err = c.Sweep(t.Context())
			require.NoError(t, err)
		},
		"without its CRM": func(t *testing.T, c *coordinator) {
			ready(t, c, "c")
			_, err := c.Clusters.Delete(t.Context(), "c", &edgecloud.Call{Override: edgecloud.IgnoreCRM})
			require.NoError(t, err)
		},
		"taken for done": func(t *testing.T, c *coordinator) {
			ready(t, c, "c")
			rec, err := c.Clusters.Delete(t.Context(), "c", &edgecloud.Call{Override: edgecloud.IgnoreCRMErrors})
			require.NoError(t, err)
			says(t, c, rec, edgecloud.DeleteError)
			_, err = c.Clusters.Wait(t.Context(), rec, nil)
			require.NoError(t, err)
		},
		"never made": func(t *testing.T, c *coordinator) {
			rec, err := c.Clusters.Create(t.Context(), "c", spec, &edgecloud.Call{KeepError: true})
			require.NoError(t, err)
			says(t, c, rec, edgecloud.CreateError)
			rec, err = c.Clusters.Delete(t.Context(), "c", &edgecloud.Call{Force: true})
			require.NoError(t, err)
			says(t, c, rec, edgecloud.Deleting)
			says(t, c, rec, edgecloud.NotPresent)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := lifecycle.NewMemoryStore()
				c := edgecloud.NewCoordinator(store, nil)
				up(t, c, "b")
				goes(t, c)
				for _, machine := range []string{"clusterinst", "clusterinst-ref", "clusterinst-refs"} {
					left, err := store.List(t.Context(), lifecycle.Query{Machine: machine, Limit: 10})
					require.NoError(t, err)
					require.Empty(t, left)
				}
			})
		})
	}
}

// An AppInst is asked for, and commits late: its ClusterInst has moved to another
// cloudlet meanwhile, and is Ready. An upgrade of that one, which found nothing in
// transition, does not begin beside it.
func TestAnAppThatCommitsLateIsSeenByAnUpgrade(t *testing.T) {
	oslo := edgecloud.ClusterSpec{Cloudlet: "oslo"}
	for name, c := range map[string]struct {
		fails bool
		call  *edgecloud.Call
	}{
		"undone, and made again": {true, nil},
		"made anew elsewhere":    {false, &edgecloud.Call{Override: edgecloud.IgnoreTransientState}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &meddling{MemoryStore: lifecycle.NewMemoryStore()}
			o := edgecloud.NewCoordinator(s, nil)
			ctx := t.Context()
			up(t, o, "b")
			up(t, o, "oslo")
			rec, err := o.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
			require.NoError(t, err)
			if c.fails {
				fails(t, o, rec)
			}
			paused, on, done := make(chan struct{}), make(chan struct{}), make(chan error)
			pause := func() { close(paused); <-on }
			ask := func() {
				_, err := o.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
				done <- err
			}
			if c.fails {
				s.before = pause
				go ask()
				<-paused
				_, err = o.Clusters.Undo(ctx, "c", 0, "")
				require.NoError(t, err)
				rec, err = o.Clusters.Create(ctx, "c", oslo, nil)
			} else {
				// What is noted first does not tell yet where it will be.
				s.before = func() { s.before = func() { s.before = pause; go ask(); <-paused } }
				rec, err = o.Clusters.Create(ctx, "c", oslo, c.call)
			}
			require.NoError(t, err)
			says(t, o, rec, edgecloud.Ready)
			s.before = func() { close(on); require.NoError(t, <-done) }
			_, err = o.Cloudlets.Upgrade(ctx, "oslo", "v2", "")
			require.ErrorIs(t, err, edgecloud.ErrInUse)
		})
	}
}

// An app that is made anew in another cluster is in the way there, and no more where
// it was.
func TestAnAppElsewhere(t *testing.T) {
	ctx := t.Context()
	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	up(t, c, "b")
	ready(t, c, "c")
	ready(t, c, "d")
	_, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "d"}, &edgecloud.Call{Override: edgecloud.IgnoreTransientState})
	require.NoError(t, err)
	_, err = c.Clusters.Delete(ctx, "d", nil)
	require.ErrorIs(t, err, edgecloud.ErrInUse)
	_, err = c.Clusters.Delete(ctx, "c", nil)
	require.NoError(t, err)
}
