package edgecloud_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// platform takes a minute for every order, and records orders that run at the same time
// and must not.
type platform struct {
	mu       sync.Mutex
	present  map[lifecycle.Key]edgecloud.Order
	running  map[lifecycle.Key]edgecloud.Order
	overlaps []string
	most     int   // orders that ran at the same time
	failure  error // of every order
	results  json.RawMessage
}

func (p *platform) Do(_ context.Context, o edgecloud.Order) (json.RawMessage, error) {
	p.mu.Lock()
	for _, other := range p.running {
		if other.In == o.In && (other.Key.Machine != o.Key.Machine || other.Key == o.Key || o.Key.Machine == "clusterinst") {
			p.overlaps = append(p.overlaps, fmt.Sprintf("%s of %v and %s of %v", o.Verb, o.Key, other.Verb, other.Key))
		}
	}
	p.running[o.Key] = o
	p.most = max(p.most, len(p.running))
	p.mu.Unlock()
	time.Sleep(time.Minute) // virtual time
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, o.Key)
	switch {
	case p.failure != nil:
		return nil, p.failure
	case o.Verb == edgecloud.Delete:
		delete(p.present, o.Key)
	default:
		p.present[o.Key] = o
	}
	return p.results, nil
}

func (p *platform) Present(context.Context) (keys []lifecycle.Key, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.present {
		keys = append(keys, k)
	}
	return keys, nil
}

// network receives reports, or loses them.
type network struct {
	mu      sync.Mutex
	reports []string
	down    atomic.Bool
}

func (n *network) send(_ context.Context, _ lifecycle.Key, r edgecloud.Report) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down.Load() {
		return errors.New("the network is down")
	}
	n.reports = append(n.reports, fmt.Sprintf("%s is %s in operation %d", r.ID, r.State, r.Operation))
	return nil
}

func newResourceManager(t testing.TB) (*edgecloud.ResourceManager, *platform, *network) {
	t.Helper()
	p, n := &platform{present: map[lifecycle.Key]edgecloud.Order{}, running: map[lifecycle.Key]edgecloud.Order{}}, &network{}
	r, err := edgecloud.NewResourceManager(p, n.send)
	require.NoError(t, err)
	return r, p, n
}

func order(k lifecycle.Key, op lifecycle.OpID, verb edgecloud.Event) edgecloud.Order {
	return edgecloud.Order{Key: k, Operation: op, Verb: verb, In: "c"}
}

func TestHandleDoesAnOrderOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p, n := newResourceManager(t)
		ctx, c := t.Context(), clusterKey("c")
		require.NoError(t, r.Handle(ctx, order(c, 1, edgecloud.Create)))
		require.NoError(t, r.Handle(ctx, order(c, 1, edgecloud.Create)))
		p.failure = errors.New("no quota")
		require.NoError(t, r.Handle(ctx, order(c, 2, edgecloud.Update)))
		require.ErrorIs(t, r.Handle(ctx, order(c, 1, edgecloud.Create)), lifecycle.ErrStale)
		p.failure = nil
		require.NoError(t, r.Handle(ctx, order(c, 3, edgecloud.Delete)))
		require.ErrorIs(t, r.Handle(ctx, order(c, 2, edgecloud.Update)), lifecycle.ErrStale)
		require.NoError(t, r.Handle(ctx, order(c, 3, edgecloud.Delete)))
		require.Equal(t, []string{
			"c is Creating in operation 1", "c is Ready in operation 1", "c is Ready in operation 1",
			"c is Updating in operation 2", "c is UpdateError in operation 2",
			"c is Deleting in operation 3", "c is NotPresent in operation 3", "c is NotPresent in operation 3",
		}, n.reports)
		require.Empty(t, p.present)
		all, err := r.Account(ctx)
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

