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

// A store that fails when a refusal is reported delays the report. A refused update leads back.
func TestOutageDuringRefusal(t *testing.T) {
	for name, fault := range map[string]error{"is not written": lifecycle.ErrUnavailable, "is written": lifecycle.ErrUnknownOutcome} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &failing{MemoryStore: &lifecycle.MemoryStore{KeepHistory: -1}}
				s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {
					Update: func(context.Context, blazar.Allocation) error {
						store.when(func(call string, keys ...lifecycle.Key) error {
							if call == "commit" && keys[0].Machine == "lease" {
								return fault
							}
							return nil
						})
						return blazar.ErrRefused
					},
				}}})
				lease := createLease(t, s, inAnHour("host"))
				_, err := s.UpdateLease(t.Context(), "l", blazar.LeaseUpdate{End: lease.Spec.End.Add(time.Hour)})
				require.ErrorIs(t, err, blazar.ErrRefused)
				synctest.Wait()
				time.Sleep(time.Hour)
				requireLease(t, s, "l", blazar.LeasePending)
			})
		})
	}
}

// A store that fails when a method is about to begin delays the method.
func TestOutageBeforeMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{MemoryStore: lifecycle.NewMemoryStore()}
		s := newService(t, store, &blazar.Config{Plugins: map[string]blazar.Plugin{"host": {}}})
		createLease(t, s, inAnHour("host"))
		begun := false
		store.when(func(call string, keys ...lifecycle.Key) error {
			if begun && call == "list" {
				return lifecycle.ErrUnavailable
			}
			begun = begun || call == "commit"
			return nil
		})
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
		begun := false
		store.when(func(call string, keys ...lifecycle.Key) error {
			if begun && call == "list" {
				return lifecycle.ErrUnavailable
			}
			begun = begun || call == "commit"
			return nil
		})
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
