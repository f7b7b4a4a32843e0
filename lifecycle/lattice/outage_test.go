package lattice_test

import (
	"cmp"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
)

// failing is a store that fails from a call on.
type failing struct {
	*lifecycle.MemoryStore
	list, commit string        // the machine of the call; empty: none
	lasts        time.Duration // 0: a minute
	until        time.Time
}

func (s *failing) down(machine string, at *string) error {
	if *at != "" && machine == *at {
		*at, s.until = "", time.Now().Add(cmp.Or(s.lasts, time.Minute))
	}
	if time.Now().Before(s.until) {
		return lifecycle.ErrUnavailable
	}
	return nil
}

func (s *failing) Get(ctx context.Context, key lifecycle.Key) (lifecycle.StoredRecord, error) {
	if err := s.down("", &s.list); err != nil {
		return lifecycle.StoredRecord{}, err
	}
	return s.MemoryStore.Get(ctx, key)
}

func (s *failing) List(ctx context.Context, q lifecycle.Query) ([]lifecycle.StoredRecord, error) {
	if err := s.down(q.Machine, &s.list); err != nil {
		return nil, err
	}
	return s.MemoryStore.List(ctx, q)
}

func (s *failing) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if err := s.down(c.Changes[0].To.Machine, &s.commit); err != nil {
		return err
	}
	return s.MemoryStore.Commit(ctx, c)
}

// A store that fails while a system is removed delays the removal. Remove is called once.
func TestOutageDuringRemoval(t *testing.T) {
	for name, fails := range map[string]func(*failing){
		"at the actions":  func(s *failing) { s.list = lattice.Deploy.Name() },
		"at the services": func(s *failing) { s.list = lattice.Service.Name() },
		"at a service":    func(s *failing) { s.commit = lattice.Service.Name() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), &failing{MemoryStore: lifecycle.NewMemoryStore()}
				removals := 0
				c := live(t, store, lattice.Infrastructure{Remove: func(context.Context, lattice.SystemID) error {
					removals++
					return nil
				}}, "s")
				synctest.Wait()
				require.NoError(t, c.SetService(ctx, "s", lock.MustParse("/a"), lattice.ServiceStable))
				fails(store)
				removed, err := c.DeleteSystem(ctx, "s")
				require.NoError(t, err)
				_, err = removed.Wait(ctx)
				require.NoError(t, err)
				require.Empty(t, store.list+store.commit)
				require.Equal(t, 1, removals)
				_, err = c.Services().Get(ctx, "s/a")
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
				require.NoError(t, c.Close(ctx))
			})
		})
	}
}

// The store fails for one controller while it removes a system. Meanwhile the next controller
// ends that removal at its deadline, removes the system, and creates another one of its name. The
// late removal leaves the new system alone.
func TestNextSystemDuringOutage(t *testing.T) {
	for name, c := range map[string]struct {
		fails    func(*failing)
		removals int // by the first controller
	}{
		"before Remove": {func(s *failing) { s.list = lattice.Deploy.Name() }, 0},
		"after Remove":  {func(s *failing) { s.list = lattice.Service.Name() }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), &failing{MemoryStore: lifecycle.NewMemoryStore(), lasts: time.Hour}
				removals := 0
				first := live(t, store, lattice.Infrastructure{Remove: func(context.Context, lattice.SystemID) error {
					removals++
					return nil
				}}, "s")
				c.fails(store)
				late, err := first.DeleteSystem(ctx, "s")
				require.NoError(t, err)
				time.Sleep(lattice.DeletionTimeout + time.Minute)
				next := live(t, store.MemoryStore, lattice.Infrastructure{})
				_, err = next.Sweep(ctx)
				require.NoError(t, err)
				removed, err := next.DeleteSystem(ctx, "s")
				require.NoError(t, err)
				_, err = removed.Wait(ctx)
				require.NoError(t, err)
				created, err := next.CreateSystem(ctx, "s", nil)
				require.NoError(t, err)
				_, err = created.Wait(ctx)
				require.NoError(t, err)
				require.NoError(t, next.SetService(ctx, "s", lock.MustParse("/a"), lattice.ServiceStable))
				_, err = late.Wait(ctx)
				require.ErrorIs(t, err, lifecycle.ErrStale)
				require.Equal(t, c.removals, removals)
				_, err = next.Services().Get(ctx, "s/a")
				require.NoError(t, err)
				require.NoError(t, first.Close(ctx))
				require.NoError(t, next.Close(ctx))
			})
		})
	}
}

// first is a store that calls a function before the first commit of a machine.
type first struct {
	*lifecycle.MemoryStore
	machine string
	before  func()
}

func (s *first) Commit(ctx context.Context, c *lifecycle.Commit) error {
	if f := s.before; f != nil && c.Changes[0].To.Machine == s.machine {
		s.before = nil
		f()
	}
	return s.MemoryStore.Commit(ctx, c)
}

// Another caller creates a system of the name while what an earlier one has left is removed.
// The records are those of the new system now, and stay.
func TestCreateIsOvertaken(t *testing.T) {
	for name, machine := range map[string]string{"at a service": lattice.Service.Name(), "at a deploy": lattice.Deploy.Name()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), &first{MemoryStore: lifecycle.NewMemoryStore(), machine: machine}
				c := live(t, store, lattice.Infrastructure{}, "s")
				_, err := c.Deploy(ctx, "s", "d", lock.Root(), nil)
				require.NoError(t, err)
				_, err = c.WaitDeploy(ctx, "s", "d")
				require.NoError(t, err)
				if machine == lattice.Service.Name() {
					require.NoError(t, c.SetService(ctx, "s", lock.MustParse("/a"), lattice.ServiceDegraded))
				}
				_, err = c.Systems().Override(ctx, "s", lattice.DoesNotExist, "operator", "lost", nil)
				require.NoError(t, err)
				synctest.Wait()
				store.before = func() {
					_, err := c.AddSystem(ctx, "s", lattice.Stable, nil)
					require.NoError(t, err)
				}
				_, err = c.CreateSystem(ctx, "s", nil)
				require.ErrorIs(t, err, lifecycle.ErrExists)
				require.Nil(t, store.before)
				_, err = c.Deploys().Get(ctx, "s/d")
				require.NoError(t, err)
				if machine == lattice.Service.Name() {
					_, err = c.Services().Get(ctx, "s/a")
					require.NoError(t, err)
				}
				require.NoError(t, c.Close(ctx))
			})
		})
	}
}

// The last report about a service may come after the end of its system.
func TestServiceOfNoSystem(t *testing.T) {
	c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{})
	require.NoError(t, c.SetService(t.Context(), "none", lock.MustParse("/a"), lattice.ServiceAbsent))
	require.ErrorIs(t, c.SetService(t.Context(), "none", lock.MustParse("/a"), lattice.ServiceStable), lifecycle.ErrNotFound)
	require.NoError(t, c.Close(t.Context()))
}
