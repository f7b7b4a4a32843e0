package edgecloud_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// judge checks after every commit that no objects which depend on each other change at the
// same time.
type judge struct {
	state  map[lifecycle.Key]string
	faults []string
	begun  map[string]int // operations by machine
}

func newJudge() *judge {
	return &judge{state: map[lifecycle.Key]string{}, begun: map[string]int{}}
}

var resting = []string{"", "NotPresent", "Ready", "CreateError", "UpdateError", "DeleteError"}

// saw takes a commit, in the order of the commits.
func (j *judge) saw(c *lifecycle.Commit) {
	for i := range c.Changes {
		j.check(&c.Changes[i])
	}
}

func (j *judge) check(ch *lifecycle.StoredChange) {
	to := &ch.To
	before := j.state[to.Key]
	if j.state[to.Key] = to.State; ch.Remove {
		delete(j.state, to.Key)
	}
	begins := slices.Contains(resting, before) && !slices.Contains(resting, to.State)
	if begins {
		j.begun[to.Machine]++
	}
	switch {
	case to.Machine == "appinst" && begins:
		j.requireState(to.Key, lifecycle.Key{Machine: "cloudlet-upgrade", ID: "b"}, "Ready")
		j.requireState(to.Key, clusterKey("c"), resting...)
	case to.Machine == "clusterinst" && begins:
		j.requireState(to.Key, lifecycle.Key{Machine: "cloudlet-upgrade", ID: "b"}, "Ready")
		if to.State == "UpdateRequested" {
			j.requireAll(to.Key, "appinst", resting)
		}
	case to.Machine == "clusterinst" && to.State == "DeleteRequested":
		j.requireAll(to.Key, "appinst", nil)
	case to.Machine == "cloudlet-upgrade" && to.State == "UpdateRequested":
		j.requireAll(to.Key, "appinst", resting)
		j.requireAll(to.Key, "clusterinst", resting)
	}
}

func (j *judge) requireState(key, other lifecycle.Key, states ...string) {
	if s := j.state[other]; !slices.Contains(states, s) {
		j.faults = append(j.faults, fmt.Sprintf("%v begins while %v is %s", key, other, s))
	}
}

func (j *judge) requireAll(key lifecycle.Key, machine string, states []string) {
	for other := range j.state {
		if other.Machine == machine {
			j.requireState(key, other, states...)
		}
	}
}

// Users, CRMs and operators act at the same time on two coordinators of one store.
func TestDependentObjectsInParallel(t *testing.T) {
	ctx := t.Context()
	j := newJudge()
	store := &scripttest.Store{MemoryStore: lifecycle.NewMemoryStore(), Committed: j.saw}
	both := []*edgecloud.Coordinator{newCoordinator(t, store), nil}
	createCluster(t, both[0], "c")
	var err error
	both[1], err = edgecloud.NewCoordinator(store, nil)
	require.NoError(t, err)
	var all sync.WaitGroup
	for worker := range 8 {
		c, random := both[worker%2], rand.New(rand.NewPCG(1, uint64(worker)))
		all.Go(func() {
			for range 150 {
				app := fmt.Sprintf("a%d", random.IntN(3))
				switch random.IntN(8) {
				case 0:
					_, _ = c.Apps.Create(ctx, app, edgecloud.AppSpec{ClusterInst: "c"}, nil)
				case 1:
					_, _ = c.Apps.Update(ctx, app, nil, nil)
				case 2:
					_, _ = c.Apps.Delete(ctx, app, nil)
				case 3:
					_, _ = c.Clusters.Update(ctx, "c", nil, nil)
				case 4:
					_, _ = c.Clusters.Delete(ctx, "c", nil)
				case 5:
					_, _ = c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
				case 6:
					answer(ctx, c) // so that all instances are at rest at times
					if _, err := c.Cloudlets.Upgrade(ctx, "b", "v2", ""); err == nil {
						_ = c.Cloudlets.BringUpFailed(ctx, "b", 1, "")
						_ = c.Cloudlets.Repaired(ctx, "b", "v1", "test")
					}
				default:
					answer(ctx, c)
				}
			}
		})
	}
	all.Wait()
	// Every operation can be answered, and then all instances are at rest.
	answer(ctx, both[0])
	_, err = both[1].Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.NoError(t, err)
	require.Empty(t, j.faults)
	for _, machine := range []string{"clusterinst", "appinst", "cloudlet-upgrade"} {
		require.NotZero(t, j.begun[machine], machine)
	}
}

