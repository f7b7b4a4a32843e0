package prometheus_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	metrics "github.com/interlock-go/interlock/lifecycle/prometheus"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

var vmTable = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "vm", Initial: "absent", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[string]{
		{Name: "absent", Kind: fsm.Absent},
		{Name: "creating", Kind: fsm.Transitional},
		{Name: "running"},
		{Name: "failed", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move("absent", "create", "creating").By("user"),
		fsm.Move("creating", "done", "running").By("worker"),
		fsm.Move("creating", "fail", "failed").By("worker"),
		fsm.Move("creating", "late", "failed").After(time.Minute),
		fsm.Move("running", "delete", "absent").AlsoFrom("failed").By("user"),
		fsm.Ignore("running", "done").By("worker"),
	),
})

// faulty is a store whose next commits meet errors.
type faulty struct {
	*lifecycle.MemoryStore
	errs  []error
	lists int
	hang  bool
}

func (s *faulty) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if len(s.errs) > 0 {
		err := s.errs[0]
		s.errs = s.errs[1:]
		return err
	}
	return s.MemoryStore.Commit(ctx, c)
}

func (s *faulty) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	s.lists++
	if s.hang {
		<-ctx.Done()
		return nil, lifecycle.Ended(ctx)
	}
	return s.MemoryStore.List(ctx, q)
}

// world is a service with everything that the collector measures.
type world struct {
	registry *client.Registry
	store    *faulty
	vms      *lifecycle.Manager[string, string, struct{}]
	tree     *lock.Tree
}

func newWorld(t *testing.T) *world {
	w := &world{registry: client.NewPedanticRegistry(), store: &faulty{MemoryStore: lifecycle.NewMemoryStore()}}
	collector := metrics.New()
	w.registry.MustRegister(collector)
	work := queue.Must(&queue.Config[lifecycle.Key]{Observer: metrics.QueueObserver[lifecycle.Key](collector, "work")})
	w.vms = lifecycle.Must(vmTable, w.store, &lifecycle.Config[string]{
		Queue: work, WorkerActor: "worker", Done: []string{"done"}, Failed: []string{"fail"},
		Observer: collector.Observer(vmTable.Table()),
	})
	w.tree = lock.Must(&lock.Config{Observer: collector.LockObserver("sites")})
	collector.AddManager("vm", w.vms)
	collector.AddQueue("work", work)
	collector.AddLocks("sites", w.tree)
	return w
}

// TestExposition compares everything that a scrape reads. UPDATE_DOCS=1 writes the file.
func TestExposition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ctx := newWorld(t), t.Context()
		vms := w.vms
		create := func(id string, work func(context.Context) error) {
			job := lifecycle.Func(work)
			job.Retries = lifecycle.Retries{Attempts: 2, Delay: 1}
			ticket, err := vms.Do(ctx, id, "create", "user", job, nil)
			require.NoError(t, err)
			_, _ = ticket.Wait(ctx)
		}
		attempts := 0
		create("good", func(context.Context) error {
			time.Sleep(2 * time.Second)
			if attempts++; attempts == 1 {
				return errors.New("the first attempt fails")
			}
			return nil
		})
		create("bad", func(context.Context) error { return lifecycle.Permanent(errors.New("no room")) })

		_, err := vms.Fire(ctx, "good", "create", "user", nil)
		require.Error(t, err)
		_, err = vms.Fire(ctx, "good", "<script>", "user", nil)
		require.Error(t, err)
		_, err = vms.Override(ctx, "good", "running", "", "", nil)
		require.Error(t, err)
		w.store.errs = []error{lifecycle.ErrUnavailable, &lifecycle.ConflictError{From: "running"}, &lifecycle.ConflictError{}}
		_, err = vms.Fire(ctx, "good", "delete", "user", nil)
		require.ErrorIs(t, err, lifecycle.ErrUnavailable)
		_, err = vms.Fire(ctx, "good", "delete", "user", nil)
		require.ErrorIs(t, err, lifecycle.ErrConflict)

		for _, id := range []string{"late", "later"} { // the first commit meets a conflict, and is repeated
			_, err = vms.Create(ctx, id, "create", "user", struct{}{}, nil)
			require.NoError(t, err)
		}
		verdict, err := vms.Report(ctx, "good", 1, "done", "worker", nil)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Repeated, verdict)
		time.Sleep(time.Hour)
		_, err = vms.Override(ctx, "late", "running", "an operator", "it runs", nil)
		require.NoError(t, err)
		_, err = vms.Sweep(ctx)
		require.NoError(t, err)
		_, err = vms.Create(ctx, "stuck", "create", "user", struct{}{}, nil)
		require.NoError(t, err)

		held, err := w.tree.Lock(ctx, lock.Request{Path: lock.MustParse("/a"), Mode: lock.X}, nil)
		require.NoError(t, err)
		time.AfterFunc(2*time.Minute, func() { _ = held.Unlock(ctx) })
		_, err = w.tree.Lock(ctx, lock.Request{Path: lock.MustParse("/a"), Mode: lock.S}, nil)
		require.NoError(t, err)

		problems, err := testutil.GatherAndLint(w.registry)
		require.NoError(t, err)
		require.Empty(t, problems)
		golden(t, "testdata/exposition.txt", exposition(t, w.registry))
	})
}

