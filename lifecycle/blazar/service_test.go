package blazar_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/queue"
)

// exclusive is a resource that one reservation has at a time.
type exclusive struct {
	mu      sync.Mutex
	holders map[string]bool // by reservation
	faults  []string
}

func (e *exclusive) plugin() blazar.Plugin {
	return blazar.Plugin{
		OnStart: func(_ context.Context, a blazar.Allocation) error {
			time.Sleep(time.Second)
			e.mu.Lock()
			defer e.mu.Unlock()
			if len(e.holders) > 0 {
				e.faults = append(e.faults, fmt.Sprintf("%s starts while %v have the resource", a.Lease, e.holders))
			}
			e.holders[a.Reservation] = true
			return nil
		},
		OnEnd: func(_ context.Context, a blazar.Allocation) error {
			time.Sleep(time.Second)
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.holders, a.Reservation)
			return nil
		},
	}
}

// Leases follow each other on one resource without a pause. A lease starts after the end
// of the one before, whatever the interval of Process, and in two processes.
func TestEndBeforeStart(t *testing.T) {
	for _, every := range []time.Duration{time.Minute, 90 * time.Minute, 3*time.Hour + time.Minute, 24 * time.Hour} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, e := newChecked(t), &exclusive{holders: map[string]bool{}}
				config := blazar.Config{Plugins: map[string]blazar.Plugin{"machine": e.plugin()}}
				services := []*blazar.Service{newService(t, store, &config), newService(t, store, &config)}
				const n = 10
				for i := range n {
					start := time.Now().Add(time.Duration(i+1) * time.Hour)
					_, err := services[0].CreateLease(t.Context(), fmt.Sprintf("l%d", i), blazar.LeaseSpec{
						Start: start, End: start.Add(time.Hour), Reservations: []blazar.Request{{Resource: "machine", Amount: 1}},
					})
					require.NoError(t, err)
				}
				for range int(14*time.Hour/every) + 2 {
					time.Sleep(every)
					var both errgroup.Group
					for _, s := range services {
						both.Go(func() error { _, err := s.Process(t.Context()); return err })
					}
					require.NoError(t, both.Wait())
				}
				leases, err := services[0].ListLeases(t.Context())
				require.NoError(t, err)
				require.Len(t, leases, n)
				for _, l := range leases {
					require.Equal(t, blazar.LeaseTerminated, l.Status, "%s: %s", l.ID, l.Reason)
				}
				require.Empty(t, e.faults)
				store.requireNoFaults(t)
			})
		})
	}
}

// The context of a caller ends while the method is at work: the method continues.
func TestCallerDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, newChecked(t), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			Reserve: func(context.Context, blazar.Allocation) (string, error) {
				time.Sleep(time.Minute)
				return "rack 7", nil
			},
		}}})
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := s.CreateLease(ctx, "l", blazar.LeaseSpec{
			End: time.Now().Add(time.Hour), Reservations: []blazar.Request{{Resource: "host"}},
		})
		require.ErrorIs(t, err, queue.ErrPending)
		time.Sleep(time.Minute)
		synctest.Wait()
		lease := requireLease(t, s, "l", blazar.LeasePending)
		require.Equal(t, "rack 7", lease.Reservations[0].ResourceID)
	})
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, newChecked(t), nil)
		createLease(t, s, blazar.LeaseSpec{Start: time.Now().Add(time.Hour), End: time.Now().Add(3 * time.Hour)})
		ctx, stop := context.WithCancel(t.Context())
		var types []string
		var rounds errgroup.Group
		rounds.Go(func() error {
			return s.Run(ctx, 0, func(_ context.Context, handled []blazar.Handled, _ []lifecycle.SweepResult, err error) {
				if err != nil {
					t.Errorf("Run: %v", err)
				}
				for _, h := range handled {
					types = append(types, h.Type+" "+string(h.Status))
				}
			})
		})
		time.Sleep(4 * time.Hour)
		stop()
		require.NoError(t, rounds.Wait())
		require.Equal(t, []string{"start_lease DONE", "end_lease DONE"}, types)
		requireLease(t, s, "l", blazar.LeaseTerminated)
		require.ErrorIs(t, s.Run(t.Context(), -1, nil), lifecycle.ErrInvalid)
		_, err := blazar.New(nil, nil)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	})
}

// world is a type of resources whose plugin is slow, fails and refuses by chance.
type world struct {
	mu      sync.Mutex
	random  *rand.Rand
	holders map[string]string // lease by reservation
}

func (w *world) draw(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.random.IntN(n)
}

func (w *world) set(a blazar.Allocation, has bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.holders, a.Reservation); has {
		w.holders[a.Reservation] = a.Lease
	}
}

func (w *world) work(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(w.draw(120)) * time.Second):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	switch w.draw(10) {
	case 0:
		return errBroken
	case 1:
		return blazar.ErrRefused
	}
	return nil
}