// Lost reports are in the account with their operations. After a crash the account has
// only the instances that exist.
func TestAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p, n := newResourceManager(t)
		ctx := t.Context()
		n.down.Store(true)
		require.Error(t, r.Handle(ctx, order(clusterKey("c"), 1, edgecloud.Create)))
		p.failure = errors.New("no image")
		require.Error(t, r.Handle(ctx, order(appKey("a"), 1, edgecloud.Create)))
		p.failure = nil
		require.Error(t, r.Handle(ctx, order(clusterKey("d"), 4, edgecloud.Delete)))
		var running errgroup.Group
		running.Go(func() error { return r.Handle(ctx, order(appKey("b"), 1, edgecloud.Create)) })
		synctest.Wait()
		all, err := r.Account(ctx)
		require.NoError(t, err)
		require.Equal(t, edgecloud.Account{
			Clusters: []edgecloud.Report{
				{ID: "c", Operation: 1, State: edgecloud.Ready}, {ID: "d", Operation: 4, State: edgecloud.NotPresent},
			},
			Apps: []edgecloud.Report{
				{ID: "a", Operation: 1, State: edgecloud.CreateError, Errors: []string{"no image"}},
				{ID: "b", Operation: 1, State: edgecloud.Creating},
			},
		}, all)
		require.Error(t, running.Wait())
		crashed, err := edgecloud.NewResourceManager(p, n.send)
		require.NoError(t, err)
		all, err = crashed.Account(ctx)
		require.NoError(t, err)
		require.Equal(t, edgecloud.Account{
			Clusters: []edgecloud.Report{{ID: "c", State: edgecloud.Ready}},
			Apps:     []edgecloud.Report{{ID: "b", State: edgecloud.Ready}},
		}, all)
		clear(p.present) // lost by the platform
		all, err = r.Account(ctx)
		require.NoError(t, err)
		require.Len(t, all.Clusters, 1)
		require.Equal(t, edgecloud.NotPresent, all.Clusters[0].State)
	})
}

// An order from before a removal is stale until as many other removals were reported.
func TestRemembersRemovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p, _ := newResourceManager(t)
		edgecloud.SetRemembered(r, 2)
		handle := func(id string, op lifecycle.OpID, verb edgecloud.Event) error {
			return r.Handle(t.Context(), order(clusterKey(id), op, verb))
		}
		for _, id := range []string{"a", "b"} {
			require.NoError(t, handle(id, 1, edgecloud.Create))
			require.NoError(t, handle(id, 2, edgecloud.Delete))
		}
		require.NoError(t, handle("a", 3, edgecloud.Create))
		require.ErrorIs(t, handle("a", 2, edgecloud.Update), lifecycle.ErrStale)
		require.ErrorIs(t, handle("b", 1, edgecloud.Create), lifecycle.ErrStale)
		require.NoError(t, handle("b", 2, edgecloud.Delete), "repeated, and remembered once")
		require.NoError(t, handle("c", 2, edgecloud.Delete)) // forgets the removal of a, which exists
		require.ErrorIs(t, handle("a", 2, edgecloud.Delete), lifecycle.ErrStale)
		require.ErrorIs(t, handle("b", 1, edgecloud.Create), lifecycle.ErrStale)
		require.Len(t, p.present, 1)
		require.NoError(t, handle("d", 2, edgecloud.Delete)) // forgets the removal of b
		require.ErrorIs(t, handle("c", 1, edgecloud.Create), lifecycle.ErrStale)
		require.NoError(t, handle("b", 1, edgecloud.Create))
		require.Equal(t, 4, edgecloud.Known(r), "a and b exist, c and d are remembered")
	})
}

// The lost report of a repeated delete is in the account until it is sent.
func TestAccountOfRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, n := newResourceManager(t)
		remove := order(clusterKey("c"), 2, edgecloud.Delete)
		account := func() []edgecloud.Report {
			all, err := r.Account(t.Context())
			require.NoError(t, err)
			return all.Clusters
		}
		require.NoError(t, r.Handle(t.Context(), remove))
		require.Empty(t, account())
		n.down.Store(true)
		require.Error(t, r.Handle(t.Context(), remove))
		require.Equal(t, []edgecloud.Report{{ID: "c", Operation: 2, State: edgecloud.NotPresent}}, account())
		n.down.Store(false)
		require.NoError(t, r.Handle(t.Context(), remove))
		require.Empty(t, account())
	})
}

