package blazar_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
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

// inAnHour is a lease of one resource that starts in an hour and ends an hour later.
func inAnHour(resource string) blazar.LeaseSpec {
	return blazar.LeaseSpec{
		Start: time.Now().Add(time.Hour), End: time.Now().Add(2 * time.Hour),
		Reservations: []blazar.Request{{Resource: resource, Amount: 1}},
	}
}

// A process lacks the plugin of a reservation. It refuses every method that needs the
// plugin, changes nothing, and leaves the events to a process that has it.
func TestMissingPlugin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), newChecked(t)
		with := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"gpu": {}}})
		without := newService(t, store, nil)
		createLease(t, with, inAnHour("gpu"))
		refuses := func(err error, status blazar.LeaseState) {
			t.Helper()
			require.ErrorIs(t, err, lifecycle.ErrMisconfigured)
			require.ErrorContains(t, err, `"gpu"`)
			requireLease(t, without, "l", status)
		}
		update := func(s *blazar.Service) error {
			_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{End: time.Now().Add(3 * time.Hour)})
			return err
		}
		_, err := without.StartLease(ctx, "l")
		refuses(err, blazar.LeasePending)
		refuses(update(without), blazar.LeasePending)
		refuses(without.DeleteLease(ctx, "l"), blazar.LeasePending)
		_, err = without.UpdateLease(ctx, "l", blazar.LeaseUpdate{Name: "renamed"}) // needs no plugin
		require.NoError(t, err)

		time.Sleep(time.Hour)
		handled, err := without.Process(ctx)
		require.NoError(t, err)
		require.Len(t, handled, 1)
		require.Equal(t, blazar.EventUndone, handled[0].Status)
		refuses(handled[0].Err, blazar.LeasePending)
		_, err = with.Process(ctx)
		require.NoError(t, err)
		requireLease(t, with, "l", blazar.LeaseActive)
		_, err = without.EndLease(ctx, "l")
		refuses(err, blazar.LeaseActive)

		require.NoError(t, update(with))
		_, err = with.EndLease(ctx, "l")
		require.NoError(t, err)
		require.NoError(t, without.DeleteLease(ctx, "l")) // nothing is left to release
		store.requireNoFaults(t)
	})
}

// A lease starts after an update has read it, and before the update begins: the update
// is judged by the lease that has started.
func TestUpdateJudgesWhatItCommits(t *testing.T) {
	ctx, store := t.Context(), scripttest.NewStore()
	config := &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}}
	s, other := newService(t, store, config), newService(t, store.MemoryStore, config)
	lease := createLease(t, s, inAnHour("host"))
	reads := 0
	store.Before(func(c scripttest.Call) error {
		if !c.Is(scripttest.Call{Method: "Get", Machine: "lease"}) {
			return nil
		}
		if reads++; reads == 3 { // after those that UpdateLease decides on
			_, err := other.StartLease(ctx, "l")
			require.NoError(t, err)
		}
		return nil
	})
	_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{Start: lease.Spec.Start.Add(time.Minute)})
	require.Greater(t, reads, 3)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.True(t, requireLease(t, s, "l", blazar.LeaseActive).Spec.Start.Equal(lease.Spec.Start))
}

// Of many simultaneous updates in two processes, the losers get ErrBusy.
func TestLosersOfUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newChecked(t)
		config := &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			Update: func(context.Context, blazar.Allocation) error { time.Sleep(time.Minute); return nil },
		}}}
		services := []*blazar.Service{newService(t, store, config), newService(t, store, config)}
		createLease(t, services[0], inAnHour("host"))
		for range 20 {
			errs := make([]error, 8)
			var all sync.WaitGroup
			for i := range errs {
				all.Go(func() {
					end := time.Now().Add(time.Duration(3+i) * time.Hour)
					_, errs[i] = services[i%2].UpdateLease(t.Context(), "l", blazar.LeaseUpdate{End: end})
				})
			}
			all.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
					continue
				}
				require.ErrorIs(t, err, lifecycle.ErrBusy)
			}
			require.Equal(t, 1, won)
		}
		store.requireNoFaults(t)
	})
}

