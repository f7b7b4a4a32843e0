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

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/queue"
)

// machine is a resource that only one reservation has at a time.
type machine struct {
	mu    sync.Mutex
	has   map[string]bool // by reservation
	wrong []string
}

func (m *machine) plugin() blazar.Plugin {
	return blazar.Plugin{
		OnStart: func(_ context.Context, a blazar.Allocation) error {
			time.Sleep(time.Second)
			m.mu.Lock()
			defer m.mu.Unlock()
			if len(m.has) > 0 {
				m.wrong = append(m.wrong, fmt.Sprintf("%s gets what %v has", a.Lease, m.has))
			}
			m.has[a.Reservation] = true
			return nil
		},
		OnEnd: func(_ context.Context, a blazar.Allocation) error {
			time.Sleep(time.Second)
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.has, a.Reservation)
			return nil
		},
	}
}

// Leases follow each other on one machine without a pause. However seldom somebody
// looks, and if two do, none gets the machine before the one before it gave it back.
func TestAnEndComesBeforeAStart(t *testing.T) {
	for _, every := range []time.Duration{time.Minute, 90 * time.Minute, 3*time.Hour + time.Minute, 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			store, m := watch(), &machine{has: map[string]bool{}}
			config := blazar.Config{Plugins: map[string]blazar.Plugin{"machine": m.plugin()}}
			one, other := blazar.New(store, &config), blazar.New(store, &config)
			const n = 10
			for i := range n {
				start := time.Now().Add(time.Duration(i+1) * time.Hour)
				must(one.CreateLease(t.Context(), fmt.Sprintf("l%d", i), blazar.LeaseSpec{
					Start: start, End: start.Add(time.Hour), Reservations: []blazar.Request{{Resource: "machine", Amount: 1}},
				}))(t)
			}
			for range int(14*time.Hour/every) + 2 {
				time.Sleep(every)
				var both sync.WaitGroup
				for _, s := range []*blazar.Service{one, other} {
					both.Go(func() {
						if _, err := s.Process(t.Context()); err != nil {
							t.Errorf("Process: %v", err)
						}
					})
				}
				both.Wait()
			}
			leases := must(one.ListLeases(t.Context()))(t)
			require.Len(t, leases, n)
			for _, l := range leases {
				require.Equal(t, blazar.LeaseTerminated, l.Status, "%s, looked every %v: %s", l.ID, every, l.Reason)
			}
			require.Empty(t, m.wrong, "looked every %v", every)
			store.ends(t)
		})
	}
}

