package lattice_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/scripttest"
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
		createSystem(t, c, id)
	}
	return c
}

// createSystem creates a system and waits until it is stable.
func createSystem(t testing.TB, c *lattice.Controller, id lattice.SystemID) {
	t.Helper()
	h, err := c.CreateSystem(t.Context(), id, nil)
	require.NoError(t, err)
	_, err = h.Wait(t.Context())
	require.NoError(t, err)
}

// deleteSystem deletes a system and waits for that.
func deleteSystem(t testing.TB, c *lattice.Controller, id lattice.SystemID) {
	t.Helper()
	h, err := c.DeleteSystem(t.Context(), id)
	require.NoError(t, err)
	_, err = h.Wait(t.Context())
	require.NoError(t, err)
}

func stateOf(t testing.TB, c *lattice.Controller, system lattice.SystemID) lattice.State {
	rec, err := c.Systems().Get(t.Context(), string(system))
	require.NoError(t, err)
	return rec.State
}

// A system may have the longest id, after which no page of services can begin.
func TestLongestSystemID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		id := lattice.SystemID(strings.Repeat("s", lifecycle.MaxID))
		c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, id)
		require.Equal(t, lattice.State("stable"), stateOf(t, c, id))
		deleteSystem(t, c, id)
	})
}

// A service of another system that cannot be read is none of this system's.
func TestForeignServiceOfAnotherSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		foreign := lifecycle.Key{Machine: lattice.Service.Name(), ID: "b/x"}
		scripttest.Plant(t, store, foreign, func(c *lifecycle.StoredChange) { c.To.State = "melted" })
		c := live(t, store, lattice.Infrastructure{}, "a")
		require.Equal(t, lattice.State("stable"), stateOf(t, c, "a"))
		deleteSystem(t, c, "a")
	})
}

// pseudocode is the document's rule for the state of a system.
func pseudocode(services []lattice.ServiceState) lattice.State {
	counted := map[lattice.ServiceState]lattice.ServiceState{"failed": "degraded", "pending": "updating", "deleting": "updating"}
	for _, s := range []lattice.ServiceState{"degraded", "updating", "scaling"} {
		if slices.ContainsFunc(services, func(x lattice.ServiceState) bool { return x == s || counted[x] == s }) {
			return lattice.State(s)
		}
	}
	return "stable"
}

// After every observation, and after a restart, the system has the state that the
// document's rule gives.
func TestSystemFollowsItsServices(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store := lifecycle.NewMemoryStore()
		c := live(t, store, lattice.Infrastructure{}, "a", "ab")
		services := map[lattice.SystemID]map[string]lattice.ServiceState{"a": {}, "ab": {}}
		check := func() {
			for system, of := range services {
				require.Equal(r, pseudocode(slices.Collect(maps.Values(of))), stateOf(t, c, system), "%v", of)
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
				require.NoError(r, c.SetService(t.Context(), system, lock.MustParse(path), lattice.ServiceAbsent))
				delete(services[system], path)
			default:
				require.NoError(r, c.SetService(t.Context(), system, lock.MustParse(path), state))
				services[system][path] = state
			}
			check()
		}
	})
}

