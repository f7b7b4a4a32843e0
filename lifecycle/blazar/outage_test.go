package blazar_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// writing is a commit of a reservation.
var writing = scripttest.Call{Method: "Commit", Machine: "reservation"}

// fail lets the store fail for a minute from the next such call on. With made, that call is
// made, and its answer is lost.
func fail(s *scripttest.Store, at scripttest.Call, made bool) {
	if !made {
		s.OnceBefore(at, func() { s.Outage(time.Minute) })
		return
	}
	s.After(func(c scripttest.Call) error {
		if !c.Is(at) {
			return nil
		}
		s.After(nil)
		s.Outage(time.Minute)
		return lifecycle.ErrUnknownOutcome
	})
}

// A store that fails while a method is at work delays the method. The lease does not go to
// ERROR.
func TestOutageDuringMethod(t *testing.T) {
	for name, written := range map[string]bool{"after the plugin": false, "after the plugin, is written": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := scripttest.NewStore()
				calls := map[string]int{}
				during := func(what string) func(context.Context, blazar.Allocation) error {
					return func(context.Context, blazar.Allocation) error {
						calls[what]++
						fail(store, writing, written)
						return nil
					}
				}
				s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
					Reserve: func(context.Context, blazar.Allocation) (string, error) {
						calls["reserve"]++
						fail(store, writing, written)
						return "r", nil
					},
					OnStart: during("start"), OnEnd: during("end"),
				}}})
				begin := time.Now()
				lease := createLease(t, s, inAnHour("host"))
				require.Equal(t, "r", lease.Reservations[0].ResourceID)
				store.Outage(0)
				lease, err := s.StartLease(t.Context(), "l")
				require.NoError(t, err)
				require.Equal(t, blazar.LeaseActive, lease.Status)
				store.Outage(0)
				lease, err = s.EndLease(t.Context(), "l")
				require.NoError(t, err)
				require.Equal(t, blazar.LeaseTerminated, lease.Status)
				require.Equal(t, map[string]int{"reserve": 1, "start": 1, "end": 1}, calls)
				require.GreaterOrEqual(t, time.Since(begin), 3*time.Minute) // three outages
			})
		})
	}
}

// A store that fails when a refusal is reported delays the report. A refused creation creates
// nothing, and a refused update leads back.
func TestOutageDuringRefusal(t *testing.T) {
	for name, written := range map[string]bool{"is not written": false, "is written": true} {
		for method, creates := range map[string]bool{"creation": true, "update": false} {
			t.Run(method+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &scripttest.Store{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}}
					refuse := func() error {
						fail(store, scripttest.Call{Method: "Commit", Machine: "lease"}, written)
						return blazar.ErrRefused
					}
					s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
						Reserve: func(context.Context, blazar.Allocation) (string, error) {
							if creates {
								return "", refuse()
							}
							return "", nil
						},
						Update: func(context.Context, blazar.Allocation) error { return refuse() },
					}}})
					begin := time.Now()
					lease, err := s.CreateLease(t.Context(), "l", inAnHour("host"))
					if !creates {
						require.NoError(t, err)
						_, err = s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{End: lease.Spec.End.Add(time.Hour)})
					}
					require.ErrorIs(t, err, blazar.ErrRefused)
					require.NotErrorIs(t, err, lifecycle.ErrStale)
					require.GreaterOrEqual(t, time.Since(begin), time.Minute)
					synctest.Wait()
					time.Sleep(time.Hour)
					if creates {
						_, err := s.GetLease(t.Context(), "l")
						require.ErrorIs(t, err, lifecycle.ErrNotFound)
					} else {
						requireLease(t, s, "l", blazar.LeasePending)
					}
				})
			})
		}
	}
}

// failInMethod lets the store fail after the next commit, which starts a method.
func failInMethod(s *scripttest.Store, at scripttest.Call) {
	s.OnceAfter(scripttest.Call{Method: "Commit"}, func() { fail(s, at, false) })
}

// A store that fails when a method is about to begin delays the method.
func TestOutageBeforeMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scripttest.NewStore()
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
		createLease(t, s, inAnHour("host"))
		failInMethod(store, scripttest.Call{Method: "List"}) // of the members of the lease
		begin := time.Now()
		lease, err := s.StartLease(t.Context(), "l")
		require.NoError(t, err)
		require.Equal(t, blazar.LeaseActive, lease.Status)
		require.GreaterOrEqual(t, time.Since(begin), time.Minute)
	})
}

// A delete ends a method that waits for the store.
func TestDeleteDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scripttest.NewStore()
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			OnStart: func(context.Context, blazar.Allocation) error {
				fail(store, writing, false)
				return nil
			},
		}}})
		createLease(t, s, inAnHour("host"))
		var started error
		go func() { _, started = s.StartLease(t.Context(), "l") }()
		synctest.Wait()
		store.Outage(0)
		require.NoError(t, s.DeleteLease(t.Context(), "l"))
		synctest.Wait()
		require.ErrorIs(t, started, lifecycle.ErrStale)
	})
}

