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
				deleteSystem(t, c, "s")
				require.Empty(t, store.list+store.commit)
				require.Equal(t, 1, removals)
				_, err := c.Services().Get(ctx, "s/a")
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
				deleteSystem(t, next, "s")
				createSystem(t, next, "s")
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
