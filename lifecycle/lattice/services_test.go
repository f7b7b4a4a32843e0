package lattice_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

var serviceStates = []lattice.ServiceState{"pending", "stable", "updating", "scaling", "degraded", "failed", "deleting"}

// live returns a controller and a system that is stable.
func live(t testing.TB, store lifecycle.Store, infra lattice.Infrastructure, systems ...lattice.SystemID) *lattice.Controller {
	c, err := lattice.Start(t.Context(), store, infra, nil)
	require.NoError(t, err)
	for _, id := range systems {
		h, err := c.CreateSystem(t.Context(), id)
		require.NoError(t, err)
		_, err = h.Wait(t.Context())
		require.NoError(t, err)
	}
	return c
}

func stateOf(t testing.TB, c *lattice.Controller, system lattice.SystemID) lattice.State {
	rec, err := c.Systems().Get(t.Context(), string(system))
	require.NoError(t, err)
	return rec.State
}

// Whatever services do, in whatever order, the system is what the document's
// function says of them; and so is a controller that begins with what is stored.
func TestASystemIsWhatItsServicesComeTo(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store := lifecycle.NewMemoryStore()
		c := live(t, store, lattice.Infrastructure{}, "a", "ab")
		services := map[lattice.SystemID]map[string]lattice.ServiceState{"a": {}, "ab": {}}
		check := func() {
			for system, of := range services {
				want := lattice.Stable
				for _, s := range of {
					want = lattice.Aggregate(slices.Values([]lattice.ServiceState{lattice.ServiceState(want), s}))
				}
				require.Equal(r, want, stateOf(t, c, system), "%v", of)
			}
		}
		for range rapid.IntRange(1, 20).Draw(r, "n") {
			system := rapid.SampledFrom([]lattice.SystemID{"a", "ab"}).Draw(r, "system")
			path := rapid.SampledFrom([]string{"/a", "/b", "/b/c"}).Draw(r, "path")
			switch state := rapid.SampledFrom(append([]lattice.ServiceState{"restart", "gone"}, serviceStates...)).Draw(r, "state"); state {
			case "restart":
				require.NoError(r, c.Close(t.Context()))
				c = live(t, store, lattice.Infrastructure{})
			case "gone":
				require.NoError(r, c.RemoveService(t.Context(), system, lock.MustParse(path)))
				delete(services[system], path)
			default:
				require.NoError(r, c.SetService(t.Context(), system, lock.MustParse(path), state))
				services[system][path] = state
			}
			check()
		}
	})
}

// Many observers at once: when all have returned, the system is what the services
// come to, although each of them has seen others in between.
func TestManyObserversAtOnce(t *testing.T) {
	c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, "s")
	for round := range 30 {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				path := lock.MustParse(fmt.Sprint("/", i))
				for n := range 5 {
					if err := c.SetService(t.Context(), "s", path, serviceStates[(i+n+round)%len(serviceStates)]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		var now []lattice.ServiceState
		for rec, err := range c.Services().All(t.Context(), lifecycle.Select[lattice.ServiceState]{}) {
			require.NoError(t, err)
			now = append(now, rec.State)
		}
		require.Len(t, now, 8)
		require.Equal(t, lattice.Aggregate(slices.Values(now)), stateOf(t, c, "s"))
	}
}

// What somebody else has changed in the store is found by a sweep.
func TestASweepCountsAnew(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	c := live(t, store, lattice.Infrastructure{}, "s")
	require.NoError(t, c.SetService(t.Context(), "s", lock.MustParse("/a"), lattice.ServiceStable))
	others := lifecycle.Must(lattice.Service, store, nil)
	_, err := others.Fire(t.Context(), "s/a", lattice.SeenFailed, lattice.Observer, nil)
	require.NoError(t, err)
	require.Equal(t, lattice.Stable, stateOf(t, c, "s"))
	require.NoError(t, c.Sweep(t.Context()))
	require.Equal(t, lattice.Degraded, stateOf(t, c, "s"))
}

func TestObservationsThatAreNone(t *testing.T) {
	c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, "s")
	at := lock.MustParse("/a")
	for _, x := range []struct {
		err, want error
	}{
		{c.SetService(t.Context(), "s", at, "asleep"), fsm.ErrUnknownState},
		{c.SetService(t.Context(), "s", at, lattice.ServiceAbsent), fsm.ErrUnknownState},
		{c.SetService(t.Context(), "s", lock.Path{}, "stable"), lifecycle.ErrInvalid},
		{c.SetService(t.Context(), "s", lock.Root(), "stable"), lifecycle.ErrInvalid},
		{c.SetService(t.Context(), "", at, "stable"), lifecycle.ErrInvalid},
		{c.SetService(t.Context(), "s/a", at, "stable"), lifecycle.ErrInvalid},
		{c.RemoveService(t.Context(), "s", lock.Root()), lifecycle.ErrInvalid},
		{c.SetService(t.Context(), "nobody", at, "stable"), lifecycle.ErrNotFound},
		{c.RemoveService(t.Context(), "nobody", at), nil},
	} {
		require.ErrorIs(t, x.err, x.want)
	}
	for rec := range c.Services().All(t.Context(), lifecycle.Select[lattice.ServiceState]{}) {
		t.Errorf("%s is there", rec.ID)
	}
	require.Equal(t, lattice.Stable, stateOf(t, c, "s"))
}

// interposed is a store in which something happens before a system is read.
type interposed struct {
	*lifecycle.MemoryStore
	before func()
}

func (s *interposed) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if f := s.before; f != nil && key.Machine == lattice.System.Name() {
		s.before = nil
		f()
	}
	return s.MemoryStore.Get(ctx, key)
}

// Somebody has seen that the last service is stable, and is slow to say so.
// Meanwhile another one is being updated: the system is not stable for a moment in
// which who waits for that would be told so.
func TestWhoHasSeenLessIsNotHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &interposed{MemoryStore: lifecycle.NewMemoryStore()}
		c := live(t, store, lattice.Infrastructure{}, "s")
		set := func(service string, to lattice.ServiceState) {
			require.NoError(t, c.SetService(t.Context(), "s", lock.MustParse(service), to))
		}
		set("/a", lattice.ServiceUpdating)
		before, err := c.Systems().Get(t.Context(), "s")
		require.NoError(t, err)
		synctest.Wait() // the system that has come follows its services by itself, too
		store.before = func() { set("/b", lattice.ServiceUpdating) }
		set("/a", lattice.ServiceStable)
		require.Nil(t, store.before)
		rows, err := c.Systems().History(t.Context(), "s", before.Sequence, 0)
		require.NoError(t, err)
		require.Empty(t, rows)
		require.Equal(t, lattice.Updating, stateOf(t, c, "s"))
		require.NoError(t, c.Close(t.Context()))
	})
}