// When several concurrent observers have returned, the system follows all services.
func TestConcurrentObservers(t *testing.T) {
	c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, "s")
	for round := range 30 {
		var all errgroup.Group
		for i := range 8 {
			all.Go(func() error {
				path := lock.MustParse(fmt.Sprint("/", i))
				for n := range 5 {
					if err := c.SetService(t.Context(), "s", path, serviceStates[(i+n+round)%len(serviceStates)]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		require.NoError(t, all.Wait())
		var now []lattice.ServiceState
		for rec, err := range c.Services().All(t.Context(), lifecycle.Select[lattice.ServiceState]{}) {
			require.NoError(t, err)
			now = append(now, rec.State)
		}
		require.Len(t, now, 8)
		require.Equal(t, pseudocode(now), stateOf(t, c, "s"))
	}
}

// A sweep finds services that another process has changed in the store.
func TestSweepCountsAgain(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	c := live(t, store, lattice.Infrastructure{}, "s")
	require.NoError(t, c.SetService(t.Context(), "s", lock.MustParse("/a"), lattice.ServiceStable))
	others := lifecycle.Must(lattice.Service, store, nil)
	_, err := others.Fire(t.Context(), "s/a", lattice.Seen(lattice.ServiceFailed), lattice.Observer, nil)
	require.NoError(t, err)
	require.Equal(t, lattice.Stable, stateOf(t, c, "s"))
	require.NoError(t, sweep(t.Context(), c))
	require.Equal(t, lattice.Degraded, stateOf(t, c, "s"))
}

func TestInvalidObservations(t *testing.T) {
	c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, "s")
	at := lock.MustParse("/a")
	for name, x := range map[string]struct {
		system  lattice.SystemID
		service lock.Path
		state   lattice.ServiceState
		want    error
	}{
		"unknown state":                {"s", at, "asleep", fsm.ErrUnknownState},
		"absent service is gone":       {"s", at, lattice.ServiceAbsent, nil},
		"zero path":                    {"s", lock.Path{}, "stable", lifecycle.ErrInvalid},
		"root":                         {"s", lock.Root(), "stable", lifecycle.ErrInvalid},
		"root is gone":                 {"s", lock.Root(), lattice.ServiceAbsent, lifecycle.ErrInvalid},
		"empty system id":              {"", at, "stable", lifecycle.ErrInvalid},
		"system id with a slash":       {"s/a", at, "stable", lifecycle.ErrInvalid},
		"no system":                    {"none", at, "stable", lifecycle.ErrNotFound},
		"service of no system is gone": {"none", at, lattice.ServiceAbsent, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, c.SetService(t.Context(), x.system, x.service, x.state), x.want)
		})
	}
	for rec := range c.Services().All(t.Context(), lifecycle.Select[lattice.ServiceState]{}) {
		t.Errorf("service %s exists", rec.ID)
	}
	require.Equal(t, lattice.Stable, stateOf(t, c, "s"))
}

// systemRead is the read of a system.
var systemRead = scripttest.Call{Method: "Get", Machine: lattice.System.Name()}

// updating returns a controller of a system whose service /a is updating, and a function that
// sets a service.
func updating(t *testing.T) (*scripttest.Store, *lattice.Controller, func(service string, to lattice.ServiceState)) {
	store := scripttest.NewStore()
	c := live(t, store, lattice.Infrastructure{}, "s")
	set := func(service string, to lattice.ServiceState) {
		require.NoError(t, c.SetService(t.Context(), "s", lock.MustParse(service), to))
	}
	set("/a", lattice.ServiceUpdating)
	return store, c, set
}

// An observer that is slow to read the system counts the services after that: the system does not
// become stable, because another service is updating by then.
func TestOlderCountIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c, set := updating(t)
		before, err := c.Systems().Get(t.Context(), "s")
		require.NoError(t, err)
		synctest.Wait() // a new system also follows its services by itself
		ran := store.OnceBefore(systemRead, func() { set("/b", lattice.ServiceUpdating) })
		set("/a", lattice.ServiceStable)
		require.True(t, ran())
		rows, err := c.Systems().History(t.Context(), "s", before.Sequence, 0)
		require.NoError(t, err)
		require.Empty(t, rows)
		require.Equal(t, lattice.Updating, stateOf(t, c, "s"))
		require.NoError(t, c.Close(t.Context()))
	})
}

// An observer counts, and another one moves the system before the first one does. The older count
// moves nothing.
func TestOlderCountIsAConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c, set := updating(t)
		before, err := c.Systems().Get(t.Context(), "s")
		require.NoError(t, err)
		synctest.Wait() // a new system also follows its services by itself
		ran := func() bool { return false }
		store.OnceBefore(systemRead, func() { // the first read comes before the count, the second one after it
			ran = store.OnceBefore(systemRead, func() { set("/b", lattice.ServiceDegraded) })
		})
		set("/a", lattice.ServiceStable)
		require.True(t, ran())
		rows, err := c.Systems().History(t.Context(), "s", before.Sequence, 0)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, lattice.Degraded, stateOf(t, c, "s"))
		require.NoError(t, c.Close(t.Context()))
	})
}

// An observer counts before another one does, and commits after that one has found the system in
// the right state and has written nothing. The observer counts again.
func TestOlderCountIsCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c, set := updating(t)
		synctest.Wait() // a new system also follows its services by itself
		ran := func() bool { return false }
		store.OnceBefore(systemRead, func() { // the first read comes before the count, the second one after it
			ran = store.OnceBefore(systemRead, func() { set("/b", lattice.ServiceUpdating) })
		})
		set("/a", lattice.ServiceStable)
		require.True(t, ran())
		require.Equal(t, lattice.Updating, stateOf(t, c, "s"))
		require.NoError(t, c.Close(t.Context()))
	})
}

// An observer has the count of a system that is removed before the observer reads it.
// Another system of this name keeps the state of its own services.
func TestCountOfRemovedSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, c, set := updating(t)
		synctest.Wait() // a new system also follows its services by itself
		var before lattice.SystemRecord
		ran := store.OnceBefore(systemRead, func() {
			deleteSystem(t, c, "s")
			createSystem(t, c, "s")
			set("/b", lattice.ServiceDegraded)
			synctest.Wait()
			var err error
			before, err = c.Systems().Get(t.Context(), "s")
			require.NoError(t, err)
			require.Equal(t, lattice.Degraded, before.State)
		})
		set("/a", lattice.ServiceStable)
		require.True(t, ran())
		after, err := c.Systems().Get(t.Context(), "s")
		require.NoError(t, err)
		require.Equal(t, before, after)
		require.NoError(t, c.Close(t.Context()))
	})
}

// The last report about a service may come after the end of its system.
func TestServiceOfNoSystem(t *testing.T) {
	c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{})
	require.NoError(t, c.SetService(t.Context(), "none", lock.MustParse("/a"), lattice.ServiceAbsent))
	require.ErrorIs(t, c.SetService(t.Context(), "none", lock.MustParse("/a"), lattice.ServiceStable), lifecycle.ErrNotFound)
	require.NoError(t, c.Close(t.Context()))
}
