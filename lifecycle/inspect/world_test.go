package inspect_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type vm struct {
	Address  string
	Password string `json:",omitempty"`
}

type vmManager = lifecycle.Manager[string, string, vm]

func vmTable(name string) *fsm.Machine[string, string, vm] {
	return fsm.Must[vm](fsm.Spec[string, string]{
		Name: name, Title: "virtual machines", Initial: "absent", Actors: []fsm.Actor{"user", "worker"},
		States: []fsm.State[string]{
			{Name: "absent", Kind: fsm.Absent},
			{Name: "creating", Kind: fsm.Transitional},
			{Name: "running", Kind: fsm.Stable},
			{Name: "failed", Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			fsm.Move("absent", "create", "creating").By("user"),
			fsm.Move("creating", "created", "running").By("worker"),
			fsm.Move("creating", "broken", "failed").By("worker"),
			fsm.Move("creating", "late", "failed").After(10*time.Minute),
			fsm.Move("running", "delete", "absent").AlsoFrom("failed").By("user"),
		),
	})
}

func vms(store lifecycle.Store, c lifecycle.Config[string]) *vmManager {
	c.WorkerActor, c.Done, c.Failed = "worker", []string{"created"}, []string{"broken"}
	return lifecycle.Must(vmTable("vm"), store, &c)
}

// world is a small service: two managers of one store with one queue, an owner that is
// alive, a stuck object, and locks.
type world struct {
	store *failing
	vms   *vmManager
	queue *queue.Queuer[lifecycle.Key]
	tree  *lock.Tree
	page  *inspect.Page
}

// failing is a store that can be out of order.
type failing struct {
	*lifecycle.MemoryStore
	err error
}

func (s *failing) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.MemoryStore.List(ctx, q)
}

func (s *failing) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.err != nil {
		return lifecycle.StoredRecord{}, s.err
	}
	return s.MemoryStore.Get(ctx, key)
}

// inWorld runs a test in a bubble with a world. It begins at 2000-01-01T00:11:00Z.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		w := &world{store: &failing{MemoryStore: lifecycle.NewMemoryStore()}, tree: lock.Must(nil)}
		w.queue = queue.Must(&queue.Config[lifecycle.Key]{Classes: map[string]queue.Limit{"aws": {MaxRunning: 2}}})
		owner, err := lifecycle.Join(ctx, w.store, "host-1", time.Hour)
		require.NoError(t, err)
		unowned := vms(w.store, lifecycle.Config[string]{})
		w.vms = vms(w.store, lifecycle.Config[string]{Owner: owner, Queue: w.queue})
		disks := lifecycle.Must(vmTable("disk"), w.store, &lifecycle.Config[string]{Queue: w.queue})

		create := func(m *vmManager, id string) {
			_, err := m.Create(ctx, id, "create", "user", vm{"10.0.0.7", "secret"}, &lifecycle.Change[vm]{Reason: "a test"})
			require.NoError(t, err)
		}
		create(unowned, "vm-late")
		create(w.vms, "vm-up")
		verdict, err := w.vms.Report(ctx, "vm-up", 1, "created", "worker", nil)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Applied, verdict)
		create(w.vms, "vm-gone")
		_, err = w.vms.Override(ctx, "vm-gone", "absent", "operator", "not needed", nil)
		require.NoError(t, err)
		time.Sleep(10 * time.Minute)

		end := make(chan struct{})
		work := lifecycle.Func(func(context.Context) error { <-end; return nil })
		work.Class = "aws"
		_, err = w.vms.Do(ctx, "vm-new", "create", "user", work, nil)
		require.NoError(t, err)
		_, err = w.queue.Submit(ctx, lifecycle.Key{Machine: "vm", ID: "vm-new"}, &queue.Action{Name: "check", Run: func(context.Context) error { return nil }})
		require.NoError(t, err)
		held, err := w.tree.TryLock(ctx, lock.Request{Path: lock.MustParse("/shop/web"), Mode: lock.X}, &lock.Options{Owner: "deploy-7", Reason: "version 12"})
		require.NoError(t, err)
		waits, stop := context.WithCancel(ctx)
		waited := make(chan struct{})
		go func() {
			defer close(waited)
			if g, err := w.tree.Lock(waits, lock.Request{Path: lock.MustParse("/shop"), Mode: lock.S}, &lock.Options{Owner: "backup"}); err == nil {
				<-waits.Done()
				_ = g.Unlock(ctx)
			}
		}()
		time.Sleep(time.Minute)
		synctest.Wait()

		w.page, err = inspect.New(&inspect.Config{
			Title:    "Shop",
			Machines: []inspect.Machine{inspect.Of(w.vms, withoutPassword), inspect.Of(disks, nil)},
			Locks:    map[string]lock.Locker{"deploys": w.tree},
		})
		require.NoError(t, err)
		defer func() { // also if the test has failed
			w.page.Close()
			w.store.err = nil
			stop()
			<-waited
			_ = held.Unlock(ctx) // an operator may have broken it
			close(end)
			require.NoError(t, w.queue.Terminate(ctx))
			require.NoError(t, owner.Leave(ctx))
		}()
		test(t, w)
	})
}

func withoutPassword(v vm) any { v.Password = ""; return v }

// ask sends a request without a network.
func ask(h http.Handler, method, url string, header ...string) *http.Response {
	r := httptest.NewRequest(method, url, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

var errBoom = errors.New("boom")
