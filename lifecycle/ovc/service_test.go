package ovc_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
	"github.com/interlock-go/interlock/queue"
)

// The helpers below fail the test after an error.

func add(t testing.TB, s *ovc.Service, kind ovc.Kind, id string, model ovc.Model) ovc.Record {
	t.Helper()
	rec, err := s.Add(t.Context(), kind, id, "", model)
	require.NoError(t, err)
	return rec
}

func get(t testing.TB, s *ovc.Service, kind ovc.Kind, id string) ovc.Record {
	t.Helper()
	rec, err := s.Get(t.Context(), kind, id)
	require.NoError(t, err)
	return rec
}

func update(t testing.TB, s *ovc.Service, kind ovc.Kind, id string, status, newStatus ovc.State) ovc.Record {
	t.Helper()
	rec, err := s.UpdateStatus(t.Context(), kind, id, status, newStatus)
	require.NoError(t, err)
	return rec
}

func heal(t testing.TB, s *ovc.Service) ovc.Healing {
	t.Helper()
	h, err := s.SelfHeal(t.Context())
	require.NoError(t, err)
	return h
}

func migrate(t testing.TB, s *ovc.Service, id string, options *ovc.Options) *queue.Ticket[lifecycle.Key] {
	t.Helper()
	ticket, err := s.Migrate(t.Context(), id, options)
	require.NoError(t, err)
	return ticket
}

// begin requests an action that is accepted.
func begin(t testing.TB, s *ovc.Service, kind ovc.Kind, id string, action ovc.Event, options *ovc.Options) *ovc.Ticket {
	t.Helper()
	ticket, err := s.Do(t.Context(), kind, id, action, options)
	require.NoError(t, err)
	return ticket
}

// outcome returns the object after an action that succeeds.
func outcome(t testing.TB, ticket *ovc.Ticket) ovc.Record {
	t.Helper()
	rec, err := ticket.Wait(t.Context())
	require.NoError(t, err)
	return rec
}

// perform requests an action and waits until it has succeeded.
func perform(t testing.TB, s *ovc.Service, kind ovc.Kind, id string, action ovc.Event, options *ovc.Options) ovc.Record {
	t.Helper()
	return outcome(t, begin(t, s, kind, id, action, options))
}

// running adds a machine and deploys it.
func running(t testing.TB, s *ovc.Service, id string) {
	t.Helper()
	add(t, s, ovc.KindVM, id, ovc.Model{})
	perform(t, s, ovc.KindVM, id, ovc.Deploy, nil)
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

// The calls of methods, and functions in their place.
func TestMethods(t *testing.T) {
	var calls []ovc.Call
	s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
		calls = append(calls, c)
		return nil
	}})
	ctx := t.Context()
	running(t, s, "m")
	add(t, s, ovc.KindDisk, "d", ovc.Model{Attributes: json.RawMessage(`{"size":50}`)})
	disk := perform(t, s, ovc.KindDisk, "d", ovc.Assign, &ovc.Options{With: "m", Reason: "ann asks"})
	require.Equal(t, ovc.Model{VM: "m", Attributes: json.RawMessage(`{"size":50}`)}, disk.Payload)
	ticket := migrate(t, s, "m", nil)
	require.NoError(t, ticket.Wait(ctx))
	perform(t, s, ovc.KindVM, "m", ovc.Destroy, nil)
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
		rows, err := s.Objects(kind).History(ctx, map[ovc.Kind]string{ovc.KindVM: "m", ovc.KindDisk: "d"}[kind], 0, 0)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(rows, func(r lifecycle.HistoryRow) bool { return r.Reason == "ann asks" }), "%v", rows)
	}

	calls = nil
	running(t, s, "n")
	add(t, s, ovc.KindDisk, "e", ovc.Model{})
	ran := 0
	run := func(context.Context) error { ran++; return nil }
	perform(t, s, ovc.KindDisk, "e", ovc.Assign, &ovc.Options{With: "n", Run: run})
	disk = perform(t, s, ovc.KindDisk, "e", ovc.Detach, &ovc.Options{Run: run})
	require.Empty(t, disk.Payload.VM)
	require.NoError(t, migrate(t, s, "n", &ovc.Options{Run: run}).Wait(ctx))
	require.Equal(t, 3, ran)
	require.Len(t, calls, 1)
}

// An action past its timeout is canceled, and the object returns to its origin.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(ctx context.Context, c ovc.Call) error {
			if c.Method != ovc.Reboot {
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		running(t, s, "m")
		ticket := begin(t, s, ovc.KindVM, "m", ovc.Reboot, &ovc.Options{Timeout: time.Minute})
		rec, err := ticket.Wait(t.Context())
		var failed *lifecycle.OutcomeError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, lifecycle.TimedOut, failed.Outcome)
		require.Equal(t, ovc.Running, rec.State)
	})
}

