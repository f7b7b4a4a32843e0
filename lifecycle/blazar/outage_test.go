package blazar_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/blazar"
)

// failing is a store that fails for a minute from the call that fails returns true for.
type failing struct {
	*lifecycle.MemoryStore

	mu    sync.Mutex
	fails func(call string, keys ...lifecycle.Key) error // nil: none
	until time.Time
}

// when sets the function; nil: the store works.
func (s *failing) when(fails func(call string, keys ...lifecycle.Key) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.until = fails, time.Time{}
}

// failed reports whether the store has failed since when was called.
func (s *failing) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fails == nil
}

func (s *failing) down(call string, keys ...lifecycle.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		if err := s.fails(call, keys...); err != nil {
			s.fails, s.until = nil, time.Now().Add(time.Minute)
			return err
		}
	}
	if time.Now().Before(s.until) {
		return lifecycle.ErrUnavailable
	}
	return nil
}

func (s *failing) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if err := s.down("get", key); err != nil {
		return lifecycle.StoredRecord{}, err
	}
	return s.MemoryStore.Get(ctx, key)
}

func (s *failing) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if err := s.down("list", lifecycle.Key{Machine: q.Machine}); err != nil {
		return nil, err
	}
	return s.MemoryStore.List(ctx, q)
}

func (s *failing) Commit(ctx context.Context, c *lifecycle.Commit) error {
	var keys []lifecycle.Key
	for _, ch := range c.Changes {
		keys = append(keys, ch.To.Key)
	}
	err := s.down("commit", keys...)
	if errors.Is(err, lifecycle.ErrUnknownOutcome) {
		if err := s.MemoryStore.Commit(ctx, c); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return s.MemoryStore.Commit(ctx, c)
}

// A store that fails while a method is at work delays the method. The lease does not go to
// ERROR.
func TestOutageDuringMethod(t *testing.T) {
	commits := func(err error) func(string, ...lifecycle.Key) error {
		return func(call string, keys ...lifecycle.Key) error {
			if call == "commit" && keys[0].Machine == "reservation" {
				return err
			}
			return nil
		}
	}
	for name, fails := range map[string]func(call string, keys ...lifecycle.Key) error{
		"after the plugin":             commits(lifecycle.ErrUnavailable),
		"after the plugin, is written": commits(lifecycle.ErrUnknownOutcome),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &failing{MemoryStore: lifecycle.NewMemoryStore()}
				calls := map[string]int{}
				during := func(what string) func(context.Context, blazar.Allocation) error {
					return func(context.Context, blazar.Allocation) error { calls[what]++; store.when(fails); return nil }
				}
				s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
					Reserve: func(context.Context, blazar.Allocation) (string, error) {
						calls["reserve"]++
						store.when(fails)
						return "r", nil
					},
					OnStart: during("start"), OnEnd: during("end"),
				}}})
				lease := createLease(t, s, inAnHour("host"))
				require.Equal(t, "r", lease.Reservations[0].ResourceID)
				store.when(nil)
				lease, err := s.StartLease(t.Context(), "l")
				require.NoError(t, err)
				require.Equal(t, blazar.LeaseActive, lease.Status)
				store.when(nil)
				lease, err = s.EndLease(t.Context(), "l")
				require.NoError(t, err)
				require.Equal(t, blazar.LeaseTerminated, lease.Status)
				require.Equal(t, map[string]int{"reserve": 1, "start": 1, "end": 1}, calls)
			})
		})
	}
}