// A repeated order reads the progress Creating and stalls. Meanwhile the order is done,
// and its report is lost. The repeated order then sends what it has read, and the account
// has the outcome.
func TestRepeatedOrderKeepsTheOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, n := newResourceManager(t)
		c := clusterKey("c")
		clusters := func() []edgecloud.Report {
			all, err := r.Account(t.Context())
			require.NoError(t, err)
			return all.Clusters
		}
		var running errgroup.Group
		running.Go(func() error { return r.Handle(t.Context(), order(c, 5, edgecloud.Create)) })
		synctest.Wait()
		read := clusters()
		require.Equal(t, []edgecloud.Report{{ID: "c", Operation: 5, State: edgecloud.Creating}}, read)
		n.down.Store(true)
		require.Error(t, running.Wait())
		n.down.Store(false)
		require.NoError(t, edgecloud.Deliver(t, r, c, read[0]))
		require.Equal(t, []edgecloud.Report{{ID: "c", Operation: 5, State: edgecloud.Ready}}, clusters())
	})
}

// A repeated delete reads its outcome and stalls. Meanwhile the object is created again. The
// outcome that is sent late does not replace the progress of the later order.
func TestRepeatedDeleteKeepsTheLaterOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, _ := newResourceManager(t)
		c, ctx := clusterKey("c"), t.Context()
		require.NoError(t, r.Handle(ctx, order(c, 2, edgecloud.Delete)))
		require.NoError(t, r.Handle(ctx, order(c, 3, edgecloud.Create)))
		require.NoError(t, edgecloud.Deliver(t, r, c, edgecloud.Report{ID: "c", Operation: 2, State: edgecloud.NotPresent}))
		all, err := r.Account(ctx)
		require.NoError(t, err)
		require.Equal(t, []edgecloud.Report{{ID: "c", Operation: 3, State: edgecloud.Ready}}, all.Clusters)
		require.ErrorIs(t, r.Handle(ctx, order(c, 2, edgecloud.Delete)), lifecycle.ErrStale)
	})
}

// An order whose context ends while it waits has no effect: it can be sent again, and
// earlier orders stay known.
func TestHandleIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p, n := newResourceManager(t)
		ctx, c := t.Context(), clusterKey("c")
		require.NoError(t, r.Handle(ctx, order(c, 1, edgecloud.Create)))
		waiting, stop := context.WithCancel(ctx)
		var second, third, fourth errgroup.Group
		second.Go(func() error { return r.Handle(ctx, order(c, 2, edgecloud.Delete)) })
		synctest.Wait() // 2 runs
		third.Go(func() error { return r.Handle(waiting, order(c, 3, edgecloud.Create)) })
		fourth.Go(func() error { return r.Handle(waiting, order(c, 4, edgecloud.Update)) })
		synctest.Wait()
		stop()
		require.ErrorIs(t, third.Wait(), context.Canceled)
		require.ErrorIs(t, fourth.Wait(), context.Canceled)
		require.ErrorIs(t, r.Handle(ctx, order(c, 1, edgecloud.Create)), lifecycle.ErrStale)
		require.NoError(t, second.Wait())
		require.Empty(t, p.present)
		require.NoError(t, r.Handle(ctx, order(c, 2, edgecloud.Delete)))
		require.Equal(t, "c is NotPresent in operation 2", n.reports[len(n.reports)-1])
		require.NoError(t, r.Handle(ctx, order(c, 3, edgecloud.Create)))
		require.EqualValues(t, 3, p.present[c].Operation)
	})
}

// An order that is sent twice while another one runs is carried out once.
func TestHandleOfWaitingOrderTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, n := newResourceManager(t)
		c := clusterKey("c")
		var all errgroup.Group
		for _, op := range []lifecycle.OpID{1, 2, 2} {
			all.Go(func() error { return r.Handle(t.Context(), order(c, op, edgecloud.Update)) })
			synctest.Wait()
		}
		require.NoError(t, all.Wait())
		require.Equal(t, 1, strings.Count(strings.Join(n.reports, ";"), "c is Updating in operation 2"))
	})
}

