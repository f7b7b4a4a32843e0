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
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// Another process moves a stuck object back. The late result of the method is stale, and the
// ticket reports that.
func TestMovedBackByAnother(t *testing.T) {
	for name, outcome := range map[string]error{"done": nil, "failed": errors.New("no such node")} {
		for kind, with := range map[ovc.Kind]string{ovc.KindVM: "m", ovc.KindDisk: "d"} {
			t.Run(name+" "+string(kind), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, store := attached(t)
					other := ovc.Must(store, nil)
					end := make(chan struct{})
					ticket := begin(t, s, kind, with, ovc.Delete, &ovc.Options{Run: func(context.Context) error {
						<-end
						return outcome
					}})
					time.Sleep(ovc.StuckAfter + time.Second)
					require.NotEmpty(t, heal(t, other).Stuck)
					close(end)
					_, err := ticket.Wait(t.Context())
					require.ErrorIs(t, err, lifecycle.ErrStale)
					failed, _ := errors.AsType[*lifecycle.OutcomeError](err)
					require.Equal(t, lifecycle.Lost, failed.Outcome)
					require.NoError(t, failed.Unwritten)
					require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
					require.Equal(t, ovc.Assigned, get(t, s, ovc.KindDisk, "d").State)
				})
			})
		}
	}
}

// Another writer moves one of two objects back. The action ends for the other one.
func TestPartMovedBackByAnother(t *testing.T) {
	for name, part := range map[string]struct {
		kind ovc.Kind
		id   string
	}{
		"the disk":    {ovc.KindDisk, "d"},
		"the machine": {ovc.KindVM, "m"},
	} {
		t.Run(name, func(t *testing.T) {
			s, store := attached(t)
			other := ovc.Must(store, nil)
			begun, end := make(chan struct{}), make(chan struct{})
			ticket := begin(t, s, ovc.KindVM, "m", ovc.DetachDisk, &ovc.Options{With: "d", Run: func(context.Context) error {
				close(begun)
				<-end
				return errors.New("no such node")
			}})
			<-begun
			_, err := other.Objects(part.kind).Fire(t.Context(), part.id, ovc.Stuck, ovc.Observer, nil)
			require.NoError(t, err)
			close(end)
			_, err = ticket.Wait(t.Context())
			failed, _ := errors.AsType[*lifecycle.OutcomeError](err)
			require.NotNil(t, failed)
			require.NoError(t, failed.Unwritten)
			require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
			require.Equal(t, ovc.Assigned, get(t, s, ovc.KindDisk, "d").State)
			require.NoError(t, consistent(t.Context(), s))
		})
	}
}

