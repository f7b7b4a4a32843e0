package blazar_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
	"github.com/interlock-go/interlock/queue"
)

func TestGuard(t *testing.T) {
	start := func(s *blazar.Service, active bool) blazar.Method {
		return func(ctx context.Context, lease blazar.LeaseDetails) error {
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
			return func(context.Context, blazar.LeaseDetails) error { return err }
		}
	}
	for name, tt := range map[string]struct {
		call   blazar.Call
		method func(*blazar.Service) blazar.Method
		to     blazar.LeaseState // "": deleted
		event  blazar.EventState // start_lease
		err    error
	}{
		"start succeeds": {
			blazar.Start, func(s *blazar.Service) blazar.Method { return start(s, true) },
			blazar.LeaseActive, blazar.EventDone, nil,
		},
		"start leaves a pending reservation": {
			blazar.Start, func(s *blazar.Service) blazar.Method { return start(s, false) },
			blazar.LeaseError, blazar.EventError, lifecycle.ErrPrecondition,
		},
		"start fails":    {blazar.Start, returns(errMethod), blazar.LeaseError, blazar.EventError, errMethod},
		"start refuses":  {blazar.Start, returns(blazar.ErrRefused), blazar.LeaseError, blazar.EventError, blazar.ErrRefused},
		"no method":      {blazar.Update, func(*blazar.Service) blazar.Method { return nil }, blazar.LeasePending, blazar.EventUndone, nil},
		"update":         {blazar.Update, returns(nil), blazar.LeasePending, blazar.EventUndone, nil},
		"update refuses": {blazar.Update, returns(blazar.ErrRefused), blazar.LeasePending, blazar.EventUndone, blazar.ErrRefused},
		"update fails":   {blazar.Update, returns(errMethod), blazar.LeaseError, blazar.EventUndone, errMethod},
		"delete":         {blazar.Delete, returns(nil), "", "", nil},
		"delete fails":   {blazar.Delete, returns(errMethod), blazar.LeaseError, blazar.EventUndone, errMethod},
		"wrong status":   {blazar.Terminate, returns(nil), blazar.LeasePending, blazar.EventUndone, fsm.ErrNotAllowed},
		"outcome":        {blazar.Done, returns(nil), blazar.LeasePending, blazar.EventUndone, fsm.ErrNotAllowed},
		"create":         {blazar.Create, returns(nil), blazar.LeasePending, blazar.EventUndone, lifecycle.ErrInvalid},
		"panic": {blazar.Start, func(*blazar.Service) blazar.Method {
			return func(context.Context, blazar.LeaseDetails) error { panic("test") }
		}, blazar.LeaseError, blazar.EventError, queue.ErrPanic},
	} {
		t.Run(name, func(t *testing.T) {
			store := newChecked(t)
			s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
			createLease(t, s, blazar.LeaseSpec{
				End: time.Now().Add(time.Hour), Reservations: []blazar.Request{{Resource: "host"}},
			})
			lease, err := s.Guard(t.Context(), "l", tt.call, tt.method(s))
			require.ErrorIs(t, err, tt.err)
			if tt.to == "" {
				_, err := s.GetLease(t.Context(), "l")
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
				require.Equal(t, blazar.LeaseAbsent, lease.Status)
				return
			}
			now := requireLease(t, s, "l", tt.to)
			require.Equal(t, tt.event, now.Events[0].Status)
			if tt.err == nil {
				require.Equal(t, now.Status, lease.Status)
			}
			store.requireNoFaults(t)
		})
	}
}

// Many guards on one lease, in two processes: one method is at work at any time, and the
// others are refused. One delete interrupts it, and no method starts after that.
func TestConcurrentGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newChecked(t)
		services := []*blazar.Service{newService(t, store, nil), newService(t, store, nil)}
		createLease(t, services[0], blazar.LeaseSpec{End: time.Now().Add(24 * time.Hour)})
		var (
			mu      sync.Mutex
			working = map[blazar.Call]int{}
			ran     = map[blazar.Call]int{}
			results = map[string]int{}
		)
		method := func(call blazar.Call) blazar.Method {
			return func(ctx context.Context, _ blazar.LeaseDetails) error {
				mu.Lock()
				for other, n := range working {
					if n > 0 && call != blazar.Delete {
						t.Errorf("%s starts while %s is at work", call, other)
					}
				}
				if ran[blazar.Delete] > 0 {
					t.Errorf("%s starts after a delete", call)
				}
				working[call]++
				ran[call]++
				mu.Unlock()
				defer func() { mu.Lock(); working[call]--; mu.Unlock() }()
				select {
				case <-time.After(time.Second):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		}
		var all sync.WaitGroup
		request := func(n int, call blazar.Call) {
			all.Go(func() {
				_, err := services[n%2].Guard(t.Context(), "l", call, method(call))
				result := fmt.Sprint(err)
				for name, sentinels := range map[string][]error{
					"busy": {lifecycle.ErrBusy, lifecycle.ErrConflict}, "not found": {lifecycle.ErrNotFound}, "stale": {lifecycle.ErrStale},
				} {
					for _, sentinel := range sentinels {
						if errors.Is(err, sentinel) {
							result = name
						}
					}
				}
				mu.Lock()
				defer mu.Unlock()
				results[fmt.Sprintf("%s: %s", call, result)]++
			})
		}
		for round := range 20 {
			for n := range 8 {
				request(n, blazar.Update)
			}
			if round == 10 {
				time.Sleep(time.Millisecond)
				for n := range 8 {
					request(n, blazar.Delete)
				}
			}
			time.Sleep(2 * time.Second)
		}
		all.Wait()
		require.Equal(t, map[blazar.Call]int{blazar.Update: 11, blazar.Delete: 1}, ran)
		require.Equal(t, map[string]int{
			"update: <nil>": 10, "update: busy": 77, "update: stale": 1, "update: not found": 72,
			"delete: <nil>": 1, "delete: busy": 7,
		}, results)
		store.requireNoFaults(t)
	})
}

