package lattice_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// A store that fails while a system is removed delays the removal. Remove is called once.
func TestOutageDuringRemoval(t *testing.T) {
	for name, at := range map[string]scripttest.Call{
		"at the actions":  {Method: "List", Machine: lattice.Deploy.Name()},
		"at the services": {Method: "List", Machine: lattice.Service.Name()},
		"at a service":    {Method: "Commit", Machine: lattice.Service.Name()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), scripttest.NewStore()
				removals := 0
				c := live(t, store, lattice.Infrastructure{Remove: func(context.Context, lattice.SystemID) error {
					removals++
					return nil
				}}, "s")
				synctest.Wait()
				require.NoError(t, c.SetService(ctx, "s", lock.MustParse("/a"), lattice.ServiceStable))
				failed := store.OnceBefore(at, func() { store.Outage(time.Minute) })
				deleteSystem(t, c, "s")
				require.True(t, failed())
				require.Equal(t, 1, removals)
				_, err := c.Services().Get(ctx, "s/a")
				require.ErrorIs(t, err, lifecycle.ErrNotFound)
				require.NoError(t, c.Close(ctx))
			})
		})
	}
}

// The program closes the store during a deploy. A caller that waits gets the error, because
// no later attempt to write can succeed.
func TestStoreCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := scripttest.NewStore()
		var closed atomic.Bool
		store.Before(func(scripttest.Call) error {
			if closed.Load() {
				return lifecycle.ErrClosed
			}
			return nil
		})
		c := live(t, store, lattice.Infrastructure{Deploy: func(context.Context, lattice.Running) error {
			closed.Store(true)
			return nil
		}}, "s")
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		_, err := c.Deploy(ctx, "s", "d", lock.Root(), nil)
		require.NoError(t, err)
		_, err = c.WaitDeploy(ctx, "s", "d")
		require.ErrorIs(t, err, lifecycle.ErrClosed)
		require.NoError(t, c.Close(ctx))
	})
}

// The store fails for one controller while it removes a system. Meanwhile the next controller
// ends that removal at its deadline, removes the system, and creates another one of its name. The
// late removal leaves the new system alone.
func TestNextSystemDuringOutage(t *testing.T) {
	for name, c := range map[string]struct {
		machine  string // whose list fails
		removals int    // by the first controller
	}{
		"before Remove": {lattice.Deploy.Name(), 0},
		"after Remove":  {lattice.Service.Name(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), scripttest.NewStore()
				removals := 0
				first := live(t, store, lattice.Infrastructure{Remove: func(context.Context, lattice.SystemID) error {
					removals++
					return nil
				}}, "s")
				store.OnceBefore(scripttest.Call{Method: "List", Machine: c.machine}, func() { store.Outage(time.Hour) })
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

// The program aborts its queue during an outage, and closes the controller afterwards. The run
// that waits for the store ends with the queue, and the next controller continues the deploy.
func TestQueueEndsDuringOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), scripttest.NewStore()
		q := queue.Must[lifecycle.Key](nil)
		c, err := lattice.Start(ctx, store, lattice.Infrastructure{Deploy: func(context.Context, lattice.Running) error {
			store.Outage(time.Hour)
			return nil
		}}, &lattice.Config{Queue: q})
		require.NoError(t, err)
		createSystem(t, c, "s")
		_, err = c.Deploy(ctx, "s", "d", lock.Root(), nil)
		require.NoError(t, err)
		synctest.Wait() // the run waits for the store
		q.Abort(nil)
		start := time.Now()
		require.NoError(t, q.Terminate(ctx))
		require.Zero(t, time.Since(start))
		require.NoError(t, c.Close(ctx))

		next := live(t, store.MemoryStore, lattice.Infrastructure{})
		rec, err := next.WaitDeploy(ctx, "s", "d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionSucceeded, rec.State)
		require.NoError(t, next.Close(ctx))
	})
}

// The store refuses the end of a deploy, and that is no outage. The next sweep runs the deploy
// again, with the same operation and token.
func TestRefusedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), scripttest.NewStore()
		var calls []lattice.Running
		c := live(t, store, lattice.Infrastructure{Deploy: func(_ context.Context, r lattice.Running) error {
			calls = append(calls, r)
			return nil
		}}, "s")
		store.Refuse(scripttest.Call{Method: "Commit", Machine: lattice.Deploy.Name(), State: string(lattice.ActionSucceeded)}, errors.New("refused"))
		_, err := c.Deploy(ctx, "s", "d", lock.Root(), nil)
		require.NoError(t, err)
		synctest.Wait()
		require.Len(t, calls, 1)
		store.Before(nil)
		_, err = c.Sweep(ctx)
		require.NoError(t, err)
		rec, err := c.WaitDeploy(ctx, "s", "d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionSucceeded, rec.State)
		require.Len(t, calls, 2)
		require.Equal(t, calls[0], calls[1])
		require.NoError(t, c.Close(ctx))
	})
}