// An update is refused as busy while another one is at work, also if the content that the
// other one replaces does not allow it.
func TestUpdateDuringUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), newChecked(t)
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			Update: func(context.Context, blazar.Allocation) error { time.Sleep(time.Minute); return nil },
		}}})
		lease := createLease(t, s, inAnHour("host"))
		var first errgroup.Group
		first.Go(func() error {
			_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{End: lease.Spec.End.Add(2 * time.Hour)})
			return err
		})
		synctest.Wait()
		late := blazar.LeaseUpdate{Start: lease.Spec.End.Add(time.Hour)}
		_, err := s.UpdateLease(ctx, "l", late)
		require.ErrorIs(t, err, lifecycle.ErrBusy)
		require.NoError(t, first.Wait())
		_, err = s.UpdateLease(ctx, "l", late)
		require.NoError(t, err)
		store.requireNoFaults(t)
	})
}

// An operator has added the record of a reservation that is not in the content of the lease:
// it gets the new times, and its amount stays.
func TestUpdateOfAddedReservation(t *testing.T) {
	ctx := t.Context()
	updated := map[string]int{}
	s := newService(t, newChecked(t), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
		Update: func(_ context.Context, a blazar.Allocation) error { updated[a.Reservation] = a.Amount; return nil },
	}}})
	lease := createLease(t, s, inAnHour("host"))
	own, added := lease.Reservations[0].ID, "l/1/reservation-2"
	require.Equal(t, "l/1/reservation-1", own)
	_, err := s.Reservations.Add(ctx, added, blazar.ReservationPending, blazar.Manager, blazar.ReservationSpec{
		Lease: "l", Request: blazar.Request{Resource: "host", Amount: 7},
	}, nil)
	require.NoError(t, err)
	_, err = s.UpdateLease(ctx, "l", blazar.LeaseUpdate{End: lease.Spec.End.Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, map[string]int{own: 1, added: 7}, updated)
	_, err = s.UpdateLease(ctx, "l", blazar.LeaseUpdate{Amounts: map[string]int{added: 8}})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	lease, err = s.UpdateLease(ctx, "l", blazar.LeaseUpdate{Amounts: map[string]int{own: 2}})
	require.NoError(t, err)
	amounts := map[string]int{}
	for _, r := range lease.Reservations {
		amounts[r.ID] = r.Amount
	}
	require.Equal(t, map[string]int{own: 2, added: 7}, amounts)
}

// The delete of a lease that has not begun hangs. The next lease on resources of its
// type starts in time.
func TestHangingDeleteHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), newChecked(t)
		hang := make(chan struct{})
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			OnEnd: func(context.Context, blazar.Allocation) error { <-hang; return errors.New("late") },
		}}})
		createLease(t, s, inAnHour("host"))
		next := inAnHour("host")
		next.Start, next.End = next.End, next.End.Add(time.Hour)
		_, err := s.CreateLease(ctx, "next", next)
		require.NoError(t, err)
		time.Sleep(119 * time.Minute)
		var deletion errgroup.Group
		deletion.Go(func() error { return s.DeleteLease(ctx, "l") })
		time.Sleep(2 * time.Minute)
		_, err = s.Process(ctx)
		require.NoError(t, err)
		requireLease(t, s, "l", blazar.LeaseDeleting)
		requireLease(t, s, "next", blazar.LeaseActive)
		close(hang)
		require.Error(t, deletion.Wait())
		store.requireNoFaults(t)
	})
}

// A delete hangs in its first reservation until another process has deleted the lease
// again. That delete finds the reservation released, and releases the others, also if its
// own release of the first one fails.
func TestLateDelete(t *testing.T) {
	for name, failure := range map[string]error{"released twice": nil, "released once": errMethod} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), newChecked(t)
				late, answers := make(chan error), make(chan error, 2)
				hanging := func(results <-chan error) *blazar.Config {
					return &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
						OnEnd: func(context.Context, blazar.Allocation) error { return <-results },
					}}}
				}
				first, second := newService(t, store, hanging(late)), newService(t, store, hanging(answers))
				spec := inAnHour("host")
				spec.Reservations = append(spec.Reservations, spec.Reservations[0])
				createLease(t, first, spec)
				var lateDeletion, deletion errgroup.Group
				lateDeletion.Go(func() error { return first.DeleteLease(ctx, "l") })
				time.Sleep(blazar.MethodTimeout + time.Minute)
				_, err := second.Sweep(ctx)
				require.NoError(t, err)
				requireLease(t, second, "l", blazar.LeaseError)

				deletion.Go(func() error { return second.DeleteLease(ctx, "l") })
				synctest.Wait()
				late <- nil
				synctest.Wait()    // the first process has marked the reservation, and hangs in the next one
				answers <- failure // of the first reservation
				answers <- nil
				require.ErrorIs(t, deletion.Wait(), failure)
				if failure != nil {
					for _, r := range requireLease(t, second, "l", blazar.LeaseError).Reservations {
						require.Equal(t, blazar.ReservationDeleted, r.Status)
					}
				}
				late <- nil
				require.Error(t, lateDeletion.Wait())
				store.requireNoFaults(t)
			})
		})
	}
}

