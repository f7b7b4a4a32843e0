package edgecloud_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// cost is what a request reads and writes.
type cost struct{ reads, listed, changes, bytes int }

// counting is a store that counts.
type counting struct {
	*lifecycle.MemoryStore
	cost
}

func (s *counting) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	s.reads++
	return s.MemoryStore.Get(ctx, k)
}

func (s *counting) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	list, err := s.MemoryStore.List(ctx, q)
	s.reads, s.listed = s.reads+1, s.listed+len(list)
	return list, err
}

func (s *counting) Commit(ctx context.Context, c *lifecycle.Commit) error {
	s.changes += len(c.Changes)
	for i := range c.Changes {
		s.bytes += len(c.Changes[i].To.Payload)
	}
	return s.MemoryStore.Commit(ctx, c)
}

// The cost of a request does not depend on the number of instances.
func TestCostOfRequests(t *testing.T) {
	costs := func(apps int) (list []cost) {
		ctx := t.Context()
		s := &counting{MemoryStore: lifecycle.NewMemoryStore()}
		c := newCoordinator(t, s)
		createCluster(t, c, "c")
		for i := range apps {
			createApp(t, c, fmt.Sprintf("a%04d", i))
		}
		appReport := func(state edgecloud.State) error {
			rec, err := c.Apps.Get(ctx, "one")
			require.NoError(t, err)
			_, err = c.Apps.Receive(ctx, 1, edgecloud.Report{ID: "one", Operation: rec.Operation, State: state})
			return err
		}
		for _, do := range []func() error{
			func() error { createApp(t, c, "one"); return nil },
			func() error { _, err := c.Apps.Update(ctx, "one", nil, nil); return err },
			func() error { return appReport(edgecloud.UpdateError) },
			func() error { _, err := c.Apps.Undo(ctx, "one", 0, "test"); return err },
			func() error { _, err := c.Apps.Delete(ctx, "one", nil); return err },
			func() error { return appReport(edgecloud.NotPresent) },
			func() error {
				rec, err := c.Clusters.Update(ctx, "c", nil, nil)
				report(t, c, rec, edgecloud.Ready)
				return err
			},
			func() error { _, err := c.Cloudlets.Upgrade(ctx, "b", "v2", ""); return err },
		} {
			s.cost = cost{}
			require.NoError(t, do())
			list = append(list, s.cost)
		}
		return list
	}
	require.Equal(t, costs(3), costs(300))
}

// An app is in its own cluster only, whatever the ids are.
func TestInUseByID(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	long := strings.Repeat("x", lifecycle.MaxID-1)
	clusters := []string{"c", "c/", "c/d", "c%2F", "#", "ж", "c0", long + "1", long + "2", strings.Repeat("/", lifecycle.MaxID)}
	apps := []string{"a", "d", "/", "%", long + "1", long + "2", strings.Repeat("%", lifecycle.MaxID)}
	for _, id := range clusters {
		createCluster(t, c, id)
	}
	for i, app := range apps {
		in := clusters[(i*3)%len(clusters)]
		rec, err := c.Apps.Create(ctx, app, edgecloud.AppSpec{ClusterInst: in}, nil)
		require.NoError(t, err, "%q in %q", app, in)
		for _, id := range clusters {
			deleting, err := c.Clusters.Delete(ctx, id, nil)
			if id == in {
				require.ErrorIs(t, err, edgecloud.ErrInUse, "%q in %q", app, in)
				continue
			}
			require.NoError(t, err, "%q, and %q is in %q", id, app, in)
			report(t, c, deleting, edgecloud.NotPresent)
			createCluster(t, c, id)
		}
		_, err = c.Apps.Receive(ctx, 1, edgecloud.Report{ID: app, Operation: rec.Operation, State: edgecloud.CreateError})
		require.NoError(t, err)
		_, err = c.Apps.Undo(ctx, app, 0, "test")
		require.NoError(t, err)
	}
}

