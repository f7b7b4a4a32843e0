package ovc_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// must returns the value of a call that has to succeed: must(f())(t).
func must[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// wait returns the object as an action has left it.
func wait(t *testing.T) func(*ovc.Handle, error) ovc.Record {
	return func(h *ovc.Handle, err error) ovc.Record {
		t.Helper()
		require.NoError(t, err)
		return must(h.Wait(t.Context()))(t)
	}
}

// running makes a machine that is deployed.
func running(t *testing.T, s *ovc.Service, id string) {
	t.Helper()
	must(s.Add(t.Context(), ovc.KindVM, id, ovc.Model{}))(t)
	wait(t)(s.Do(t.Context(), ovc.KindVM, id, ovc.Deploy, nil))
}

func TestTransitionStatesOfAllKinds(t *testing.T) {
	all := ovc.TransitionStates()
	for kind := range ovc.Kinds() {
		for s := range kind.Machine().States() {
			transition := kind.Machine().Kind(s) == fsm.Transitional
			require.Equal(t, transition, slices.Contains(all, s), "%s", s)
			require.Equal(t, transition, ovc.IsTransition(s), "%s", s)
		}
	}
	require.Len(t, all, 20, "counted in the document by hand")
	require.Equal(t, slices.Compact(slices.Sorted(slices.Values(all))), slices.Sorted(slices.Values(all)))
	require.Equal(t, ovc.TransitionStates(ovc.KindNode, ovc.KindAccount),
		[]ovc.State{"PUTTING_IN_MAINTENANCE", "ENABLING", "DECOMMISSIONING", "DISABLING", "DESTROYING", "DELETING"})
	for _, s := range []ovc.State{"", "MIGRATING", "running", "ENABLED"} {
		require.False(t, ovc.IsTransition(s), "all the rest of states are static")
	}
}

// TestMethods: what a method is told, and that a function may take its place.
func TestMethods(t *testing.T) {
	var calls []ovc.Call
	s := ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
		calls = append(calls, c)
		return nil
	}})
	ctx := t.Context()
	running(t, s, "m")
	must(s.Add(ctx, ovc.KindDisk, "d", ovc.Model{Labels: map[string]string{"size": "50"}, VM: "x", Disks: []string{"y"}}))(t)
	disk := wait(t)(s.Do(ctx, ovc.KindDisk, "d", ovc.Assign, &ovc.Options{With: "m", Reason: "ann asks"}))
	require.Equal(t, ovc.Model{VM: "m", Labels: map[string]string{"size": "50"}}, disk.Payload)
	ticket := must(s.Migrate(ctx, "m", nil))(t)
	require.NoError(t, ticket.Wait(ctx))
	wait(t)(s.Do(ctx, ovc.KindVM, "m", ovc.Destroy, nil))
	with := []string{"d"}
	require.Equal(t, []ovc.Call{
		{Kind: ovc.KindVM, ID: "m", Method: ovc.Deploy},
		{Kind: ovc.KindVM, ID: "m", Method: ovc.AddDisk, Disks: with},
		{Kind: ovc.KindVM, ID: "m", Method: ovc.Migrate},
		{Kind: ovc.KindVM, ID: "m", Method: ovc.Stop, Disks: with},
		{Kind: ovc.KindVM, ID: "m", Method: ovc.Delete, Disks: with},
		{Kind: ovc.KindVM, ID: "m", Method: ovc.Destroy, Disks: with},
	}, calls)
	for _, kind := range []ovc.Kind{ovc.KindVM, ovc.KindDisk} {
		rows := must(s.Objects(kind).History(ctx, map[ovc.Kind]string{ovc.KindVM: "m", ovc.KindDisk: "d"}[kind], 0, 0))(t)
		require.True(t, slices.ContainsFunc(rows, func(r lifecycle.HistoryRow) bool { return r.Reason == "ann asks" }), "%v", rows)
	}

	calls = nil
	running(t, s, "n")
	must(s.Add(ctx, ovc.KindDisk, "e", ovc.Model{}))(t)
	ran := 0
	run := func(context.Context) error { ran++; return nil }
	wait(t)(s.Do(ctx, ovc.KindDisk, "e", ovc.Assign, &ovc.Options{With: "n", Run: run}))
	disk = wait(t)(s.Do(ctx, ovc.KindDisk, "e", ovc.Detach, &ovc.Options{Run: run}))
	require.Empty(t, disk.Payload.VM)
	require.NoError(t, must(s.Migrate(ctx, "n", &ovc.Options{Run: run}))(t).Wait(ctx))
	require.Equal(t, 3, ran)
	require.Len(t, calls, 1)
}