// The timeouts of methods are configured by the status of the lease.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newChecked(t)
		hang := func(ctx context.Context, _ blazar.LeaseDetails) error { <-ctx.Done(); return context.Cause(ctx) }
		s := newService(t, store, &blazar.Config{Timeouts: map[blazar.LeaseState]time.Duration{
			blazar.LeaseStarting: 2 * time.Hour, blazar.LeaseUpdating: time.Minute,
		}})
		createLease(t, s, blazar.LeaseSpec{End: time.Now().Add(9 * time.Hour)})
		var all sync.WaitGroup
		for _, method := range []struct {
			call    blazar.Call
			timeout time.Duration
			during  blazar.LeaseState
			then    blazar.LeaseState
		}{
			{blazar.Update, time.Minute, blazar.LeaseUpdating, blazar.LeasePending},
			{blazar.Start, 2 * time.Hour, blazar.LeaseStarting, blazar.LeaseError},
			{blazar.Delete, blazar.MethodTimeout, blazar.LeaseDeleting, blazar.LeaseError},
		} {
			all.Go(func() { _, _ = s.Guard(t.Context(), "l", method.call, hang) })
			time.Sleep(method.timeout - time.Second)
			_, err := s.Sweep(t.Context())
			require.NoError(t, err)
			requireLease(t, s, "l", method.during)
			time.Sleep(2 * time.Second)
			_, err = s.Sweep(t.Context())
			require.NoError(t, err)
			requireLease(t, s, "l", method.then)
			all.Wait()
		}
		store.requireNoFaults(t)
	})
}

func TestInvalidTimeouts(t *testing.T) {
	for name, timeouts := range map[string]map[blazar.LeaseState]time.Duration{
		"zero":           {blazar.LeaseStarting: 0},
		"status at rest": {blazar.LeasePending: time.Hour},
		"unknown status": {"starting": time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := blazar.New(lifecycle.NewMemoryStore(), &blazar.Config{Timeouts: timeouts})
			require.ErrorIs(t, err, lifecycle.ErrInvalid)
		})
	}
}

// A plugin that ends its goroutine has failed, and the text of the error states how.
func TestPluginGoexit(t *testing.T) {
	s := newService(t, newChecked(t), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
		OnStart: func(context.Context, blazar.Allocation) error { runtime.Goexit(); return nil },
	}}})
	lease := createLease(t, s, inAnHour("host"))
	_, err := s.StartLease(t.Context(), lease.ID)
	failed, ok := errors.AsType[*queue.PanicError](err)
	require.True(t, ok)
	require.Equal(t, &queue.PanicError{Goexit: true}, failed)
	requireLease(t, s, lease.ID, blazar.LeaseError)
}

// An id with a slash would make the members of one lease those of another one too. It is
// refused, whichever call creates the lease.
func TestIDs(t *testing.T) {
	long := strings.Repeat("x", lifecycle.MaxID)
	for name, id := range map[string]string{"slash": "l/1", "long": long} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := newService(t, newChecked(t), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
			createLease(t, s, inAnHour("host"))
			_, created := s.CreateLease(ctx, id, inAnHour("host"))
			_, added := s.AddLease(ctx, id, blazar.LeaseActive, inAnHour("host"))
			_, byManager := s.Leases.Add(ctx, id, blazar.LeaseActive, blazar.User, inAnHour("host"), nil)
			for _, err := range []error{created, added, byManager} {
				require.ErrorIs(t, err, lifecycle.ErrInvalid)
				require.ErrorContains(t, err, ": id: ")
			}
			detail, ok := errors.AsType[*lifecycle.Error](added)
			require.True(t, ok)
			require.Equal(t, blazar.User, detail.Actor)
			require.Len(t, requireLease(t, s, "l", blazar.LeasePending).Reservations, 1)
		})
	}
}

func TestUpdateIntoThePast(t *testing.T) {
	s := newService(t, newChecked(t), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
	lease := createLease(t, s, inAnHour("host"))
	_, err := s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{Start: time.Now().Add(-time.Hour)})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorContains(t, err, "start: it must not be in the past")
	require.True(t, requireLease(t, s, "l", blazar.LeasePending).Spec.Start.Equal(lease.Spec.Start))
}