// Every request, with every other request by another coordinator before each single
// call of the store.
func TestEveryPairOfRequests(t *testing.T) {
	type coordinator = edgecloud.Coordinator
	ctx := t.Context()
	app := edgecloud.AppSpec{ClusterInst: "c"}
	spec := edgecloud.ClusterSpec{Cloudlet: "b"}
	second := func(_ any, err error) error { return err }
	force := &edgecloud.Call{Force: true}
	requests := map[string]func(*coordinator) error{
		"create an app":    func(c *coordinator) error { return second(c.Apps.Create(ctx, "a2", app, nil)) },
		"update an app":    func(c *coordinator) error { return second(c.Apps.Update(ctx, "a", nil, nil)) },
		"delete an app":    func(c *coordinator) error { return second(c.Apps.Delete(ctx, "a", nil)) },
		"create a cluster": func(c *coordinator) error { return second(c.Clusters.Create(ctx, "c", spec, nil)) },
		"update a cluster": func(c *coordinator) error { return second(c.Clusters.Update(ctx, "c", nil, force)) },
		"delete a cluster": func(c *coordinator) error { return second(c.Clusters.Delete(ctx, "c", force)) },
		"undo":             func(c *coordinator) error { return second(c.Clusters.Undo(ctx, "c", 0, "test")) },
		"upgrade":          func(c *coordinator) error { return second(c.Cloudlets.Upgrade(ctx, "b", "v2", "")) },
		"disconnect":       func(c *coordinator) error { return second(c.Cloudlets.Disconnected(ctx, "b", 1)) },
	}
	withCluster := func(t *testing.T, c *coordinator) { createCluster(t, c, "c") }
	withApp := func(t *testing.T, c *coordinator) {
		createCluster(t, c, "c")
		createApp(t, c, "a")
	}
	for world, create := range map[string]func(*testing.T, *coordinator){
		"with a cluster": withCluster,
		"with an app":    withApp,
		"with a deleting cluster": func(t *testing.T, c *coordinator) {
			withCluster(t, c)
			require.NoError(t, requests["delete a cluster"](c))
		},
		"with a failed update": func(t *testing.T, c *coordinator) {
			withApp(t, c)
			rec, err := c.Clusters.Update(ctx, "c", nil, nil)
			require.NoError(t, err)
			report(t, c, rec, edgecloud.UpdateError)
		},
	} {
		for first, request := range requests {
			t.Run(world+": "+first, func(t *testing.T) {
				for other, overtake := range requests {
					for n, happened := 1, true; happened; n++ {
						j, s := newJudge(), scripttest.NewStore()
						s.After(func(c scripttest.Call) error {
							if c.Commit != nil {
								j.saw(c.Commit)
							}
							return nil
						})
						one := newCoordinator(t, s)
						two, err := edgecloud.NewCoordinator(s, nil)
						require.NoError(t, err)
						create(t, one)
						var errs [2]error
						calls := 0
						s.Before(func(scripttest.Call) error {
							if calls++; calls == n {
								errs[1] = overtake(two)
							}
							return nil
						})
						errs[0] = request(one)
						happened = calls >= n
						where := fmt.Sprintf("%s before call %d of the store", other, n)
						require.Empty(t, j.faults, where)
						for _, err := range errs {
							require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome, where)
							text := fmt.Sprint(err)
							require.False(t, strings.Contains(text, "edgecloud-note"), "%s: %v", where, err)
						}
						if now, err := one.Clusters.Get(ctx, "c"); err == nil {
							require.NotEqual(t, edgecloud.DeletePrepare, now.State, where)
						}
					}
				}
			})
		}
	}
}

