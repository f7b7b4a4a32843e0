package edgecloud_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/edgecloud"
)

// world is a platform that takes its time, and sees what runs side by side.
type world struct {
	mu       sync.Mutex
	there    map[lifecycle.Key]edgecloud.Order
	running  map[lifecycle.Key]edgecloud.Order
	overlaps []string
	most     int // running at once
	fails    func(edgecloud.Order) error
	takes    time.Duration
}

func newWorld() *world {
	return &world{
		there: map[lifecycle.Key]edgecloud.Order{}, running: map[lifecycle.Key]edgecloud.Order{}, takes: time.Minute,
		fails: func(edgecloud.Order) error { return nil },
	}
}

func (w *world) Do(_ context.Context, o edgecloud.Order) error {
	w.mu.Lock()
	for _, other := range w.running {
		if other.In == o.In && (other.Key.Machine != o.Key.Machine || other.Key == o.Key || o.Key.Machine == "clusterinst") {
			w.overlaps = append(w.overlaps, fmt.Sprintf("%s of %v beside %s of %v", o.Verb, o.Key, other.Verb, other.Key))
		}
	}
	w.running[o.Key] = o
	w.most = max(w.most, len(w.running))
	w.mu.Unlock()
	time.Sleep(w.takes) // of the bubble
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, o.Key)
	if err := w.fails(o); err != nil {
		return err
	}
	if o.Verb == edgecloud.Delete {
		delete(w.there, o.Key)
	} else {
		w.there[o.Key] = o
	}
	return nil
}

func (w *world) Present(context.Context) (keys []lifecycle.Key, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.there {
		keys = append(keys, k)
	}
	return keys, nil
}

// heard is what a CRM says.
type heard struct {
	mu    sync.Mutex
	lines []string
	lose  bool
}

func (h *heard) say(_ context.Context, _ lifecycle.Key, i edgecloud.Info) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lose {
		return errors.New("the network is away")
	}
	h.lines = append(h.lines, i.String())
	return nil
}

func clusterKey(id string) lifecycle.Key { return lifecycle.Key{Machine: "clusterinst", ID: id} }
func appKey(id string) lifecycle.Key     { return lifecycle.Key{Machine: "appinst", ID: id} }

func order(k lifecycle.Key, op lifecycle.OpID, verb edgecloud.Event) edgecloud.Order {
	return edgecloud.Order{Key: k, Operation: op, Verb: verb, In: "c"}
}

// The CRM does an order once, also one that comes again or too late.
func TestResourceManagerDoesAnOrderOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld(), &heard{}
		r := edgecloud.NewResourceManager(w, h.say)
		c := clusterKey("c")
		require.NoError(t, r.Handle(t.Context(), order(c, 1, edgecloud.Create)))
		require.NoError(t, r.Handle(t.Context(), order(c, 1, edgecloud.Create)))
		w.fails = func(edgecloud.Order) error { return errors.New("no quota") }
		require.NoError(t, r.Handle(t.Context(), order(c, 2, edgecloud.Update)))
		require.ErrorIs(t, r.Handle(t.Context(), order(c, 1, edgecloud.Create)), lifecycle.ErrStale)
		w.fails = func(edgecloud.Order) error { return nil }
		require.NoError(t, r.Handle(t.Context(), order(c, 3, edgecloud.Delete)))
		require.ErrorIs(t, r.Handle(t.Context(), order(c, 2, edgecloud.Update)), lifecycle.ErrStale)
		require.NoError(t, r.Handle(t.Context(), order(c, 3, edgecloud.Delete)))
		require.Equal(t, []string{
			"c is Creating in operation 1", "c is Ready in operation 1", "c is Ready in operation 1",
			"c is Updating in operation 2", "c is UpdateError in operation 2",
			"c is Deleting in operation 3", "c is NotPresent in operation 3", "c is NotPresent in operation 3",
		}, h.lines)
		require.Empty(t, w.there)
		all, err := r.Account(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

// What the network lost is in the account, with its operation; after a crash only
// what is there is.
func TestResourceManagerAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld(), &heard{lose: true}
		r := edgecloud.NewResourceManager(w, h.say)
		require.Error(t, r.Handle(t.Context(), order(clusterKey("c"), 1, edgecloud.Create)))
		w.fails = func(edgecloud.Order) error { return errors.New("no image") }
		require.Error(t, r.Handle(t.Context(), order(appKey("a"), 1, edgecloud.Create)))
		w.fails = func(edgecloud.Order) error { return nil }
		require.Error(t, r.Handle(t.Context(), order(clusterKey("d"), 4, edgecloud.Delete)))
		running := make(chan error)
		go func() { running <- r.Handle(t.Context(), order(appKey("b"), 1, edgecloud.Create)) }()
		synctest.Wait()
		all, err := r.Account(t.Context())
		require.NoError(t, err)
		require.Equal(t, edgecloud.Account{
			Clusters: []edgecloud.Info{
				{ID: "c", Operation: 1, State: edgecloud.Ready}, {ID: "d", Operation: 4, State: edgecloud.NotPresent},
			},
			Apps: []edgecloud.Info{
				{ID: "a", Operation: 1, State: edgecloud.CreateError, Errors: []string{"no image"}},
				{ID: "b", Operation: 1, State: edgecloud.Creating},
			},
		}, all)
		require.Error(t, <-running)
		all, err = edgecloud.NewResourceManager(w, h.say).Account(t.Context())
		require.NoError(t, err)
		require.Equal(t, edgecloud.Account{
			Clusters: []edgecloud.Info{{ID: "c", State: edgecloud.Ready}},
			Apps:     []edgecloud.Info{{ID: "b", State: edgecloud.Ready}},
		}, all)
		// What was lost since is not there.
		w.there = map[lifecycle.Key]edgecloud.Order{}
		all, err = r.Account(t.Context())
		require.NoError(t, err)
		require.Len(t, all.Clusters, 1)
		require.Equal(t, edgecloud.NotPresent, all.Clusters[0].State)
	})
}