// Malformed requests are refused.
func TestInvalid(t *testing.T) {
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	ctx := t.Context()
	running(t, s, "m")
	for name, call := range map[string]func() error{
		"get":         func() error { _, err := s.Get(ctx, "server", "m"); return err },
		"empty id":    func() error { _, err := s.Add(ctx, ovc.KindVM, "", "", ovc.Model{}); return err },
		"update kind": func() error { _, err := s.UpdateStatus(ctx, "server", "m", "", ""); return err },
		"migrate":     func() error { _, err := s.Migrate(ctx, "m", &ovc.Options{With: "n"}); return err },
		"time-out": func() error {
			_, err := s.Do(ctx, ovc.KindVM, "m", ovc.Pause, &ovc.Options{Timeout: -1})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, call(), lifecycle.ErrInvalid) })
	}
	require.Nil(t, s.Objects("server"))
	require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
	_, err := ovc.New(nil, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	for _, config := range []ovc.Config{
		{StuckAfter: -1}, {Retention: -1}, {MaxRunning: -1}, {Shared: true}, {Owner: new(lifecycle.Owner)},
	} {
		_, err := ovc.New(lifecycle.NewMemoryStore(), &config)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.NotContains(t, err.Error(), "{") // the content of the store
		require.Panics(t, func() { ovc.Must(lifecycle.NewMemoryStore(), &config) })
	}
}

// Stop ends with its context, and the queue continues to stop. Inside an action it is
// refused.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.Must(lifecycle.NewMemoryStore(), nil)
		q, key := s.Queuer(), ovc.KindVM.Key("m")
		running(t, s, "m")
		inside := make(chan error, 1)
		migrate(t, s, "m", &ovc.Options{Run: func(ctx context.Context) error {
			inside <- errors.Join(q.Stop(ctx, key), q.Terminate(ctx))
			time.Sleep(time.Minute)
			return nil
		}})
		soon, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		require.ErrorIs(t, q.Stop(soon, key), queue.ErrNotDrained)
		require.ErrorIs(t, <-inside, queue.ErrWouldDeadlock)
		_, err := s.Migrate(t.Context(), "m", nil)
		require.ErrorIs(t, err, queue.ErrStopping)
		_, err = s.Do(t.Context(), ovc.KindVM, "m", ovc.Pause, nil)
		require.ErrorIs(t, err, queue.ErrStopping)
		require.NotErrorIs(t, err, ovc.ErrBusy)
		update(t, s, ovc.KindVM, "m", ovc.Running, ovc.Pausing)
		_, err = s.Do(t.Context(), ovc.KindVM, "m", ovc.Stop, nil)
		require.ErrorIs(t, err, queue.ErrStopping)
		require.ErrorIs(t, err, ovc.ErrBusy, "the state is checked before the queue")
		update(t, s, ovc.KindVM, "m", ovc.Pausing, ovc.Running)
		time.Sleep(time.Hour)
		require.Empty(t, q.Inspect(key))
		require.NoError(t, q.Stop(t.Context(), key))
		migrate(t, s, "m", nil)
		require.NoError(t, q.Terminate(t.Context()))
		_, err = s.Migrate(t.Context(), "m", nil)
		require.ErrorIs(t, err, queue.ErrTerminated)
	})
}

// Observe decides about a stuck object.
func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := func() (ovc.Event, fsm.Actor, error) { return "", "", errors.New("the node does not answer") }
		s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{
			StuckAfter: time.Minute,
			Observe: func(_ context.Context, stuck lifecycle.StoredRecord) (ovc.Event, fsm.Actor, error) {
				require.Equal(t, "PAUSING", stuck.State)
				return answer()
			},
		})
		running(t, s, "m")
		update(t, s, ovc.KindVM, "m", ovc.Running, ovc.Pausing)
		time.Sleep(2 * time.Minute)
		h := heal(t, s)
		require.Equal(t, lifecycle.NotMoved, h.Stuck[0].Resolution)
		answer = func() (ovc.Event, fsm.Actor, error) { return ovc.Done, ovc.Worker, nil }
		h = heal(t, s)
		require.Equal(t, lifecycle.Moved, h.Stuck[0].Resolution)
		require.Equal(t, "PAUSED", h.Stuck[0].To)
	})
}

// A service is swept until the context of Run ends.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Retention: time.Hour})
		running(t, s, "m")
		perform(t, s, ovc.KindVM, "m", ovc.Delete, nil)
		ctx, stop := context.WithCancel(t.Context())
		var sweeping errgroup.Group
		sweeping.Go(func() error { return lifecycle.Run(ctx, ovc.StuckAfter/10, nil, s) })
		time.Sleep(59 * time.Minute)
		require.Equal(t, ovc.Deleted, get(t, s, ovc.KindVM, "m").State)
		time.Sleep(5 * time.Minute)
		require.Equal(t, ovc.Destroyed, get(t, s, ovc.KindVM, "m").State)
		stop()
		require.NoError(t, sweeping.Wait())
		rows, err := s.Objects(ovc.KindVM).History(t.Context(), "m", 0, 0)
		require.NoError(t, err)
		other := func(row lifecycle.HistoryRow) bool { return row.Event != string(ovc.Expire) }
		require.Len(t, slices.DeleteFunc(rows, other), 1)
	})
}