// The sweeper ends a delete while it reads the apps, and another delete starts: the first
// one does not affect the second, whether it finds apps or not.
func TestLosingDelete(t *testing.T) {
	ctx := t.Context()
	for name, tt := range map[string]struct {
		app  bool
		want error
	}{"without apps": {false, lifecycle.ErrStale}, "with an app": {true, edgecloud.ErrInUse}} {
		t.Run(name, func(t *testing.T) {
			s := scripttest.NewStore()
			c := newCoordinator(t, s)
			createCluster(t, c, "c")
			if tt.app {
				createApp(t, c, "a")
			}
			var winner clusterRecord
			s.OnceBefore(listAppNotes, func() {
				_, err := c.Clusters.Manager().Fire(ctx, "c", edgecloud.PrepareFailed, edgecloud.Controller,
					&lifecycle.Change[edgecloud.ClusterSpec]{Force: true})
				require.NoError(t, err)
				winner, err = c.Clusters.Manager().Fire(ctx, "c", edgecloud.Delete, edgecloud.User, nil)
				require.NoError(t, err)
			})
			_, err := c.Clusters.Delete(ctx, "c", nil)
			require.ErrorIs(t, err, tt.want)
			now, err := c.Clusters.Get(ctx, "c")
			require.NoError(t, err)
			require.Equal(t, winner, now)
			require.Equal(t, edgecloud.DeletePrepare, now.State)
		})
	}
}

// moveCluster deletes a cluster and creates it on another cloudlet.
func moveCluster(t *testing.T, c *edgecloud.Coordinator, id, cloudlet string) {
	t.Helper()
	rec, err := c.Clusters.Delete(t.Context(), id, nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.NotPresent)
	rec, err = c.Clusters.Create(t.Context(), id, edgecloud.ClusterSpec{Cloudlet: cloudlet}, nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.Ready)
}

// A cluster is deleted, and created on another cloudlet, while an app in it is created:
// the app belongs to the cloudlet where the cluster is.
func TestClusterMovesDuringCreateOfApp(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := newCoordinator(t, s)
	up(t, c, "oslo")
	createCluster(t, c, "c")
	s.OnceBefore(readClusterNote, func() {
		moveCluster(t, c, "c", "oslo")
	})
	_, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Cloudlets.Upgrade(ctx, "oslo", "v2", "")
	require.ErrorIs(t, err, edgecloud.ErrInUse)
	_, err = c.Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.NoError(t, err)
}

// The same, and the cloudlet where the cluster is then is upgraded before the commit of the
// app: the app is refused.
func TestClusterMovesToUpgradedCloudlet(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := newCoordinator(t, s)
	up(t, c, "oslo")
	createCluster(t, c, "c")
	s.OnceBefore(readCloudletNote, func() {
		moveCluster(t, c, "c", "oslo")
		s.OnceBefore(commit, func() {
			_, err := c.Cloudlets.Upgrade(ctx, "oslo", "v2", "")
			require.NoError(t, err)
		})
	})
	_, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
}

// A cluster is created and Ready after the create of an app has read that there is none:
// the app is refused, or depends on the cloudlet of the cluster.
func TestClusterAppearsDuringCreateOfApp(t *testing.T) {
	ctx := t.Context()
	app := edgecloud.AppSpec{ClusterInst: "c"}
	t.Run("by a request", func(t *testing.T) {
		s := scripttest.NewStore()
		c := newCoordinator(t, s)
		s.OnceBefore(commit, func() { createCluster(t, c, "c") })
		_, err := c.Apps.Create(ctx, "a", app, nil)
		require.NoError(t, err)
		_, err = c.Cloudlets.Upgrade(ctx, "b", "v2", "")
		require.ErrorIs(t, err, edgecloud.ErrInUse)
	})
	t.Run("by the manager", func(t *testing.T) {
		s := scripttest.NewStore()
		c := newCoordinator(t, s)
		s.OnceBefore(commit, func() {
			spec := edgecloud.ClusterSpec{Cloudlet: "b"}
			_, err := c.Clusters.Manager().Add(ctx, "c", edgecloud.Ready, edgecloud.User, spec, nil)
			require.NoError(t, err)
		})
		_, err := c.Apps.Create(ctx, "a", app, nil)
		require.ErrorIs(t, err, lifecycle.ErrPrecondition)
		_, err = c.Apps.Get(ctx, "a")
		require.ErrorIs(t, err, lifecycle.ErrNotFound)
	})
}