// TestTimeout: an action that takes too long is told to end and leads back.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(ctx context.Context, c ovc.Call) error {
			if c.Method != ovc.Reboot {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		running(t, s, "m")
		h := must(s.Do(t.Context(), ovc.KindVM, "m", ovc.Reboot, &ovc.Options{Timeout: time.Minute}))(t)
		rec, err := h.Wait(t.Context())
		var failed *lifecycle.OutcomeError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, lifecycle.TimedOut, failed.Outcome)
		require.Equal(t, ovc.Running, rec.State)
	})
}

// TestInvalid: what is wrong whatever the objects are.
func TestInvalid(t *testing.T) {
	s := ovc.New(lifecycle.NewMemoryStore(), nil)
	ctx := t.Context()
	running(t, s, "m")
	for name, call := range map[string]func() error{
		"get":         func() error { _, err := s.Get(ctx, "server", "m"); return err },
		"empty id":    func() error { _, err := s.Add(ctx, ovc.KindVM, "", ovc.Model{}); return err },
		"search kind": func() error { _, err := s.UpdateSearch(ctx, "server", nil, "", ""); return err },
		"search":      func() error { _, err := s.UpdateSearch(ctx, ovc.KindVM, nil, ovc.Running, ovc.Pausing); return err },
		"stop":        func() error { return s.Queuer().Stop(ctx, "server", "m") },
		"migrate":     func() error { _, err := s.Migrate(ctx, "m", &ovc.Options{With: "n"}); return err },
		"run":         func() error { return s.Run(ctx, -1, nil) },
		"time-out": func() error {
			_, err := s.Do(ctx, ovc.KindVM, "m", ovc.Pause, &ovc.Options{Timeout: -1})
			return err
		},
	} {
		require.ErrorIs(t, call(), lifecycle.ErrInvalid, name)
	}
	require.Nil(t, s.Objects("server"))
	require.False(t, s.Queuer().Exists("server", "m"))
	require.Nil(t, s.Queuer().Actions("server", "m"))
	require.Equal(t, ovc.Running, must(s.Get(ctx, ovc.KindVM, "m"))(t).State)
	require.Panics(t, func() { ovc.New(nil, nil) })
	require.Panics(t, func() { ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{StuckAfter: -1}) })
	require.Panics(t, func() { ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Retention: -1}) })
	require.Panics(t, func() { ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{MaxRunning: -1}) })
}

// TestBounds: a queue that is full refuses, and nothing is changed.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{MaxPerObject: 1, MaxRunning: 1})
		running(t, s, "m")
		running(t, s, "n")
		slow := &ovc.Options{Run: func(context.Context) error { time.Sleep(time.Minute); return nil }}
		migration := must(s.Migrate(t.Context(), "m", slow))(t)
		_, err := s.Do(t.Context(), ovc.KindVM, "m", ovc.Pause, nil)
		require.ErrorIs(t, err, queue.ErrFull)
		require.NotErrorIs(t, err, ovc.ErrBusy)
		require.Equal(t, ovc.Running, must(s.Get(t.Context(), ovc.KindVM, "m"))(t).State)
		must(s.Do(t.Context(), ovc.KindVM, "n", ovc.Pause, nil))(t)
		require.Equal(t, 1, s.Queuer().Stats().Running)
		require.NoError(t, migration.Wait(t.Context()))
		require.NoError(t, s.Queuer().Terminate(t.Context()))
	})
}