// SelfHeal finds an action of an earlier process of the same name before its deadline.
func TestSelfHealAfterJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		process := func() *ovc.Service {
			owner, err := lifecycle.Join(t.Context(), store, "alpha", 0)
			require.NoError(t, err)
			return ovc.Must(store, &ovc.Config{Owner: owner})
		}
		s := process()
		running(t, s, "m")
		end := make(chan struct{})
		ticket := begin(t, s, ovc.KindVM, "m", ovc.Destroy, &ovc.Options{Run: func(context.Context) error {
			<-end
			return nil
		}})
		heir := process()
		found := heal(t, heir)
		require.Len(t, found.Stuck, 1)
		require.True(t, found.Stuck[0].OwnerDead)
		require.Equal(t, ovc.Running, get(t, heir, ovc.KindVM, "m").State)
		close(end)
		_, err := ticket.Wait(t.Context())
		require.Error(t, err)
		require.Equal(t, ovc.Running, get(t, heir, ovc.KindVM, "m").State)
	})
}

// An action that waits in one process is not stuck for another one while the first one heals.
// A method that runs for too long is.
func TestWaitingAcrossProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		alpha, beta := ovc.Must(store, nil), ovc.Must(store, nil)
		running(t, alpha, "m")
		add(t, alpha, ovc.KindDisk, "d", ovc.Model{})
		perform(t, alpha, ovc.KindVM, "m", ovc.AddDisk, &ovc.Options{With: "d"})
		takes := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); return nil }
		}
		migrate(t, alpha, "m", &ovc.Options{Run: takes(5 * time.Hour)})
		ticket := begin(t, alpha, ovc.KindVM, "m", ovc.DetachDisk, &ovc.Options{With: "d", Run: takes(2 * time.Hour)})
		heal := func(n int) (stuck int) {
			for range n {
				time.Sleep(10 * time.Minute)
				for _, s := range []*ovc.Service{alpha, beta} {
					stuck += len(heal(t, s).Stuck)
				}
			}
			return stuck
		}
		require.Zero(t, heal(5*6))
		require.Equal(t, 2, heal(6))
		_, err := ticket.Wait(t.Context())
		require.ErrorIs(t, err, lifecycle.ErrStale)
		require.Equal(t, ovc.Model{Disks: []string{"d"}}, get(t, alpha, ovc.KindVM, "m").Payload)
		require.Equal(t, ovc.Model{VM: "m"}, get(t, alpha, ovc.KindDisk, "d").Payload)
	})
}

// A machine was added with a disk that does not exist. It is destroyed without the disk.
func TestMissingDisk(t *testing.T) {
	var calls []ovc.Call
	s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
		calls = append(calls, c)
		return nil
	}})
	_, err := s.Add(t.Context(), ovc.KindVM, "m", ovc.Running, ovc.Model{Disks: []string{"d", "missing"}})
	require.NoError(t, err)
	_, err = s.Add(t.Context(), ovc.KindDisk, "d", ovc.Assigned, ovc.Model{VM: "m"})
	require.NoError(t, err)
	require.Equal(t, ovc.Destroyed, perform(t, s, ovc.KindVM, "m", ovc.Destroy, nil).State)
	require.Equal(t, ovc.Destroyed, get(t, s, ovc.KindDisk, "d").State)
	require.Len(t, calls, 3)
	require.Equal(t, []string{"d"}, calls[2].Disks)
}

// A sequence of methods ends at the end of its context, although the method that runs then
// succeeds.
func TestSequenceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var methods []ovc.Event
		s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(_ context.Context, c ovc.Call) error {
			methods = append(methods, c.Method)
			time.Sleep(time.Minute)
			return nil
		}})
		running(t, s, "m")
		methods = nil
		ticket := begin(t, s, ovc.KindVM, "m", ovc.Destroy, &ovc.Options{Timeout: 90 * time.Second})
		_, err := ticket.Wait(t.Context())
		var failed *lifecycle.OutcomeError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, lifecycle.TimedOut, failed.Outcome)
		require.Equal(t, []ovc.Event{ovc.Stop, ovc.Delete}, methods)
		require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
	})
}

// Work of the service's own handler with arguments that are not a job fails.
func TestForeignJob(t *testing.T) {
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	running(t, s, "m")
	ticket, err := s.Objects(ovc.KindVM).Do(t.Context(), "m", ovc.Pause, ovc.API, lifecycle.Named("methods", json.RawMessage("{")), nil)
	require.NoError(t, err)
	_, err = ticket.Wait(t.Context())
	require.ErrorIs(t, err, lifecycle.ErrForeign)
	require.Equal(t, ovc.Running, get(t, s, ovc.KindVM, "m").State)
}