// What is gone is remembered as long as no more than so many others went since,
// and one that is there again counts as what is there.
func TestResourceManagerRemembersWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld(), &heard{}
		r := edgecloud.NewResourceManager(w, h.say)
		edgecloud.Remember(r, 2)
		handle := func(id string, op lifecycle.OpID, verb edgecloud.Event) error {
			return r.Handle(t.Context(), order(clusterKey(id), op, verb))
		}
		for _, id := range []string{"a", "b"} {
			require.NoError(t, handle(id, 1, edgecloud.Create))
			require.NoError(t, handle(id, 2, edgecloud.Delete))
		}
		require.NoError(t, handle("a", 3, edgecloud.Create))
		for op := lifecycle.OpID(1); op <= 2; op++ {
			require.ErrorIs(t, handle("a", op, edgecloud.Update), lifecycle.ErrStale)
		}
		require.ErrorIs(t, handle("b", 1, edgecloud.Create), lifecycle.ErrStale)
		require.NoError(t, handle("b", 2, edgecloud.Delete), "said again, and remembered once")
		// Only the first delete of a is forgotten, which counts no more.
		require.NoError(t, handle("c", 2, edgecloud.Delete))
		require.ErrorIs(t, handle("a", 2, edgecloud.Delete), lifecycle.ErrStale)
		require.ErrorIs(t, handle("b", 1, edgecloud.Create), lifecycle.ErrStale)
		require.ErrorIs(t, handle("c", 1, edgecloud.Create), lifecycle.ErrStale)
		require.Len(t, w.there, 1)
		// Then that of b, and an order from before it is done.
		require.NoError(t, handle("d", 2, edgecloud.Delete))
		require.ErrorIs(t, handle("c", 1, edgecloud.Create), lifecycle.ErrStale)
		require.NoError(t, handle("b", 1, edgecloud.Create))
		require.Equal(t, 4, edgecloud.Known(r), "a and b are there, c and d are gone")
	})
}

// What was forgotten while a later order waited does not come back with it.
func TestResourceManagerForgetsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := edgecloud.NewResourceManager(newWorld(), (&heard{}).say)
		edgecloud.Remember(r, 1)
		require.NoError(t, r.Handle(t.Context(), order(clusterKey("b"), 2, edgecloud.Delete)))
		ctx, stop := context.WithCancel(t.Context())
		ended := map[string]chan error{}
		for _, id := range []string{"d", "e", "b"} { // one after the other: they are in one place
			ended[id] = make(chan error, 1)
			go func() { ended[id] <- r.Handle(ctx, order(clusterKey(id), 3, edgecloud.Delete)) }()
			synctest.Wait()
		}
		require.NoError(t, <-ended["d"])
		synctest.Wait() // e has begun
		stop()
		require.ErrorIs(t, <-ended["b"], context.Canceled)
		require.Equal(t, 2, edgecloud.Known(r), "d and e")
		require.NoError(t, <-ended["e"])
		require.Equal(t, 1, edgecloud.Known(r), "e")
	})
}

