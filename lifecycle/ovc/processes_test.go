package ovc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// TestPutBackByAnother: another process takes what is stuck here for stuck. What
// the method says later counts for nothing, whatever it is, and who asked is told
// that somebody else has ended the action.
func TestPutBackByAnother(t *testing.T) {
	for name, outcome := range map[string]error{"done": nil, "failed": errors.New("no such node")} {
		for kind, with := range map[ovc.Kind]string{ovc.KindVM: "m", ovc.KindDisk: "d"} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, store := attached(t)
					other := ovc.New(store, nil)
					end := make(chan struct{})
					h := must(s.Do(t.Context(), kind, with, ovc.Delete, &ovc.Options{Run: func(context.Context) error {
						<-end
						return outcome
					}}))(t)
					time.Sleep(ovc.StuckAfter + time.Second)
					require.NotEmpty(t, must(other.SelfHeal(t.Context()))(t).Stuck)
					close(end)
					_, err := h.Wait(t.Context())
					require.ErrorIs(t, err, lifecycle.ErrStale)
					failed, _ := errors.AsType[*lifecycle.OutcomeError](err)
					require.Equal(t, lifecycle.Lost, failed.Outcome)
					require.NoError(t, failed.Unwritten)
					require.Equal(t, ovc.Running, must(s.Get(t.Context(), ovc.KindVM, "m"))(t).State)
					require.Equal(t, ovc.Assigned, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
				})
			})
		}
	}
}

// TestPartPutBackByAnother: somebody else puts back one of two objects that an
// action moves. The action ends for the other one all the same.
func TestPartPutBackByAnother(t *testing.T) {
	for name, part := range map[string]struct {
		kind ovc.Kind
		id   string
	}{
		"the disk":    {ovc.KindDisk, "d"},
		"the machine": {ovc.KindVM, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := attached(t)
			other := ovc.New(store, nil)
			begun, end := make(chan struct{}), make(chan struct{})
			h := must(s.Do(t.Context(), ovc.KindVM, "m", ovc.DetachDisk, &ovc.Options{With: "d", Run: func(context.Context) error {
				close(begun)
				<-end
				return errors.New("no such node")
			}}))(t)
			<-begun
			must(other.Objects(part.kind).Fire(t.Context(), part.id, ovc.Stuck, fsm.Sweeper, nil))(t)
			close(end)
			_, err := h.Wait(t.Context())
			failed, _ := errors.AsType[*lifecycle.OutcomeError](err)
			require.NotNil(t, failed)
			require.NoError(t, failed.Unwritten)
			require.Equal(t, ovc.Running, must(s.Get(t.Context(), ovc.KindVM, "m"))(t).State)
			require.Equal(t, ovc.Assigned, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
			require.NoError(t, consistent(t.Context(), s))
		})
	}
}

// TestTwoProcesses: two processes with queues of their own on one store. What one
// has accepted, the other refuses as its own would; every action that was accepted
// is done once, by who has accepted it; no two methods are at one object.
func TestTwoProcesses(t *testing.T) {
	type done struct {
		by  int
		key lifecycle.Key
		of  lifecycle.OpID
	}
	var mu sync.Mutex
	at, effects := map[string]int{}, map[done]int{}
	store := lifecycle.NewMemoryStore()
	processes := make([]*ovc.Service, 2)
	for p := range processes {
		processes[p] = ovc.New(store, &ovc.Config{Method: func(ctx context.Context, c ovc.Call) error {
			objects := []string{string(c.Kind) + c.ID}
			for _, d := range c.Disks {
				objects = append(objects, "disk"+d)
			}
			count := func(by int) {
				mu.Lock()
				defer mu.Unlock()
				for _, o := range objects {
					if at[o] += by; at[o] > 1 {
						t.Errorf("%s of %s is not alone", c.Method, o)
					}
				}
			}
			count(1)
			runtime.Gosched()
			count(-1)
			task := lifecycle.TaskOf(ctx)
			mu.Lock()
			defer mu.Unlock()
			effects[done{p, task.Key, task.Operation}]++
			return nil
		}})
	}
	ctx := t.Context()
	ids := []string{"a", "b"}
	for i, id := range ids {
		running(t, processes[i], id)
		must(processes[i].Add(ctx, ovc.KindDisk, id, ovc.Model{}))(t)
		wait(t)(processes[i].Do(ctx, ovc.KindDisk, id, ovc.Create, nil))
	}
	clear(effects)
	actions := []struct {
		kind   ovc.Kind
		action ovc.Event
		with   bool
	}{
		{ovc.KindVM, ovc.Reboot, false},
		{ovc.KindVM, ovc.AttachDisk, true},
		{ovc.KindDisk, ovc.Detach, false},
		{ovc.KindVM, ovc.Pause, false},
		{ovc.KindDisk, ovc.Attach, true},
		{ovc.KindVM, ovc.Resume, false},
		{ovc.KindVM, ovc.DetachDisk, true},
	}
	var all sync.WaitGroup
	accepted := map[done]bool{}
	served := func(p int) (n int) {
		mu.Lock()
		defer mu.Unlock()
		for d := range accepted {
			if d.by == p {
				n++
			}
		}
		return n
	}
	for user := range 6 {
		all.Go(func() {
			p := user % 2
			// Until both have done something: the users of one process may get
			// through all of theirs while the other one is inside of an action.
			for i := 0; i < 60 || served(p) < 6; i++ {
				a := actions[(user*5+i)%len(actions)]
				options := &ovc.Options{}
				if a.with {
					options.With = ids[(i/3+user)%2]
				}
				h, err := processes[p].Do(ctx, a.kind, ids[i%2], a.action, options)
				if err != nil {
					if lifecycle.HTTPStatus(err) != http.StatusConflict && !errors.Is(err, lifecycle.ErrPrecondition) {
						t.Errorf("%s: %v", a.action, err)
					}
					runtime.Gosched()
					continue
				}
				if rec, err := h.Wait(ctx); err != nil {
					t.Errorf("%s ends in %s: %v", a.action, rec.State, err)
				}
				mu.Lock()
				accepted[done{p, lifecycle.Key{Machine: a.kind.Machine().Name(), ID: ids[i%2]}, h.Operation()}] = true
				mu.Unlock()
				if found, err := processes[1-p].SelfHeal(ctx); err != nil || len(found.Stuck) > 0 {
					t.Errorf("the other one heals %v: %v", found.Stuck, err)
				}
			}
		})
	}
	all.Wait()
	require.Len(t, effects, len(accepted))
	for d := range accepted {
		require.Equal(t, 1, effects[d], "%v", d)
	}
	require.NoError(t, consistent(ctx, processes[0]))
}