// Two processes with queues of their own on one store. Each refuses what the other one has
// accepted. Every accepted action is performed once, by the process that has accepted it. No two
// methods run for one object.
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
		processes[p] = ovc.Must(store, &ovc.Config{Method: func(ctx context.Context, c ovc.Call) error {
			objects := []string{string(c.Kind) + c.ID}
			for _, d := range c.Disks {
				objects = append(objects, "disk"+d)
			}
			count := func(by int) {
				mu.Lock()
				defer mu.Unlock()
				for _, o := range objects {
					if at[o] += by; at[o] > 1 {
						t.Errorf("%s of %s runs beside another method", c.Method, o)
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
		add(t, processes[i], ovc.KindDisk, id, ovc.Model{})
		perform(t, processes[i], ovc.KindDisk, id, ovc.Create, nil)
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
			// Until both processes have performed actions: the users of one process may
			// finish while the other one is inside of an action.
			for i := 0; i < 60 || served(p) < 6; i++ {
				a := actions[(user*5+i)%len(actions)]
				options := &ovc.Options{}
				if a.with {
					options.With = ids[(i/3+user)%2]
				}
				ticket, err := processes[p].Do(ctx, a.kind, ids[i%2], a.action, options)
				if err != nil {
					if lifecycle.HTTPStatus(err) != http.StatusConflict && !errors.Is(err, lifecycle.ErrPrecondition) {
						t.Errorf("%s: %v", a.action, err)
					}
					runtime.Gosched()
					continue
				}
				if rec, err := ticket.Wait(ctx); err != nil {
					t.Errorf("%s ends in %s: %v", a.action, rec.State, err)
				}
				mu.Lock()
				accepted[done{p, lifecycle.Key{Machine: a.kind.Machine().Name(), ID: ids[i%2]}, ticket.Operation()}] = true
				mu.Unlock()
				if found, err := processes[1-p].SelfHeal(ctx); err != nil || len(found.Stuck) > 0 {
					t.Errorf("the other process heals %v: %v", found.Stuck, err)
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

// A migration is in no status: an action in another process does not wait for it. The first
// process sees the status of that action. Config.Shared changes that, see below.
func TestMigrationElsewhere(t *testing.T) {
	s, store := attached(t)
	other := ovc.Must(store, nil)
	migrated, stopped := make(chan struct{}), make(chan struct{})
	migration := migrate(t, s, "m", deaf(migrated))
	ticket := begin(t, other, ovc.KindVM, "m", ovc.Stop, deaf(stopped))
	for _, process := range []*ovc.Service{s, other} {
		_, err := process.Do(t.Context(), ovc.KindVM, "m", ovc.Pause, nil)
		require.ErrorIs(t, err, ovc.ErrBusy)
		_, err = process.Migrate(t.Context(), "m", nil)
		require.ErrorIs(t, err, ovc.ErrBusy)
	}
	close(stopped)
	require.Equal(t, ovc.Halted, outcome(t, ticket).State)
	require.Equal(t, queue.Pending, migration.Outcome())
	close(migrated)
	require.NoError(t, migration.Wait(t.Context()))
}

// Of several processes that heal at once, one moves each stuck object and destroys each
// expired one.
func TestOneHealer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		var destroyed atomic.Int32
		var processes []*ovc.Service
		for range 3 {
			processes = append(processes, ovc.Must(store, &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
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
			perform(t, processes[0], ovc.KindVM, bin, ovc.Delete, nil)
			running(t, processes[0], stuck)
		}
		time.Sleep(ovc.Retention - ovc.StuckAfter)
		for i := range n {
			update(t, processes[i%3], ovc.KindVM, fmt.Sprint("stuck", i), ovc.Running, ovc.Pausing)
		}
		time.Sleep(ovc.StuckAfter + time.Second)
		var all errgroup.Group
		var moved, expired atomic.Int32
		for _, s := range processes {
			all.Go(func() error {
				healed, err := s.SelfHeal(t.Context())
				for _, found := range healed.Stuck {
					if found.Resolution == lifecycle.Moved {
						moved.Add(1)
					}
				}
				expired.Add(int32(len(healed.Expired)))
				return err
			})
		}
		require.NoError(t, all.Wait())
		synctest.Wait()
		require.EqualValues(t, n, moved.Load())
		require.EqualValues(t, n, expired.Load())
		require.EqualValues(t, n, destroyed.Load())
	})
}

// The document: an action of a user during a migration is executed after the migration is
// completed. With shared turns that holds for an action in another process too.
func TestActionOfAnotherProcessWaitsForTheMigration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		process := func(name string) *ovc.Service {
			owner, err := lifecycle.Join(t.Context(), store, name, 0)
			require.NoError(t, err)
			return ovc.Must(store, &ovc.Config{Owner: owner, Shared: true})
		}
		one, other := process("one"), process("other")
		running(t, one, "m")
		migrated := make(chan struct{})
		migration := migrate(t, one, "m", deaf(migrated))
		synctest.Wait()
		time.AfterFunc(time.Minute, func() { close(migrated) })
		stop := begin(t, other, ovc.KindVM, "m", ovc.Stop, nil)
		require.Equal(t, ovc.Stopping, get(t, one, ovc.KindVM, "m").State, "the action is admitted")
		began := time.Now()
		require.Equal(t, ovc.Halted, outcome(t, stop).State)
		require.InDelta(t, time.Minute, time.Since(began), float64(2*time.Second))
		require.NoError(t, migration.Err())
	})
}
