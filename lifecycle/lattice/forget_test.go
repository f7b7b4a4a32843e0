package lattice_test

import (
	"context"
	"errors"
	"runtime"
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

// The record of an action that has ended can be removed, and its name used again.
func TestRemoveActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		answers := make(chan error)
		deploy := func(ctx context.Context, _ lattice.Running) error {
			select {
			case err := <-answers:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{Deploy: deploy}, "s")
		require.ErrorIs(t, c.RemoveDeploy(ctx, "s", "d"), lifecycle.ErrNotFound)
		for _, path := range []string{"/a", "/b"} {
			_, err := c.Deploy(ctx, "s", "d", lock.MustParse(path), nil)
			require.NoError(t, err)
			synctest.Wait()
			require.ErrorIs(t, c.RemoveDeploy(ctx, "s", "d"), lifecycle.ErrBusy)
			answers <- nil
			rec, err := c.WaitDeploy(ctx, "s", "d")
			require.NoError(t, err)
			require.Equal(t, lattice.ActionSucceeded, rec.State)
			require.NoError(t, c.RemoveDeploy(ctx, "s", "d"))
			_, err = c.Deploys().Get(ctx, "s/d")
			require.ErrorIs(t, err, lifecycle.ErrNotFound)
		}
		for range 2 {
			_, err := c.Teardown(ctx, "s", "t", nil)
			require.NoError(t, err)
			_, err = c.WaitTeardown(ctx, "s", "t")
			require.NoError(t, err)
			require.NoError(t, c.RemoveTeardown(ctx, "s", "t"))
		}
		require.NoError(t, c.Close(ctx))
	})
}

// An operator removes a deploy that is in progress. Its work is canceled, and its lock is
// released.
func TestOverrideRemovesDeploy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{Deploy: func(ctx context.Context, _ lattice.Running) error {
			<-ctx.Done()
			return ctx.Err()
		}}, "s")
		_, err := c.Deploy(ctx, "s", "d", lock.Root(), nil)
		require.NoError(t, err)
		synctest.Wait()
		_, err = c.Deploys().Override(ctx, "s/d", lattice.ActionAbsent, "operator", "lost", nil)
		require.NoError(t, err)
		synctest.Wait()
		held, _ := c.Actions().InProgressActions("s")
		require.Empty(t, held)
		require.NoError(t, c.Close(ctx))
	})
}

// A system that is created again under its name may use the names of deploys and
// teardowns again.
func TestSystemAgainReusesNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{})
		for range 2 {
			createSystem(t, c, "s")
			_, err := c.Deploy(ctx, "s", "d", lock.MustParse("/a"), nil)
			require.NoError(t, err)
			rec, err := c.WaitDeploy(ctx, "s", "d")
			require.NoError(t, err)
			require.Equal(t, lattice.ActionSucceeded, rec.State)
			_, err = c.CreateSystem(ctx, "s", nil)
			require.ErrorIs(t, err, lifecycle.ErrExists)
			_, err = c.Deploys().Get(ctx, "s/d")
			require.NoError(t, err, "a refused creation removes nothing")
			_, err = c.Teardown(ctx, "s", "t", nil)
			require.NoError(t, err)
			_, err = c.WaitTeardown(ctx, "s", "t")
			require.NoError(t, err)
			deleteSystem(t, c, "s")
		}
		require.NoError(t, c.Close(ctx))
	})
}

// A controller that is closed creates no system, and removes no record of an earlier one.
func TestClosedControllerRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, "s")
		_, err := c.Deploy(ctx, "s", "d", lock.MustParse("/a"), nil)
		require.NoError(t, err)
		deleteSystem(t, c, "s")
		require.NoError(t, c.Close(ctx))
		_, err = c.CreateSystem(ctx, "s", nil)
		require.ErrorIs(t, err, queue.ErrTerminated)
		_, err = c.Deploys().Get(ctx, "s/d")
		require.NoError(t, err)
	})
}

// A delete does not wait for an Initialize that ignores its context, and neither does Close.
func TestDeleteDuringInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, release := t.Context(), make(chan struct{})
		c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{
			Initialize: func(context.Context, lattice.SystemID) error { <-release; return nil },
		})
		_, err := c.CreateSystem(ctx, "s", nil)
		require.NoError(t, err)
		synctest.Wait()
		start := time.Now()
		deleteSystem(t, c, "s")
		require.Zero(t, time.Since(start))
		require.NoError(t, c.Close(ctx))
		require.Zero(t, time.Since(start))
		close(release)
	})
}

// A panic of Initialize is a failure, and so is runtime.Goexit.
func TestInitializePanics(t *testing.T) {
	for text, end := range map[string]func(){
		"broken": func() { panic(errors.New("broken")) },
		"Goexit": runtime.Goexit,
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{
					Initialize: func(context.Context, lattice.SystemID) error { end(); return nil },
				})
				created, err := c.CreateSystem(ctx, "s", nil)
				require.NoError(t, err)
				rec, err := created.Wait(ctx)
				require.ErrorContains(t, err, text)
				require.Equal(t, lattice.Failed, rec.State)
				require.NoError(t, c.Close(ctx))
			})
		})
	}
}

// An operator has removed a system. A new system of its name has none of its services.
func TestSystemAfterOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c := live(t, lifecycle.NewMemoryStore(), lattice.Infrastructure{}, "s", "other")
		for _, system := range []lattice.SystemID{"s", "other"} {
			require.NoError(t, c.SetService(ctx, system, lock.MustParse("/a"), lattice.ServiceDegraded))
		}
		_, err := c.Systems().Override(ctx, "s", lattice.DoesNotExist, "operator", "lost", nil)
		require.NoError(t, err)
		createSystem(t, c, "s")
		_, err = c.Sweep(ctx)
		require.NoError(t, err)
		require.Equal(t, lattice.Stable, stateOf(t, c, "s"))
		require.Equal(t, lattice.Degraded, stateOf(t, c, "other"))
		_, err = c.CreateSystem(ctx, "other", nil) // it exists, and keeps its service
		require.ErrorIs(t, err, lifecycle.ErrExists)
		_, err = c.Services().Get(ctx, "other/a")
		require.NoError(t, err)
		require.NoError(t, c.Close(ctx))
	})
}

// Another caller creates a system of the name while what an earlier one has left is removed.
// The records are those of the new system now, and stay.
func TestCreateIsOvertaken(t *testing.T) {
	for name, machine := range map[string]string{"at a service": lattice.Service.Name(), "at a deploy": lattice.Deploy.Name()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, store := t.Context(), scripttest.NewStore()
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
				overtaken := store.OnceBefore(scripttest.Call{Method: "Commit", Machine: machine}, func() {
					_, err := c.AddSystem(ctx, "s", lattice.Stable, nil)
					require.NoError(t, err)
				})
				_, err = c.CreateSystem(ctx, "s", nil)
				require.ErrorIs(t, err, lifecycle.ErrExists)
				require.True(t, overtaken())
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