// The outcome of a delete that is asked for again and not heard is in the account
// again.
func TestResourceManagerTellsAgainWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		r := edgecloud.NewResourceManager(newWorld(), h.say)
		del := order(clusterKey("c"), 2, edgecloud.Delete)
		accounts := func() []edgecloud.Info {
			all, err := r.Account(t.Context())
			require.NoError(t, err)
			return all.Clusters
		}
		require.NoError(t, r.Handle(t.Context(), del))
		require.Empty(t, accounts())
		h.lose = true
		require.Error(t, r.Handle(t.Context(), del))
		require.Equal(t, []edgecloud.Info{{ID: "c", Operation: 2, State: edgecloud.NotPresent}}, accounts())
		h.lose = false
		require.NoError(t, r.Handle(t.Context(), del))
		require.Empty(t, accounts())
	})
}

// An order that is given up while it waits leaves what was known before it, also
// when others come and go before and after it.
func TestResourceManagerTakesAnOrderBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld(), &heard{}
		r := edgecloud.NewResourceManager(w, h.say)
		c := clusterKey("c")
		require.NoError(t, r.Handle(t.Context(), order(c, 1, edgecloud.Create)))
		begin := func(op lifecycle.OpID, verb edgecloud.Event) (stop func(), ended chan error) {
			ctx, cancel := context.WithCancel(t.Context())
			ended = make(chan error, 1)
			go func() { ended <- r.Handle(ctx, order(c, op, verb)) }()
			synctest.Wait()
			return cancel, ended
		}
		stop2, ended2 := begin(2, edgecloud.Delete) // runs
		stop3, ended3 := begin(3, edgecloud.Create)
		stop4, ended4 := begin(4, edgecloud.Update)
		stop3()
		require.ErrorIs(t, <-ended3, context.Canceled)
		stop4()
		require.ErrorIs(t, <-ended4, context.Canceled)
		require.ErrorIs(t, r.Handle(t.Context(), order(c, 1, edgecloud.Create)), lifecycle.ErrStale)
		require.NoError(t, <-ended2)
		stop2()
		require.Empty(t, w.there)
		require.ErrorIs(t, r.Handle(t.Context(), order(c, 1, edgecloud.Create)), lifecycle.ErrStale)
		require.NoError(t, r.Handle(t.Context(), order(c, 2, edgecloud.Delete)))
		require.Equal(t, "c is NotPresent in operation 2", h.lines[len(h.lines)-1])
		// What was taken back is done when it comes again.
		require.NoError(t, r.Handle(t.Context(), order(c, 3, edgecloud.Create)))
		require.EqualValues(t, 3, w.there[c].Operation)
	})
}

// Whatever is asked at once: nothing runs beside what it depends on, and apps of
// one cluster run side by side.
func TestResourceManagerRunsNothingInParallelThatDepends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld(), &heard{}
		r := edgecloud.NewResourceManager(w, h.say)
		var all sync.WaitGroup
		for op := lifecycle.OpID(1); op <= 5; op++ {
			all.Go(func() { _ = r.Handle(t.Context(), order(clusterKey("c"), op, edgecloud.Update)) })
			for i := range 4 {
				all.Go(func() { _ = r.Handle(t.Context(), order(appKey(fmt.Sprint(i)), op, edgecloud.Update)) })
			}
		}
		all.Wait()
		require.Empty(t, w.overlaps)
		require.Greater(t, w.most, 1, "apps run side by side")
		for _, k := range []lifecycle.Key{clusterKey("c"), appKey("0"), appKey("3")} {
			require.EqualValues(t, 5, w.there[k].Operation, "the last order counts")
		}
	})
}

func TestResourceManagerRefuses(t *testing.T) {
	r := edgecloud.NewResourceManager(newWorld(), (&heard{}).say)
	for _, o := range []edgecloud.Order{
		{},
		order(clusterKey("c"), 0, edgecloud.Create), order(clusterKey(""), 1, edgecloud.Create),
		order(clusterKey("c"), 1, edgecloud.Undo),
		{Key: appKey("a"), Operation: 1, Verb: edgecloud.Create},
		{Key: appKey("a"), Operation: 1, Verb: edgecloud.Create, In: string(make([]byte, 200))},
	} {
		require.ErrorIs(t, r.Handle(t.Context(), o), lifecycle.ErrInvalid)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	w, h := newWorld(), &heard{}
	r = edgecloud.NewResourceManager(w, h.say)
	require.ErrorIs(t, r.Handle(ended, order(clusterKey("c"), 1, edgecloud.Create)), context.Canceled)
	require.Empty(t, h.lines)
	all, err := r.Account(t.Context())
	require.NoError(t, err)
	require.Empty(t, all, "it was not begun")
	require.Panics(t, func() { edgecloud.NewResourceManager(nil, h.say) })
	require.Panics(t, func() { edgecloud.NewCoordinator(nil, nil) })
}
