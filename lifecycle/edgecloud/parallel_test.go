package edgecloud_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// judge is a store that looks at the world after every commit: whatever changes
// in parallel and must not is seen there, and nowhere else for sure.
type judge struct {
	*lifecycle.MemoryStore
	mu    sync.Mutex
	state map[lifecycle.Key]string
	wrong []string
	begun map[string]int // by what it depends on
}

var resting = []string{"", "NotPresent", "Ready", "CreateError", "UpdateError", "DeleteError"}

func (j *judge) Commit(ctx context.Context, c *lifecycle.Commit) error {
	runtime.Gosched()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.MemoryStore.Commit(ctx, c); err != nil {
		return err
	}
	for i := range c.Changes {
		to := &c.Changes[i].To
		before := j.state[to.Key]
		if j.state[to.Key] = to.State; c.Changes[i].Remove {
			delete(j.state, to.Key)
		}
		begins := slices.Contains(resting, before) && !slices.Contains(resting, to.State)
		switch to.Machine {
		case "clusterinst", "appinst":
			if begins {
				j.begun[to.Machine]++
				j.demand(to.Key, lifecycle.Key{Machine: "cloudlet-upgrade", ID: "b"}, "Ready")
			}
			if begins && to.Machine == "appinst" {
				j.demand(to.Key, clusterKey("c"), resting...)
			}
			if begins && to.Machine == "clusterinst" && to.State == "UpdateRequested" {
				j.rest(to.Key, "appinst")
			}
			if to.State == "DeleteRequested" && to.Machine == "clusterinst" {
				for k := range j.state {
					if k.Machine == "appinst" {
						j.wrong = append(j.wrong, fmt.Sprintf("%v goes while %v is there", to.Key, k))
					}
				}
			}
		case "cloudlet-upgrade":
			if to.State == "UpdateRequested" {
				j.begun[to.Machine]++
				j.rest(to.Key, "appinst")
				j.rest(to.Key, "clusterinst")
			}
		}
	}
	return nil
}

func (j *judge) demand(who, k lifecycle.Key, states ...string) {
	if s := j.state[k]; !slices.Contains(states, s) {
		j.wrong = append(j.wrong, fmt.Sprintf("%v begins while %v is %s", who, k, s))
	}
}

func (j *judge) rest(who lifecycle.Key, machine string) {
	for k, s := range j.state {
		if k.Machine == machine && !slices.Contains(resting, s) {
			j.wrong = append(j.wrong, fmt.Sprintf("%v begins while %v is %s", who, k, s))
		}
	}
}

// Users, CRMs and administrators at once, by two coordinators on one store: what
// depends on each other never changes at the same time.
func TestNothingDependentInParallel(t *testing.T) {
	j := &judge{MemoryStore: lifecycle.NewMemoryStore(), state: map[lifecycle.Key]string{}, begun: map[string]int{}}
	ctx := t.Context()
	both := []*edgecloud.Coordinator{edgecloud.NewCoordinator(j, nil), edgecloud.NewCoordinator(j, nil)}
	up(t, both[0], "b")
	ready(t, both[0], "c")
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
					answer(ctx, c) // or hardly ever would all be at rest
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
	// Nothing is left behind: what was asked for can be answered, and then all
	// is at rest.
	answer(ctx, both[0])
	_, err := both[1].Cloudlets.Upgrade(ctx, "b", "v2", "")
	require.NoError(t, err)
	require.Empty(t, j.wrong)
	t.Log(j.begun)
	for _, machine := range []string{"clusterinst", "appinst", "cloudlet-upgrade"} {
		require.NotZero(t, j.begun[machine], "%s: nothing happened", machine)
	}
}

// answer is a CRM that does whatever it is asked for at once.
func answer(ctx context.Context, c *edgecloud.Coordinator) {
	orders, _ := c.Orders(ctx, "b")
	for _, o := range orders {
		says := edgecloud.Ready
		if o.Verb == edgecloud.Delete {
			says = edgecloud.NotPresent
		}
		_, _ = c.Answer(ctx, o.Key, edgecloud.Info{Operation: o.Operation, State: says})
	}
}

// up brings a cloudlet up.
func up(t *testing.T, c *edgecloud.Coordinator, id string) {
	t.Helper()
	_, err := c.Cloudlets.StartUp(t.Context(), id, 1, "v1")
	require.NoError(t, err)
	require.NoError(t, c.Cloudlets.Acknowledge(t.Context(), id, 1))
	require.NoError(t, c.Cloudlets.Gathered(t.Context(), id, 1))
}