// A delete is repeated if another call has changed the status meanwhile, except another
// delete.
func TestOvertakenDelete(t *testing.T) {
	for name, tt := range map[string]struct {
		other func(ctx context.Context, s *blazar.Service) error
		want  error
	}{
		"by a start": {func(ctx context.Context, s *blazar.Service) error { _, err := s.StartLease(ctx, "l"); return err }, nil},
		"by an update": {func(ctx context.Context, s *blazar.Service) error {
			_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{Name: "n"})
			return err
		}, nil},
		"by a delete": {func(ctx context.Context, s *blazar.Service) error { return s.DeleteLease(ctx, "l") }, lifecycle.ErrNotFound},
		"by a delete at work": {func(ctx context.Context, s *blazar.Service) error {
			_, err := s.Leases.Fire(ctx, "l", blazar.Delete, blazar.User, nil)
			return err
		}, lifecycle.ErrBusy},
	} {
		t.Run(name, func(t *testing.T) {
			store := scripttest.NewStore()
			s := newService(t, store, nil)
			createLease(t, s, blazar.LeaseSpec{End: time.Now().Add(time.Hour)})
			overtaken := store.OnceBefore(scripttest.Call{Method: "Commit", State: string(blazar.LeaseDeleting)}, func() {
				require.NoError(t, tt.other(t.Context(), newService(t, store.MemoryStore, nil)))
			})
			require.ErrorIs(t, s.DeleteLease(t.Context(), "l"), tt.want)
			require.True(t, overtaken())
		})
	}
}

// An abandoned method may report its refusal after its caller has the result.
func TestAbandonedRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scripttest.NewStore()
		q := queue.Must[lifecycle.Key](nil)
		s := newService(t, store, &blazar.Config{Queue: q, Plugins: map[string]blazar.Plugin{"host": {
			Update: func(context.Context, blazar.Allocation) error {
				store.OnceAfter(scripttest.Call{Method: "Commit"}, func() { time.Sleep(time.Hour) })
				return blazar.ErrRefused
			},
		}}})
		lease := createLease(t, s, inAnHour("host"))
		var updated error
		go func() {
			_, updated = s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{End: lease.Spec.End.Add(time.Hour)})
		}()
		time.Sleep(time.Minute)
		require.True(t, q.Abandon(lifecycle.Key{Machine: "lease", ID: "l"}))
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.ErrorIs(t, updated, queue.ErrAbandoned)
		requireLease(t, s, "l", blazar.LeasePending)
	})
}

// A delete interrupts the release of the reservations of a refused creation. The delete alone
// releases those that are left.
func TestDeleteDuringUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		s := newService(t, lifecycle.NewMemoryStore(), &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			Reserve: func(_ context.Context, a blazar.Allocation) (string, error) {
				if strings.HasSuffix(a.Reservation, "3") {
					return "", blazar.ErrRefused
				}
				return "", nil
			},
			OnEnd: func(ctx context.Context, a blazar.Allocation) error {
				ended = append(ended, shortName(a.Reservation))
				if len(ended) == 1 {
					<-ctx.Done()
				}
				return nil
			},
		}}})
		spec := inAnHour("host")
		spec.Reservations = append(spec.Reservations, spec.Reservations[0], spec.Reservations[0])
		var created error
		go func() { _, created = s.CreateLease(t.Context(), "l", spec) }()
		synctest.Wait()
		require.NoError(t, s.DeleteLease(t.Context(), "l"))
		synctest.Wait()
		require.ErrorIs(t, created, lifecycle.ErrStale)
		require.False(t, errors.Is(created, blazar.ErrRefused))
		require.Equal(t, []string{"reservation-2", "reservation-1", "reservation-2", "reservation-3"}, ended)
	})
}