// Dependent orders never run at the same time. Orders of different apps do.
func TestHandleInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p, _ := newResourceManager(t)
		var all sync.WaitGroup
		for _, app := range []string{"4", "5"} {
			all.Go(func() { _ = r.Handle(t.Context(), order(appKey(app), 1, edgecloud.Update)) })
		}
		synctest.Wait()
		require.Equal(t, 2, p.most, "apps run at the same time")
		for op := lifecycle.OpID(1); op <= 5; op++ {
			all.Go(func() { _ = r.Handle(t.Context(), order(clusterKey("c"), op, edgecloud.Update)) })
			for i := range 4 {
				all.Go(func() { _ = r.Handle(t.Context(), order(appKey(fmt.Sprint(i)), op, edgecloud.Update)) })
			}
		}
		all.Wait()
		require.Empty(t, p.overlaps)
		for _, k := range []lifecycle.Key{clusterKey("c"), appKey("0"), appKey("3")} {
			require.EqualValues(t, 5, p.present[k].Operation, "the last order counts")
		}
	})
}

// panicking is a platform that panics.
type panicking struct{ failingPlatform }

func (p panicking) Do(context.Context, edgecloud.Order) (json.RawMessage, error) { panic(p.text) }

// A panic of the platform reaches the caller. The order has failed: its outcome is reported,
// and is in the account.
func TestPlatformPanics(t *testing.T) {
	n, c := &network{}, clusterKey("c")
	r, err := edgecloud.NewResourceManager(panicking{failingPlatform{"broken"}}, n.send)
	require.NoError(t, err)
	require.PanicsWithValue(t, "broken", func() { _ = r.Handle(t.Context(), order(c, 1, edgecloud.Create)) })
	require.NoError(t, r.Handle(t.Context(), order(c, 1, edgecloud.Create)))
	require.Equal(t, []string{
		"c is Creating in operation 1", "c is CreateError in operation 1", "c is CreateError in operation 1",
	}, n.reports)
	all, err := r.Account(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"the platform has panicked"}, all.Clusters[0].Errors)
}

// Instances have ids of any length and any characters, like their records.
func TestHandleOfLongIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p, _ := newResourceManager(t)
		ids := []string{strings.Repeat("x", lifecycle.MaxID), strings.Repeat("/", lifecycle.MaxID), strings.Repeat("ж", lifecycle.MaxID/2)}
		for _, id := range ids {
			for _, key := range []lifecycle.Key{clusterKey(id), appKey(id)} {
				o := order(key, 1, edgecloud.Create)
				o.In = id
				require.NoError(t, r.Handle(t.Context(), o))
			}
		}
		require.Len(t, p.present, 2*len(ids))
	})
}

func TestHandleRefuses(t *testing.T) {
	r, _, n := newResourceManager(t)
	for name, o := range map[string]edgecloud.Order{
		"empty":        {},
		"no operation": order(clusterKey("c"), 0, edgecloud.Create),
		"no id":        order(clusterKey(""), 1, edgecloud.Create),
		"no machine":   order(lifecycle.Key{ID: "a"}, 1, edgecloud.Create),
		"no instance":  order(lifecycle.Key{Machine: "cloudlet-create", ID: "b"}, 1, edgecloud.Create),
		"other verb":   order(clusterKey("c"), 1, edgecloud.Undo),
		"no cluster":   {Key: appKey("a"), Operation: 1, Verb: edgecloud.Create},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, r.Handle(t.Context(), o), lifecycle.ErrInvalid) })
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, r.Handle(ended, order(clusterKey("c"), 1, edgecloud.Create)), context.Canceled)
	require.Empty(t, n.reports)
	all, err := r.Account(t.Context())
	require.NoError(t, err)
	require.Empty(t, all, "the order was not started")
	_, err = edgecloud.NewResourceManager(nil, n.send)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// A platform returns objects of other kinds. They are no AppInsts.
func TestAccountOfOtherKinds(t *testing.T) {
	r, p, _ := newResourceManager(t)
	p.present = map[lifecycle.Key]edgecloud.Order{{Machine: "network", ID: "a"}: {}, clusterKey("c"): {}}
	all, err := r.Account(t.Context())
	require.NoError(t, err)
	require.Equal(t, edgecloud.Account{Clusters: []edgecloud.Report{{ID: "c", State: edgecloud.Ready}}}, all)
}