// ready makes a cluster on cloudlet b.
func ready(t *testing.T, c *edgecloud.Coordinator, id string) {
	t.Helper()
	rec, err := c.Clusters.Create(t.Context(), id, edgecloud.ClusterSpec{Cloudlet: "b", Nodes: 1}, nil)
	require.NoError(t, err)
	v, err := c.Clusters.Receive(t.Context(), edgecloud.Info{ID: id, Operation: rec.Operation, State: edgecloud.Ready})
	require.NoError(t, err)
	require.Equal(t, lifecycle.Applied, v)
}

// Of two deletes that look for referrers at once, the one that loses does nothing
// to the mark of the one that wins: not even if the winner's was made while the
// loser looked.
func TestTheLosingDeleteLeavesTheWinnersMark(t *testing.T) {
	s := &pausing{MemoryStore: lifecycle.NewMemoryStore()}
	c := edgecloud.NewCoordinator(s, nil)
	up(t, c, "b")
	ready(t, c, "c")
	var winner edgecloud.Record[edgecloud.ClusterSpec]
	s.at = func() { // the loser has its mark and is about to look
		s.at = nil
		_, err := c.Clusters.Manager().Fire(t.Context(), "c", edgecloud.TimedOut, "sweeper", nil)
		require.NoError(t, err)
		winner, err = c.Clusters.Manager().Fire(t.Context(), "c", edgecloud.Delete, edgecloud.User, nil)
		require.NoError(t, err)
	}
	_, err := c.Clusters.Delete(t.Context(), "c", nil)
	require.ErrorIs(t, err, lifecycle.ErrStale)
	now, err := c.Clusters.Get(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, winner, now, "the winner's mark")
	require.Equal(t, edgecloud.DeletePrepare, now.State)

	// Nor if the loser finds that it must go back.
	_, err = c.Clusters.Manager().Fire(t.Context(), "c", edgecloud.PrepareFailed, edgecloud.Controller, nil)
	require.NoError(t, err)
	rec, err := c.Apps.Create(t.Context(), "a", edgecloud.AppSpec{ClusterInst: "c"}, nil)
	require.NoError(t, err)
	_, err = c.Apps.Receive(t.Context(), edgecloud.Info{ID: "a", Operation: rec.Operation, State: edgecloud.Ready})
	require.NoError(t, err)
	s.at = func() {
		s.at = nil
		_, err := c.Clusters.Manager().Fire(t.Context(), "c", edgecloud.TimedOut, "sweeper", nil)
		require.NoError(t, err)
		winner, err = c.Clusters.Manager().Fire(t.Context(), "c", edgecloud.Delete, edgecloud.User, nil)
		require.NoError(t, err)
	}
	_, err = c.Clusters.Delete(t.Context(), "c", nil)
	require.ErrorIs(t, err, edgecloud.ErrInUse)
	now, err = c.Clusters.Get(t.Context(), "c")
	require.NoError(t, err)
	require.Equal(t, winner, now)
}

// pausing calls a function when a delete that has its mark is about to look who is
// in a ClusterInst.
type pausing struct {
	*lifecycle.MemoryStore
	at func()
}

func (p *pausing) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if p.at != nil && q.Machine == "appinst-ref" {
		p.at()
	}
	return p.MemoryStore.List(ctx, q)
}

// An override is of one call: others that are under way at the same moment are
// not allowed what it was allowed, and it is not written to.
func TestOverridesAreHeldPerCall(t *testing.T) {
	c := edgecloud.NewCoordinator(lifecycle.NewMemoryStore(), nil)
	up(t, c, "b")
	call := &edgecloud.Call{Override: edgecloud.IgnoreCRM, Reason: "drill"}
	before := *call
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			rec, err := c.Clusters.Create(t.Context(), fmt.Sprintf("free%d", i), edgecloud.ClusterSpec{Cloudlet: "b"}, call)
			if err != nil || rec.State != edgecloud.Ready {
				t.Errorf("%v %v", rec.State, err)
			}
		})
		all.Go(func() {
			rec, err := c.Clusters.Create(t.Context(), fmt.Sprintf("asked%d", i), edgecloud.ClusterSpec{Cloudlet: "b"}, nil)
			if err != nil || rec.State != edgecloud.CreateRequested {
				t.Errorf("%v %v", rec.State, err)
			}
		})
	}
	all.Wait()
	require.Equal(t, before, *call)
}