// What the guard makes of methods, whatever they are.
func TestGuard(t *testing.T) {
	errBoom := errors.New("boom")
	start := func(s *blazar.Service, active bool) blazar.Method {
		return func(ctx context.Context, lease blazar.LeaseInfo) error {
			if lease.Status != blazar.LeaseStarting || lease.Events[0].Status != blazar.EventInProgress {
				return fmt.Errorf("the lease is %s, its start %s", lease.Status, lease.Events[0].Status)
			}
			if !active {
				return nil
			}
			_, err := s.Reservations.Fire(ctx, lease.Reservations[0].ID, blazar.Start, blazar.Manager, nil)
			return err
		}
	}
	returns := func(err error) func(*blazar.Service) blazar.Method {
		return func(*blazar.Service) blazar.Method {
			return func(context.Context, blazar.LeaseInfo) error { return err }
		}
	}
	for name, c := range map[string]struct {
		call   blazar.Call
		method func(*blazar.Service) blazar.Method
		to     blazar.LeaseState
		event  blazar.EventState // start_lease
		is     error
	}{
		"succeeds": {
			blazar.Start, func(s *blazar.Service) blazar.Method { return start(s, true) },
			blazar.LeaseActive, blazar.EventDone, nil,
		},
		"succeeds, and the reservations do not go with it": {
			blazar.Start, func(s *blazar.Service) blazar.Method { return start(s, false) },
			blazar.LeaseError, blazar.EventError, lifecycle.ErrPrecondition,
		},
		"fails":                   {blazar.Start, returns(errBoom), blazar.LeaseError, blazar.EventError, errBoom},
		"refuses where it cannot": {blazar.Start, returns(blazar.ErrRefused), blazar.LeaseError, blazar.EventError, blazar.ErrRefused},
		"nothing to do": {
			blazar.Update, func(*blazar.Service) blazar.Method { return nil },
			blazar.LeasePending, blazar.EventUndone, nil,
		},
		"update succeeds":            {blazar.Update, returns(nil), blazar.LeasePending, blazar.EventUndone, nil},
		"update refuses":             {blazar.Update, returns(blazar.ErrRefused), blazar.LeasePending, blazar.EventUndone, blazar.ErrRefused},
		"update fails":               {blazar.Update, returns(errBoom), blazar.LeaseError, blazar.EventUndone, errBoom},
		"delete succeeds":            {blazar.Delete, returns(nil), "", "", nil},
		"delete fails":               {blazar.Delete, returns(errBoom), blazar.LeaseError, blazar.EventUndone, errBoom},
		"wrong edge":                 {blazar.Terminate, returns(nil), blazar.LeasePending, blazar.EventUndone, nil},
		"an outcome is not called":   {blazar.Done, returns(nil), blazar.LeasePending, blazar.EventUndone, nil},
		"a creation is no such call": {blazar.Create, returns(nil), blazar.LeasePending, blazar.EventUndone, lifecycle.ErrInvalid},
		"panics": {blazar.Start, func(*blazar.Service) blazar.Method {
			return func(context.Context, blazar.LeaseInfo) error { panic("boom") }
		}, blazar.LeaseError, blazar.EventError, queue.ErrPanic},
	} {
		t.Run(name, func(t *testing.T) {
			store := watch()
			s := blazar.New(store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
			made := must(s.CreateLease(t.Context(), "l", blazar.LeaseSpec{
				End: time.Now().Add(time.Hour), Reservations: []blazar.Request{{Resource: "host"}},
			}))(t)
			require.Equal(t, blazar.LeasePending, made.Status)
			lease, err := s.Guard(t.Context(), "l", c.call, c.method(s))
			ok := c.is == nil && name != "wrong edge" && name != "an outcome is not called"
			require.Equal(t, ok, err == nil, "%v", err)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			now, gone := s.GetLease(t.Context(), "l")
			if c.to == "" {
				require.ErrorIs(t, gone, lifecycle.ErrNotFound)
				require.Equal(t, blazar.LeaseAbsent, lease.Status)
				return
			}
			require.Equal(t, c.to, now.Status)
			require.Equal(t, c.event, now.Events[0].Status)
			if ok {
				require.Equal(t, now.Status, lease.Status)
			}
			store.ends(t)
		})
	}
}

// Who waits no longer than its context has not ended the method.
func TestWhoDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := blazar.New(watch(), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
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
		lease := must(s.GetLease(t.Context(), "l"))(t)
		require.Equal(t, blazar.LeasePending, lease.Status)
		require.Equal(t, "rack 7", lease.Reservations[0].ResourceID)
	})
}

// Run looks after everything by itself, and survives a store that fails.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := blazar.New(watch(), &blazar.Config{Notice: time.Hour})
		must(s.CreateLease(t.Context(), "l", blazar.LeaseSpec{Start: time.Now().Add(time.Hour), End: time.Now().Add(3 * time.Hour)}))(t)
		ctx, stop := context.WithCancel(t.Context())
		var types []string
		ended := make(chan error)
		go func() {
			ended <- s.Run(ctx, 0, func(handled []blazar.Handled, _ []lifecycle.SweepResult, err error) {
				if err != nil {
					t.Errorf("a round failed: %v", err)
				}
				for _, h := range handled {
					types = append(types, h.Type+" "+string(h.Status))
				}
			})
		}()
		time.Sleep(4 * time.Hour)
		stop()
		require.NoError(t, <-ended)
		require.Equal(t, []string{"start_lease DONE", "before_end_lease DONE", "end_lease DONE"}, types)
		require.Equal(t, blazar.LeaseTerminated, must(s.GetLease(t.Context(), "l"))(t).Status)
		require.ErrorIs(t, s.Run(t.Context(), -1, nil), lifecycle.ErrInvalid)
	})
}