// TestStateFirst: who asks during another action is told so, also if there is no
// room behind it: the state is looked at before the queue.
func TestStateFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{MaxPerObject: 2})
		running(t, s, "m")
		must(s.Add(t.Context(), ovc.KindDisk, "d", ovc.Model{}))(t)
		slow := &ovc.Options{Run: func(context.Context) error { time.Sleep(time.Minute); return nil }}
		must(s.Migrate(t.Context(), "m", slow))(t)
		h := must(s.Do(t.Context(), ovc.KindVM, "m", ovc.Pause, nil))(t)
		inTheWay := "m"
		refused := func(kind ovc.Kind, id string, action ovc.Event, with string, also error) {
			_, err := s.Do(t.Context(), kind, id, action, &ovc.Options{With: with})
			for _, is := range []error{ovc.ErrBusy, lifecycle.ErrBusy, also} {
				require.ErrorIs(t, err, is)
			}
			require.EqualError(t, err, "Cannot execute action at this time")
			require.Equal(t, http.StatusConflict, lifecycle.HTTPStatus(err))
			detail, _ := errors.AsType[*ovc.RefusedError](err)
			require.Equal(t, inTheWay, detail.ID)
		}
		refused(ovc.KindVM, "m", ovc.Stop, "", queue.ErrFull)
		refused(ovc.KindVM, "m", ovc.AddDisk, "d", queue.ErrFull)
		refused(ovc.KindDisk, "d", ovc.Assign, "m", queue.ErrFull)
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, s.Queuer().Stop(soon, ovc.KindVM, "m"), queue.ErrNotDrained)
		refused(ovc.KindVM, "m", ovc.Stop, "", queue.ErrStopping)
		wait(t)(h, nil)
		require.Equal(t, ovc.Modeled, must(s.Get(t.Context(), ovc.KindDisk, "d"))(t).State)
		var last *queue.Ticket[lifecycle.Key]
		for range 2 {
			last = must(s.Migrate(t.Context(), "m", slow))(t)
		}
		must(s.UpdateStatus(t.Context(), ovc.KindDisk, "d", ovc.Modeled, ovc.Creating))(t)
		inTheWay = "d"
		refused(ovc.KindVM, "m", ovc.AddDisk, "d", queue.ErrFull)
		require.NoError(t, last.Wait(t.Context()))
	})
}

// TestStopGivesUp: Stop ends with its context, and the queue goes on stopping.
func TestStopGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.New(lifecycle.NewMemoryStore(), nil)
		q := s.Queuer()
		running(t, s, "m")
		inside := make(chan error, 1)
		must(s.Migrate(t.Context(), "m", &ovc.Options{Run: func(ctx context.Context) error {
			inside <- errors.Join(q.Stop(ctx, ovc.KindVM, "m"), q.Terminate(ctx))
			time.Sleep(time.Minute)
			return nil
		}}))(t)
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, q.Stop(soon, ovc.KindVM, "m"), queue.ErrNotDrained)
		err := <-inside
		require.ErrorIs(t, err, queue.ErrWouldDeadlock)
		require.True(t, q.Exists(ovc.KindVM, "m"))
		_, err = s.Migrate(t.Context(), "m", nil)
		require.ErrorIs(t, err, queue.ErrStopping)
		_, err = s.Do(t.Context(), ovc.KindVM, "m", ovc.Pause, nil)
		require.ErrorIs(t, err, queue.ErrStopping)
		require.NotErrorIs(t, err, ovc.ErrBusy)
		time.Sleep(time.Hour) // it goes on stopping, also if nobody asks again
		require.False(t, q.Exists(ovc.KindVM, "m"))
		require.NoError(t, q.Stop(t.Context(), ovc.KindVM, "m"))
		migrated := make(chan struct{})
		must(s.Migrate(t.Context(), "m", deaf(migrated)))(t)
		require.True(t, q.Exists(ovc.KindVM, "m"))
		must(q.Queue(ovc.KindVM, "idle"))(t)
		require.ErrorIs(t, q.Terminate(canceled()), context.Canceled)
		require.Equal(t, []ovc.Ref{{Kind: ovc.KindVM, ID: "m"}}, q.All())
		close(migrated)
		synctest.Wait()
		require.Empty(t, q.All())
		_, err = q.Queue(ovc.KindVM, "n")
		require.ErrorIs(t, err, queue.ErrTerminated)
		require.NoError(t, q.Terminate(t.Context()))
		require.Empty(t, q.All())
	})
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestObserve: who looks at the real thing may say what happened there.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func() (ovc.Event, fsm.Actor, error) { return "", "", errors.New("the node does not answer") }
		s := ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{
			StuckAfter: time.Minute,
			Observe: func(_ context.Context, stuck lifecycle.StoredRecord) (ovc.Event, fsm.Actor, error) {
				require.Equal(t, "PAUSING", stuck.State)
				return answer()
			},
		})
		running(t, s, "m")
		must(s.UpdateStatus(t.Context(), ovc.KindVM, "m", ovc.Running, ovc.Pausing))(t)
		time.Sleep(2 * time.Minute)
		h := must(s.SelfHeal(t.Context()))(t)
		require.Equal(t, lifecycle.NotMoved, h.Stuck[0].Resolution)
		answer = func() (ovc.Event, fsm.Actor, error) { return ovc.Done, ovc.Worker, nil }
		h = must(s.SelfHeal(t.Context()))(t)
		require.Equal(t, lifecycle.Moved, h.Stuck[0].Resolution)
		require.Equal(t, "PAUSED", h.Stuck[0].To)
	})
}