// TestMigrationElsewhere: a migration is in no status, so another process does not
// know of it: what is asked there does not wait for it. Nothing is lost by that, and
// the first process knows of the other's action.
func TestMigrationElsewhere(t *testing.T) {
	s, store := attached(t)
	other := ovc.New(store, nil)
	migrated, stopped := make(chan struct{}), make(chan struct{})
	migration := must(s.Migrate(t.Context(), "m", deaf(migrated)))(t)
	h := must(other.Do(t.Context(), ovc.KindVM, "m", ovc.Stop, deaf(stopped)))(t)
	for _, process := range []*ovc.Service{s, other} {
		_, err := process.Do(t.Context(), ovc.KindVM, "m", ovc.Pause, nil)
		require.ErrorIs(t, err, ovc.ErrBusy)
		_, err = process.Migrate(t.Context(), "m", nil)
		require.ErrorIs(t, err, ovc.ErrBusy)
	}
	close(stopped)
	require.Equal(t, ovc.Halted, wait(t)(h, nil).State)
	require.Equal(t, queue.Pending, migration.Outcome())
	close(migrated)
	require.NoError(t, migration.Wait(t.Context()))
}

// TestOneHealer: what is stuck, and what expires, is one process' business, however
// many look.
func TestOneHealer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		var destroyed atomic.Int32
		var processes []*ovc.Service
		for range 3 {
			processes = append(processes, ovc.New(store, &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
				if c.Method == ovc.Destroy {
					destroyed.Add(1)
				}
				return nil
			}}))
		}
		const n = 8
		for i := range n {
			bin, stuck := fmt.Sprint("bin", i), fmt.Sprint("stuck", i)
			running(t, processes[0], bin)
			wait(t)(processes[0].Do(t.Context(), ovc.KindVM, bin, ovc.Delete, nil))
			running(t, processes[0], stuck)
		}
		time.Sleep(ovc.Retention - ovc.StuckAfter)
		for i := range n {
			must(processes[i%3].UpdateStatus(t.Context(), ovc.KindVM, fmt.Sprint("stuck", i), ovc.Running, ovc.Pausing))(t)
		}
		time.Sleep(ovc.StuckAfter + time.Second)
		var all sync.WaitGroup
		var moved, expired atomic.Int32
		for _, s := range processes {
			all.Go(func() {
				h, err := s.SelfHeal(t.Context())
				if err != nil {
					t.Error(err)
				}
				for _, found := range h.Stuck {
					if found.Resolution == lifecycle.Moved {
						moved.Add(1)
					}
				}
				expired.Add(int32(len(h.Expired)))
			})
		}
		all.Wait()
		synctest.Wait()
		require.EqualValues(t, n, moved.Load())
		require.EqualValues(t, n, expired.Load())
		require.EqualValues(t, n, destroyed.Load())
	})
}