// A store that fails when a refusal is reported delays the report. A refused creation creates
// nothing, and a refused update leads back.
func TestOutageDuringRefusal(t *testing.T) {
	for name, fault := range map[string]error{"is not written": lifecycle.ErrUnavailable, "is written": lifecycle.ErrUnknownOutcome} {
		for method, creates := range map[string]bool{"creation": true, "update": false} {
			t.Run(method+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &failing{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}}
					refuse := func() error {
						store.when(func(call string, keys ...lifecycle.Key) error {
							if call == "commit" && keys[0].Machine == "lease" {
								return fault
							}
							return nil
						})
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
					lease, err := s.CreateLease(t.Context(), "l", inAnHour("host"))
					if !creates {
						require.NoError(t, err)
						_, err = s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{End: lease.Spec.End.Add(time.Hour)})
					}
					require.ErrorIs(t, err, blazar.ErrRefused)
					require.NotErrorIs(t, err, lifecycle.ErrStale)
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

// beforeMethod fails the reads of the members of a lease, after the commit that starts a method.
func beforeMethod() func(call string, keys ...lifecycle.Key) error {
	begun := false
	return func(call string, _ ...lifecycle.Key) error {
		if begun && call == "list" {
			return lifecycle.ErrUnavailable
		}
		begun = begun || call == "commit"
		return nil
	}
}

// A store that fails when a method is about to begin delays the method.
func TestOutageBeforeMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{MemoryStore: lifecycle.NewMemoryStore()}
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
		createLease(t, s, inAnHour("host"))
		store.when(beforeMethod())
		lease, err := s.StartLease(t.Context(), "l")
		require.NoError(t, err)
		require.Equal(t, blazar.LeaseActive, lease.Status)
		require.True(t, store.failed())
	})
}

// A delete ends a method that waits for the store.
func TestDeleteDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{MemoryStore: lifecycle.NewMemoryStore()}
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
			OnStart: func(context.Context, blazar.Allocation) error {
				store.when(func(call string, keys ...lifecycle.Key) error {
					if call == "commit" && keys[0].Machine == "reservation" {
						return lifecycle.ErrUnavailable
					}
					return nil
				})
				return nil
			},
		}}})
		createLease(t, s, inAnHour("host"))
		var started error
		go func() { _, started = s.StartLease(t.Context(), "l") }()
		synctest.Wait()
		store.when(nil)
		require.NoError(t, s.DeleteLease(t.Context(), "l"))
		synctest.Wait()
		require.ErrorIs(t, started, lifecycle.ErrStale)
	})
}

// The store fails before a method begins, and another process ends the operation meanwhile, at
// its deadline. The method calls no plugin.
func TestOutageBeforeMethodIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{MemoryStore: lifecycle.NewMemoryStore()}
		called := false
		config := &blazar.Config{
			Timeouts: map[blazar.LeaseState]time.Duration{blazar.LeaseStarting: 30 * time.Second},
			Plugins: map[string]blazar.Plugin{"host": {
				OnStart: func(context.Context, blazar.Allocation) error { called = true; return nil },
			}},
		}
		s, other := newService(t, store, config), newService(t, store.MemoryStore, config)
		createLease(t, s, inAnHour("host"))
		store.when(beforeMethod())
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
		store := &between{MemoryStore: lifecycle.NewMemoryStore(), machine: "reservation"}
		s := newService(t, store, &blazar.Config{
			Timeouts: map[blazar.LeaseState]time.Duration{blazar.LeaseStarting: 30 * time.Second},
			Plugins:  map[string]blazar.Plugin{"host": {}},
		})
		createLease(t, s, inAnHour("host"))
		store.refuse = lifecycle.ErrUnavailable
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
		before bool     // the store fails before the plugin is called
		calls  []string // of the first method
	}{
		"before the plugin": {
			status: blazar.LeaseUpdating, before: true,
			call: func(ctx context.Context, s *blazar.Service) error {
				_, err := s.UpdateLease(ctx, "l", blazar.LeaseUpdate{End: time.Now().Add(3 * time.Hour)})
				return err
			},
			plugin: func(f func(context.Context, blazar.Allocation) error) blazar.Plugin { return blazar.Plugin{Update: f} },
		},
		"after the plugin": {
			status: blazar.LeaseDeleting, calls: []string{"reservation-1"},
			call:   func(ctx context.Context, s *blazar.Service) error { return s.DeleteLease(ctx, "l") },
			plugin: func(f func(context.Context, blazar.Allocation) error) blazar.Plugin { return blazar.Plugin{OnEnd: f} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), &failing{MemoryStore: lifecycle.NewMemoryStore()}
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
				begun := false
				store.when(func(call string, keys ...lifecycle.Key) error {
					if begun && (c.before && call == "list" || call == "commit" && keys[0].Machine == "reservation") {
						return lifecycle.ErrUnavailable
					}
					begun = begun || call == "commit"
					return nil
				})
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