func (w *world) plugin() blazar.Plugin {
	return blazar.Plugin{
		Reserve: func(ctx context.Context, _ blazar.Allocation) (string, error) { return "", w.work(ctx) },
		Update:  func(ctx context.Context, _ blazar.Allocation) error { return w.work(ctx) },
		OnStart: func(ctx context.Context, a blazar.Allocation) error {
			w.set(a, true) // also if it fails
			return w.work(ctx)
		},
		OnEnd: func(ctx context.Context, a blazar.Allocation) error {
			if err := w.work(ctx); err != nil {
				return err
			}
			w.set(a, false)
			return nil
		},
	}
}

// user makes a random request.
func (w *world) user(ctx context.Context, s *blazar.Service) {
	id := fmt.Sprintf("l%d", w.draw(4))
	start := time.Now().Add(time.Duration(w.draw(30)) * time.Minute)
	switch w.draw(6) {
	case 0, 1:
		_, _ = s.CreateLease(ctx, id, blazar.LeaseSpec{
			Start: start, End: start.Add(40 * time.Minute),
			Reservations: []blazar.Request{{Resource: "host", Amount: 1}, {Resource: "host", Amount: 2}},
		})
	case 2:
		_, _ = s.UpdateLease(ctx, id, blazar.LeaseUpdate{End: start.Add(50 * time.Minute)})
	case 3:
		_ = s.DeleteLease(ctx, id)
	case 4:
		_, _ = s.EndLease(ctx, id)
	default:
		if lease, err := s.GetLease(ctx, id); err == nil {
			_ = s.Flag(ctx, lease.Reservations[0].ID, blazar.Flags{MissingResources: w.draw(2) == 0})
		}
	}
}

// Users, two processes and plugins that fail, refuse and are slow. Every commit has
// matching statuses, all leases come to rest, and the resources of deleted leases were
// released.
func TestConcurrentRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newChecked(t)
		w := &world{random: rand.New(rand.NewPCG(1, 2)), holders: map[string]string{}}
		config := &blazar.Config{Plugins: map[string]blazar.Plugin{"host": w.plugin()}}
		services := []*blazar.Service{newService(t, store, config), newService(t, store, config)}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, s := range services {
			all.Go(func() { _ = s.Run(ctx, time.Minute, nil) })
		}
		for range 6 {
			all.Go(func() {
				for range 60 {
					w.user(ctx, services[w.draw(2)])
					time.Sleep(time.Duration(w.draw(600)) * time.Second)
				}
			})
		}
		time.Sleep(48 * time.Hour)
		stop()
		all.Wait()
		store.requireNoFaults(t)
		leases, err := services[0].ListLeases(t.Context())
		require.NoError(t, err)
		reservations := map[string]bool{}
		for _, l := range leases {
			require.True(t, l.Status.IsStable(), "%s is %s", l.ID, l.Status)
			for _, r := range l.Reservations {
				reservations[r.ID] = true
			}
		}
		for reservation, lease := range w.holders {
			require.True(t, reservations[reservation], "%s is deleted, and %s has resources", lease, reservation)
		}
	})
}

// A process dies during the start of a lease. The next process of its name finds the
// lease by a sweep, without waiting for a deadline.
func TestSweepAfterJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newChecked(t)
		hang := func(ctx context.Context, _ blazar.LeaseDetails) error { <-ctx.Done(); return context.Cause(ctx) }
		join := func() *blazar.Service {
			owner, err := lifecycle.Join(t.Context(), store, "alpha", time.Hour)
			require.NoError(t, err)
			return newService(t, store, &blazar.Config{Owner: owner})
		}
		before := join()
		createLease(t, before, blazar.LeaseSpec{End: time.Now().Add(time.Hour)})
		var start errgroup.Group
		start.Go(func() error { _, err := before.Guard(t.Context(), "l", blazar.Start, hang); return err })
		synctest.Wait()

		after := join()
		results, err := after.Sweep(t.Context())
		require.NoError(t, err)
		require.Len(t, results, 1)
		require.Equal(t, lifecycle.Moved, results[0].Resolution)
		lease := requireLease(t, after, "l", blazar.LeaseError)
		require.Equal(t, blazar.EventError, lease.Events[0].Status)
		require.NoError(t, after.DeleteLease(t.Context(), "l"))
		_, err = before.Sweep(t.Context()) // ends its lost work
		require.NoError(t, err)
		require.ErrorIs(t, start.Wait(), lifecycle.ErrStale)
		store.requireNoFaults(t)
	})
}