// The store fails before a method begins, and another process ends the operation meanwhile, at
// its deadline. The method calls no plugin.
func TestOutageBeforeMethodIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scripttest.NewStore()
		called := false
		config := &blazar.Config{
			Timeouts: map[blazar.LeaseState]time.Duration{blazar.LeaseStarting: 30 * time.Second},
			Plugins: map[string]blazar.Plugin{"host": {
				OnStart: func(context.Context, blazar.Allocation) error { called = true; return nil },
			}},
		}
		s, other := newService(t, store, config), newService(t, store.MemoryStore, config)
		createLease(t, s, inAnHour("host"))
		failInMethod(store, scripttest.Call{Method: "List"})
		var started error
		go func() { _, started = s.StartLease(t.Context(), "l") }()
		time.Sleep(45 * time.Second)
		results, err := other.Sweep(t.Context())
		require.NoError(t, err)
		require.Len(t, results, 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.ErrorIs(t, started, lifecycle.ErrStale)
		require.False(t, called)
		lease := requireLease(t, other, "l", blazar.LeaseError)
		require.Equal(t, blazar.ReservationPending, lease.Reservations[0].Status)
	})
}

// The store writes leases but no reservations. The method ends at its deadline.
func TestOutageOfReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scripttest.NewStore()
		s := newService(t, store, &blazar.Config{
			Timeouts: map[blazar.LeaseState]time.Duration{blazar.LeaseStarting: 30 * time.Second},
			Plugins:  map[string]blazar.Plugin{"host": {}},
		})
		createLease(t, s, inAnHour("host"))
		store.Refuse(writing, lifecycle.ErrUnavailable)
		var started error
		go func() { _, started = s.StartLease(t.Context(), "l") }()
		time.Sleep(31 * time.Second)
		results, err := s.Sweep(t.Context())
		require.NoError(t, err)
		require.Len(t, results, 1)
		synctest.Wait()
		require.ErrorIs(t, started, lifecycle.ErrStale)
		requireLease(t, s, "l", blazar.LeaseError)
	})
}

// The store fails in a method. Meanwhile another process ends the operation at its deadline and
// starts the next one, in the same status. The late method calls no plugin after the outage.
func TestNextMethodDuringOutage(t *testing.T) {
	for name, c := range map[string]struct {
		status blazar.LeaseState // of the lease during the method
		call   func(context.Context, *blazar.Service) error
		plugin func(func(context.Context, blazar.Allocation) error) blazar.Plugin
		at     scripttest.Call // of the store, which fails
		calls  []string        // of the first method
	}{
		"before the plugin": {
			status: blazar.LeaseUpdating, at: scripttest.Call{Method: "List"},
			call: func(ctx context.Context, s *blazar.Service) error {
				_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{End: time.Now().Add(3 * time.Hour)})
				return err
			},
			plugin: func(f func(context.Context, blazar.Allocation) error) blazar.Plugin { return blazar.Plugin{Update: f} },
		},
		"after the plugin": {
			status: blazar.LeaseDeleting, at: writing, calls: []string{"reservation-1"},
			call:   func(ctx context.Context, s *blazar.Service) error { return s.DeleteLease(ctx, "l") },
			plugin: func(f func(context.Context, blazar.Allocation) error) blazar.Plugin { return blazar.Plugin{OnEnd: f} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), scripttest.NewStore()
				service := func(store lifecycle.Store, plugin blazar.Plugin) *blazar.Service {
					return newService(t, store, &blazar.Config{
						Timeouts: map[blazar.LeaseState]time.Duration{c.status: 30 * time.Second},
						Plugins:  map[string]blazar.Plugin{"host": plugin},
					})
				}
				var late []string
				s := service(store, c.plugin(func(_ context.Context, a blazar.Allocation) error {
					late = append(late, shortName(a.Reservation))
					return nil
				}))
				end := make(chan struct{})
				other := service(store.MemoryStore, c.plugin(func(context.Context, blazar.Allocation) error { <-end; return nil }))
				spec := inAnHour("host")
				spec.Reservations = append(spec.Reservations, spec.Reservations[0])
				createLease(t, s, spec)
				failInMethod(store, c.at)
				var first, second error
				go func() { first = c.call(ctx, s) }()
				time.Sleep(45 * time.Second)
				results, err := other.Sweep(ctx)
				require.NoError(t, err)
				require.Len(t, results, 1)
				go func() { second = c.call(ctx, other) }()
				time.Sleep(25 * time.Second)
				lease, err := other.GetLease(ctx, "l")
				close(end)
				synctest.Wait()
				require.NoError(t, err)
				require.Equal(t, c.status, lease.Status)
				require.NoError(t, second)
				require.ErrorIs(t, first, lifecycle.ErrStale)
				require.Equal(t, c.calls, late)
			})
		})
	}
}