// TestRun heals by itself, and ends with its context.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Retention: time.Hour})
		running(t, s, "m")
		wait(t)(s.Do(t.Context(), ovc.KindVM, "m", ovc.Delete, nil))
		ctx, stop := context.WithCancel(t.Context())
		found := make(chan int, 100)
		ended := make(chan error)
		go func() {
			ended <- s.Run(ctx, 0, func(h ovc.Healing, err error) {
				if err == nil {
					found <- len(h.Expired)
				}
			})
		}()
		time.Sleep(59 * time.Minute)
		require.Equal(t, ovc.Deleted, must(s.Get(t.Context(), ovc.KindVM, "m"))(t).State)
		time.Sleep(5 * time.Minute)
		require.Equal(t, ovc.Destroyed, must(s.Get(t.Context(), ovc.KindVM, "m"))(t).State)
		stop()
		require.NoError(t, <-ended)
		close(found)
		sum := 0
		for n := range found {
			sum += n
		}
		require.Equal(t, 1, sum)
	})
}

// TestSelfHealAfterJoin: an action that an earlier process of the same name has left
// does not wait for its deadline.
func TestSelfHealAfterJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		process := func() *ovc.Service {
			return ovc.New(store, &ovc.Config{Owner: must(lifecycle.Join(t.Context(), store, "alpha", 0))(t)})
		}
		s := process()
		running(t, s, "m")
		end := make(chan struct{})
		h := must(s.Do(t.Context(), ovc.KindVM, "m", ovc.Destroy, &ovc.Options{Run: func(context.Context) error {
			<-end
			return nil
		}}))(t)
		heir := process()
		found := must(heir.SelfHeal(t.Context()))(t)
		require.Len(t, found.Stuck, 1)
		require.True(t, found.Stuck[0].OwnerDead)
		require.Equal(t, ovc.Running, must(heir.Get(t.Context(), ovc.KindVM, "m"))(t).State)
		close(end)
		_, err := h.Wait(t.Context())
		require.Error(t, err)
		require.Equal(t, ovc.Running, must(heir.Get(t.Context(), ovc.KindVM, "m"))(t).State)
	})
}