// A process dies when it has given up an event that can never be executed. Later leases
// start nevertheless.
func TestGiveUpDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process := newChecked(t)
		config := &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			OnStart: func(_ context.Context, a blazar.Allocation) error {
				if a.Amount == 2 {
					return errors.New("it is broken")
				}
				return nil
			},
		}}}
		s := newService(t, process, config)
		half := inAnHour("host")
		half.Reservations = append(half.Reservations, blazar.Request{Resource: "host", Amount: 2})
		_, err := s.CreateLease(t.Context(), "half", half)
		require.NoError(t, err)
		later := inAnHour("host")
		later.Start, later.End = half.End.Add(time.Hour), half.End.Add(2*time.Hour)
		_, err = s.CreateLease(t.Context(), "later", later)
		require.NoError(t, err)
		time.Sleep(time.Hour)
		_, err = s.Process(t.Context()) // the start fails
		require.NoError(t, err)
		requireLease(t, s, "half", blazar.LeaseError)
		time.Sleep(time.Until(half.End))
		process.take()
		process.Die(1)
		_, err = s.Process(t.Context()) // the end can never be executed
		require.NoError(t, err)
		require.Equal(t, []string{"half: end_lease UNDONE -> ERROR"}, process.take())

		next := newService(t, process.MemoryStore, config)
		time.Sleep(time.Until(later.Start))
		_, err = next.Process(t.Context())
		require.NoError(t, err)
		requireLease(t, next, "later", blazar.LeaseActive)
	})
}

// The sweeper does not end a method that sends heartbeats.
func TestSlowMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newChecked(t)
		s := newService(t, store, nil)
		createLease(t, s, blazar.LeaseSpec{End: time.Now().Add(4 * time.Hour)})
		var start errgroup.Group
		start.Go(func() error {
			_, err := s.Guard(t.Context(), "l", blazar.Start, func(ctx context.Context, _ blazar.LeaseDetails) error {
				for range 12 {
					time.Sleep(10 * time.Minute)
					if err := lifecycle.TaskOf(ctx).Heartbeat(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			return err
		})
		for range 11 {
			time.Sleep(10*time.Minute + time.Second)
			results, err := s.Sweep(t.Context())
			require.NoError(t, err)
			require.Empty(t, results)
		}
		require.NoError(t, start.Wait())
		requireLease(t, s, "l", blazar.LeaseActive)
		store.requireNoFaults(t)
	})
}

// A reservation fails between the check of the combination and the commit of an update:
// the update is refused.
func TestReservationFailsDuringUpdate(t *testing.T) {
	ctx := t.Context()
	store := scripttest.NewStore()
	config := &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}}
	s, other := newService(t, store, config), newService(t, store.MemoryStore, config)
	lease := createLease(t, s, blazar.LeaseSpec{
		Start: time.Now().Add(time.Hour), End: time.Now().Add(2 * time.Hour),
		Reservations: []blazar.Request{{Resource: "host", Amount: 1}},
	})
	overtaken := store.OnceBefore(scripttest.Call{Method: "Get", Machine: "reservation"}, func() {
		_, err := other.Reservations.Override(ctx, lease.Reservations[0].ID, blazar.ReservationError, "operator", "test", nil)
		require.NoError(t, err)
	})
	_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{Amounts: map[string]int{lease.Reservations[0].ID: 2}})
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	require.True(t, overtaken())
	lease = requireLease(t, s, "l", blazar.LeaseError)
	require.Equal(t, blazar.ReservationError, lease.Reservations[0].Status)
}

var errMethod = errors.New("the method failed")

// An update that moves only the start, or only the end, is one of each reservation.
func TestUpdateOfOneTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().UTC().Add(time.Hour)
		var updated blazar.Allocation
		s := newService(t, lifecycle.NewMemoryStore(), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			Update: func(_ context.Context, a blazar.Allocation) error { updated = a; return nil },
		}}})
		spec := blazar.LeaseSpec{Start: start, End: start.Add(time.Hour), Reservations: []blazar.Request{{Resource: "host", Amount: 1}}}
		createLease(t, s, spec)
		for _, update := range []blazar.LeaseUpdate{{Start: start.Add(time.Minute)}, {End: start.Add(2 * time.Hour)}} {
			lease, err := s.UpdateLease(t.Context(), "l", update)
			require.NoError(t, err)
			require.Equal(t, []time.Time{lease.Spec.Start, lease.Spec.End}, []time.Time{updated.Start, updated.End})
		}
	})
}

// The amounts of a lease that has ended do not change.
func TestUpdateOfEndedAmount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newService(t, lifecycle.NewMemoryStore(), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
		lease := createLease(t, s, blazar.LeaseSpec{
			End: time.Now().Add(time.Hour), Reservations: []blazar.Request{{Resource: "host", Amount: 1}},
		})
		_, err := s.StartLease(t.Context(), "l")
		require.NoError(t, err)
		_, err = s.EndLease(t.Context(), "l")
		require.NoError(t, err)
		_, err = s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{Amounts: map[string]int{lease.Reservations[0].ID: 2}})
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.Equal(t, 1, requireLease(t, s, "l", blazar.LeaseTerminated).Spec.Reservations[0].Amount)
	})
}