func exposition(t *testing.T, g client.Gatherer) []byte {
	families, err := g.Gather()
	require.NoError(t, err)
	var text bytes.Buffer
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&text, family)
		require.NoError(t, err)
	}
	return text.Bytes()
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(file, got, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "UPDATE_DOCS=1 writes the file")
}

// TestScrapesAreBounded: scrapes read stuck objects at most every ten seconds, one at a
// time. While the store does not answer, the number is not known.
func TestScrapesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stuck := func() int {
			n, err := testutil.GatherAndCount(w.registry, "interlock_stuck_objects")
			require.NoError(t, err)
			return n
		}
		require.Equal(t, 3, stuck())
		lists := w.store.lists
		require.Positive(t, lists)
		for range 100 {
			require.Equal(t, 3, stuck())
		}
		require.Equal(t, lists, w.store.lists)

		time.Sleep(10 * time.Second)
		w.store.hang = true
		begin := time.Now()
		other := make(chan int)
		go func() {
			time.Sleep(time.Second)
			other <- stuck()
		}()
		require.Zero(t, stuck())
		require.Equal(t, 5*time.Second, time.Since(begin))
		require.Equal(t, 3, <-other, "a second scrape does not wait for the first")
		require.Equal(t, lists+1, w.store.lists)

		w.store.hang = false
		time.Sleep(5 * time.Second)
		require.Equal(t, 3, stuck())
	})
}

// TestObserverAllocations: an event of the table allocates nothing.
func TestObserverAllocations(t *testing.T) {
	o := metrics.New().Observer(vmTable.Table())
	e := lifecycle.CommittedChange{HistoryRow: lifecycle.HistoryRow{From: "creating", Event: "done", To: "running"}, InState: time.Second}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		o.Changed(t.Context(), e)
		o.Stored(t.Context(), lifecycle.StoreCall{Machine: "vm", Call: "commit", Took: time.Millisecond})
		o.Retried(t.Context(), lifecycle.FailedAttempt{Event: "create"})
		o.Finished(t.Context(), lifecycle.Finished{Event: "create", Took: time.Second})
	}))
}

// panicking is a store that a bug of its driver makes panic.
type panicking struct{ *lifecycle.MemoryStore }

func (panicking) List(context.Context, lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	panic("a bug")
}

// TestStorePanics: a scrape reports the panic, and has all other series.
func TestStorePanics(t *testing.T) {
	registry, collector := client.NewRegistry(), metrics.New()
	client.WrapRegistererWithPrefix("api_", registry).MustRegister(collector)
	add := func(name string, store lifecycle.Store) {
		collector.AddManager(name, lifecycle.Must[string, string](vmTable, store, nil))
	}
	add("broken", panicking{lifecycle.NewMemoryStore()})
	add("vm", lifecycle.NewMemoryStore())
	families, err := registry.Gather()
	require.ErrorContains(t, err, "a bug")
	require.Len(t, families, 1)
	require.Equal(t, "api_interlock_stuck_objects", families[0].GetName())
	require.Len(t, families[0].GetMetric(), 3)
}