// TestWaitingAcrossProcesses: what waits in one process is not stuck for another
// one, as long as the first one heals, too; what runs for too long is.
func TestWaitingAcrossProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		alpha, beta := ovc.New(store, nil), ovc.New(store, nil)
		running(t, alpha, "m")
		must(alpha.Add(t.Context(), ovc.KindDisk, "d", ovc.Model{}))(t)
		wait(t)(alpha.Do(t.Context(), ovc.KindVM, "m", ovc.AddDisk, &ovc.Options{With: "d"}))
		takes := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); return nil }
		}
		must(alpha.Migrate(t.Context(), "m", &ovc.Options{Run: takes(5 * time.Hour)}))(t)
		h := must(alpha.Do(t.Context(), ovc.KindVM, "m", ovc.DetachDisk, &ovc.Options{With: "d", Run: takes(2 * time.Hour)}))(t)
		heal := func(n int) (stuck int) {
			for range n {
				time.Sleep(10 * time.Minute)
				for _, s := range []*ovc.Service{alpha, beta} {
					stuck += len(must(s.SelfHeal(t.Context()))(t).Stuck)
				}
			}
			return stuck
		}
		require.Zero(t, heal(5*6))
		require.Equal(t, 2, heal(6))
		_, err := h.Wait(t.Context())
		require.ErrorIs(t, err, lifecycle.ErrStale)
		require.Equal(t, ovc.Model{Disks: []string{"d"}}, must(alpha.Get(t.Context(), ovc.KindVM, "m"))(t).Payload)
		require.Equal(t, ovc.Model{VM: "m"}, must(alpha.Get(t.Context(), ovc.KindDisk, "d"))(t).Payload)
	})
}

// TestEverybodyAtOnce: many users at a few objects. No two methods are ever at one
// object, of several requests one is accepted, and machines and disks know the
// same of each other in the end.
func TestEverybodyAtOnce(t *testing.T) {
	var mu sync.Mutex
	at := map[string]string{}
	s := ovc.New(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
		names := []string{string(c.Kind) + c.ID}
		for _, d := range c.Disks {
			names = append(names, "disk"+d)
		}
		mu.Lock()
		for _, name := range names {
			if at[name] != "" {
				t.Errorf("%s and %s are at %s", at[name], c.Method, name)
			}
			at[name] = string(c.Method)
		}
		mu.Unlock()
		mu.Lock()
		defer mu.Unlock()
		for _, name := range names {
			delete(at, name)
		}
		if c.Method == ovc.Pause && c.ID == "1" {
			return errors.New("it never works")
		}
		return nil
	}})
	ctx := t.Context()
	for i := range 3 {
		running(t, s, fmt.Sprint(i))
		must(s.Add(ctx, ovc.KindDisk, fmt.Sprint(i), ovc.Model{}))(t)
		wait(t)(s.Do(ctx, ovc.KindDisk, fmt.Sprint(i), ovc.Create, nil))
	}
	actions := []struct {
		kind   ovc.Kind
		action ovc.Event
	}{
		{ovc.KindVM, ovc.Pause},
		{ovc.KindVM, ovc.Resume},
		{ovc.KindVM, ovc.Reboot},
		{ovc.KindVM, ovc.Reset},
		{ovc.KindVM, ovc.AttachDisk},
		{ovc.KindVM, ovc.DetachDisk},
		{ovc.KindVM, ovc.AttachDisk},
		{ovc.KindDisk, ovc.Detach},
		{ovc.KindVM, ovc.Migrate},
		{ovc.KindDisk, ovc.Attach},
	}
	var all sync.WaitGroup
	for user := range 6 {
		all.Go(func() {
			for i := range 60 {
				a := actions[(user*7+i*3+i*i)%len(actions)]
				id, other := fmt.Sprint((i+user)%3), fmt.Sprint((i/2+user)%3)
				var err error
				switch {
				case a.action == ovc.Migrate:
					_, err = s.Migrate(ctx, id, nil)
				case a.action == ovc.AttachDisk, a.action == ovc.DetachDisk, a.action == ovc.Attach:
					_, err = s.Do(ctx, a.kind, id, a.action, &ovc.Options{With: other})
				default:
					_, err = s.Do(ctx, a.kind, id, a.action, nil)
				}
				for _, refusal := range []error{ovc.ErrBusy, ovc.ErrOtherAction, fsm.ErrNotAllowed, lifecycle.ErrPrecondition} {
					if errors.Is(err, refusal) {
						err = nil
					}
				}
				if err != nil {
					t.Errorf("%s of %s: %v", a.action, id, err)
				}
			}
		})
	}
	all.Wait()
	require.NoError(t, s.Queuer().Terminate(ctx))
	require.NoError(t, consistent(ctx, s))
	for kind := range ovc.Kinds() {
		left := must(s.Objects(kind).List(ctx, lifecycle.Select[ovc.State]{States: ovc.TransitionStates(kind)}))(t)
		require.Empty(t, left)
	}
}