// The commit of an app is late: meanwhile its cluster was undone and created on another
// cloudlet. An upgrade there, which has found no instance in transition, is decided
// again.
func TestLateCommitOfApp(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := newCoordinator(t, s)
	up(t, c, "oslo")
	rec, err := c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.CreateError)
	paused, resume := make(chan struct{}), make(chan struct{})
	s.OnceBefore(commit, func() { close(paused); <-resume })
	var creating errgroup.Group
	creating.Go(func() error {
		_, err := c.Apps.Create(ctx, "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
		return err
	})
	<-paused
	_, err = c.Clusters.Undo(ctx, "c", 0, "")
	require.NoError(t, err)
	rec, err = c.Clusters.Create(ctx, "c", edgecloud.ClusterSpec{Cloudlet: "oslo"}, nil)
	require.NoError(t, err)
	report(t, c, rec, edgecloud.Ready)
	s.OnceBefore(commit, func() { close(resume); require.NoError(t, creating.Wait()) })
	_, err = c.Cloudlets.Upgrade(ctx, "oslo", "v2", "")
	require.ErrorIs(t, err, edgecloud.ErrInUse)
}

// Another CRM starts while an upgrade is being decided: the upgrade replaces that one.
func TestStartUpDuringUpgradeRequest(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := newCoordinator(t, s)
	createCluster(t, c, "c")
	starts := func(notifyID int64, version string) func() {
		return func() {
			_, err := c.Cloudlets.StartUp(ctx, "b", notifyID, version)
			require.NoError(t, err)
			require.NoError(t, c.Cloudlets.Gathered(ctx, "b", notifyID))
		}
	}
	s.OnceBefore(readCloudletNote, starts(7, "v9"))
	_, err := c.Cloudlets.Upgrade(ctx, "b", "v9", "")
	require.ErrorIs(t, err, lifecycle.ErrInvalid, "the CRM has that version now")
	s.OnceBefore(readCloudletNote, starts(8, "v3"))
	rec, err := c.Cloudlets.Upgrade(ctx, "b", "v10", "")
	require.NoError(t, err)
	require.Equal(t, edgecloud.CloudletSpec{Version: "v10", OldVersion: "v3"}, rec.Payload)
	require.NoError(t, c.Cloudlets.AckUpgrade(ctx, "b", 8))
}

// The CRM disconnects while an upgrade is being decided: the upgrade is refused.
func TestDisconnectDuringUpgradeRequest(t *testing.T) {
	ctx := t.Context()
	s := scripttest.NewStore()
	c := newCoordinator(t, s)
	createCluster(t, c, "c")
	s.OnceBefore(readCloudletNote, func() {
		dropped, err := c.Cloudlets.Disconnected(ctx, "b", 1)
		require.NoError(t, err)
		require.True(t, dropped)
	})
	_, err := c.Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	rec, err := c.Cloudlets.Upgrading(ctx, "b")
	require.NoError(t, err)
	require.Equal(t, edgecloud.CloudletReady, rec.State)
}

// The context of a delete ends between its two commits. The object returns to Ready at once,
// and other requests need not wait for the sweeper.
func TestDeleteIsCancelled(t *testing.T) {
	s := scripttest.NewStore()
	c := newCoordinator(t, s)
	createCluster(t, c, "c")
	createApp(t, c, "a")
	ctx, cancel := context.WithCancel(t.Context())
	commits := 0
	s.Before(func(c scripttest.Call) error {
		if c.Commit != nil {
			if commits++; commits == 2 {
				cancel()
			}
		}
		return nil
	})
	_, err := c.Apps.Delete(ctx, "a", nil)
	s.Before(nil)
	require.ErrorIs(t, err, context.Canceled)
	app, err := c.Apps.Get(t.Context(), "a")
	require.NoError(t, err)
	require.Equal(t, edgecloud.Ready, app.State)
	_, err = c.Apps.Delete(t.Context(), "a", nil)
	require.NoError(t, err)
}