// The removal of an instance removes all its records.
func TestRemovalLeavesNoRecords(t *testing.T) {
	type coordinator = edgecloud.Coordinator
	create := func(t *testing.T, c *coordinator, call *edgecloud.Call) clusterRecord {
		rec, err := c.Clusters.Create(t.Context(), "c", edgecloud.ClusterSpec{Cloudlet: "b"}, call)
		require.NoError(t, err)
		report(t, c, rec, edgecloud.CreateError)
		return rec
	}
	for name, remove := range map[string]func(*testing.T, *coordinator){
		"deleted": func(t *testing.T, c *coordinator) {
			createCluster(t, c, "c")
			rec, err := c.Clusters.Delete(t.Context(), "c", nil)
			require.NoError(t, err)
			report(t, c, rec, edgecloud.NotPresent)
		},
		"undone by Wait": func(t *testing.T, c *coordinator) {
			_, err := c.Clusters.Wait(t.Context(), create(t, c, nil), 0)
			require.ErrorIs(t, err, edgecloud.ErrFailed)
		},
		"undone by a sweep": func(t *testing.T, c *coordinator) {
			create(t, c, nil)
			time.Sleep(2 * time.Minute)
			_, err := c.Sweep(t.Context())
			require.NoError(t, err)
		},
		"overridden": func(t *testing.T, c *coordinator) {
			createCluster(t, c, "c")
			_, err := c.Clusters.Manager().Override(t.Context(), "c", edgecloud.NotPresent, "operator", "test", nil)
			require.NoError(t, err)
		},
		"deleted and never created": func(t *testing.T, c *coordinator) {
			create(t, c, &edgecloud.Call{KeepError: true})
			rec, err := c.Clusters.Delete(t.Context(), "c", &edgecloud.Call{Force: true})
			require.NoError(t, err)
			report(t, c, rec, edgecloud.NotPresent)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := lifecycle.NewMemoryStore()
				c := newCoordinator(t, store)
				remove(t, c)
				for _, q := range []lifecycle.Query{{Machine: "clusterinst"}, {Machine: "edgecloud-note", After: "clusterinst/"}} {
					q.Limit = 10
					left, err := store.List(t.Context(), q)
					require.NoError(t, err)
					require.Empty(t, left, q.Machine)
				}
			})
		})
	}
}

// An app that an override has moved to another cluster prevents no delete of the earlier one.
func TestAppInOtherCluster(t *testing.T) {
	ctx := t.Context()
	c := newCoordinator(t, lifecycle.NewMemoryStore())
	createCluster(t, c, "c")
	_, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Apps.Manager().Override(ctx, "a", edgecloud.Ready, "operator", "test", &lifecycle.Change[edgecloud.AppSpec]{
		Edit: func(s *edgecloud.AppSpec) error { s.ClusterInst = "d"; return nil },
	})
	require.NoError(t, err)
	_, err = c.Clusters.Delete(ctx, "c", nil)
	require.NoError(t, err)
}

// An override that removes an app whose content cannot be read leaves its note. The note
// prevents no delete of the cluster, and hides no app that prevents it.
func TestNoteIsLeft(t *testing.T) {
	ctx := t.Context()
	for name, others := range map[string][]string{"alone": nil, "with other apps": {"b", "c", "d", "e"}} {
		t.Run(name, func(t *testing.T) {
			store := lifecycle.NewMemoryStore()
			c := newCoordinator(t, store)
			createCluster(t, c, "c")
			createApp(t, c, "a")
			for _, id := range others {
				createApp(t, c, id)
			}
			scripttest.MakeForeign(t, store, appKey("a"))
			_, err := c.Apps.Manager().Override(ctx, "a", edgecloud.NotPresent, "operator", "test", nil)
			require.NoError(t, err)
			_, err = c.Clusters.Delete(ctx, "c", nil)
			if others == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, edgecloud.ErrInUse)
			}
		})
	}
}

// An object that the manager has added in an error state has no note. Its failure is undone
// as if its request had not kept it.
func TestFailureWithoutNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCoordinator(t, lifecycle.NewMemoryStore())
		_, err := c.Clusters.Manager().Add(t.Context(), "c", edgecloud.UpdateError, edgecloud.User, edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		_, err = c.Sweep(t.Context())
		require.NoError(t, err)
		requireCluster(t, c, "c", edgecloud.Ready)
	})
}