// Many users, two processes, and plugins that fail, refuse and take their time: no
// commit ever leaves statuses that do not go together, all leases come to rest, and
// what was handed out to leases that are gone was taken back.
func TestAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := watch()
		var mu sync.Mutex
		out := map[string]string{} // lease by reservation
		luck := rand.New(rand.NewPCG(1, 2))
		draw := func(n int) int { mu.Lock(); defer mu.Unlock(); return luck.IntN(n) }
		fails := func(ctx context.Context) error {
			select {
			case <-time.After(time.Duration(draw(120)) * time.Second):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			switch draw(10) {
			case 0:
				return errBroken
			case 1:
				return blazar.ErrRefused
			}
			return nil
		}
		set := func(a blazar.Allocation, has bool) {
			mu.Lock()
			defer mu.Unlock()
			if delete(out, a.Reservation); has {
				out[a.Reservation] = a.Lease
			}
		}
		config := &blazar.Config{Notice: 10 * time.Minute, Plugins: map[string]blazar.Plugin{"host": {
			Reserve: func(ctx context.Context, _ blazar.Allocation) (string, error) { return "", fails(ctx) },
			Update:  func(ctx context.Context, _ blazar.Allocation) error { return fails(ctx) },
			OnStart: func(ctx context.Context, a blazar.Allocation) error {
				set(a, true) // before it is known whether that is all
				return fails(ctx)
			},
			BeforeEnd: func(ctx context.Context, _ blazar.Allocation) error { return fails(ctx) },
			OnEnd: func(ctx context.Context, a blazar.Allocation) error {
				if err := fails(ctx); err != nil {
					return err
				}
				set(a, false)
				return nil
			},
		}}}
		services := []*blazar.Service{blazar.New(store, config), blazar.New(store, config)}
		ctx, stop := context.WithCancel(t.Context())
		var everybody sync.WaitGroup
		for _, s := range services {
			everybody.Go(func() { _ = s.Run(ctx, time.Minute, nil) })
		}
		for user := range 6 {
			everybody.Go(func() {
				for range 60 {
					s, id := services[draw(2)], fmt.Sprintf("l%d", draw(4))
					start := time.Now().Add(time.Duration(draw(30)) * time.Minute)
					switch draw(6) {
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
							_ = s.Flag(ctx, lease.Reservations[0].ID, blazar.Flags{MissingResources: user%2 == 0})
						}
					}
					time.Sleep(time.Duration(draw(600)) * time.Second)
				}
			})
		}
		time.Sleep(48 * time.Hour)
		stop()
		everybody.Wait()
		store.ends(t)
		leases := map[string]bool{}
		for _, l := range must(services[0].ListLeases(t.Context()))(t) {
			require.True(t, l.Status.IsStable(), "%s is %s", l.ID, l.Status)
			for _, r := range l.Reservations {
				leases[r.ID] = true
			}
		}
		for reservation, lease := range out {
			require.True(t, leases[reservation], "lease %s is gone, and %s has resources", lease, reservation)
		}
	})
}

func must[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		require.NoError(t, err)
		return v
	}
}

// A process dies in the start of a lease. The next process of its name finds the
// lease by a sweep, without waiting for a deadline.
func TestSweepAfterJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := watch()
		hang := func(ctx context.Context, _ blazar.LeaseInfo) error { <-ctx.Done(); return context.Cause(ctx) }
		join := func() *blazar.Service {
			return blazar.New(store, &blazar.Config{Owner: must(lifecycle.Join(t.Context(), store, "alpha", time.Hour))(t)})
		}
		before := join()
		must(before.CreateLease(t.Context(), "l", blazar.LeaseSpec{End: time.Now().Add(time.Hour)}))(t)
		started := make(chan error, 1)
		go func() { _, err := before.Guard(t.Context(), "l", blazar.Start, hang); started <- err }()
		synctest.Wait()

		after := join()
		results := must(after.Sweep(t.Context()))(t)
		require.Len(t, results, 1)
		require.Equal(t, lifecycle.Moved, results[0].Resolution)
		lease := must(after.GetLease(t.Context(), "l"))(t)
		require.Equal(t, blazar.LeaseError, lease.Status)
		require.Equal(t, blazar.EventError, lease.Events[0].Status)
		require.NoError(t, after.DeleteLease(t.Context(), "l"))
		must(before.Sweep(t.Context()))(t) // ends the work that it has lost
		require.ErrorIs(t, <-started, lifecycle.ErrStale)
		store.ends(t)
	})
}

// A method that sends heartbeats is not considered dead, and neither is its event.
func TestSlowMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := watch()
		s := blazar.New(store, nil)
		must(s.CreateLease(t.Context(), "l", blazar.LeaseSpec{End: time.Now().Add(4 * time.Hour)}))(t)
		ended := make(chan error, 1)
		go func() {
			_, err := s.Guard(t.Context(), "l", blazar.Start, func(ctx context.Context, _ blazar.LeaseInfo) error {
				for range 12 {
					time.Sleep(10 * time.Minute)
					if err := lifecycle.TaskOf(ctx).Heartbeat(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			ended <- err
		}()
		held := 0
		for range 11 {
			time.Sleep(10*time.Minute + time.Second)
			for _, c := range must(s.Sweep(t.Context()))(t) {
				require.Equal(t, lifecycle.NotMoved, c.Resolution, "%v", c)
				require.ErrorIs(t, c.Err, lifecycle.ErrBusy)
				held++
			}
		}
		require.Positive(t, held)
		require.NoError(t, <-ended)
		require.Equal(t, blazar.LeaseActive, must(s.GetLease(t.Context(), "l"))(t).Status)
		store.ends(t)
	})
}
