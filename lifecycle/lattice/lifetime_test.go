package lattice_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/lattice"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		infra := lattice.Infrastructure{
			Initialize: func(ctx context.Context, s lattice.SystemID) error {
				if s == "slow" {
					time.Sleep(time.Minute)
				}
				return nil
			},
			Deploy: func(ctx context.Context, _ lattice.Running) error {
				<-ctx.Done()
				return ctx.Err()
			},
		}
		c := live(t, lifecycle.NewMemoryStore(), infra, "s")
		_, err := c.Deploy(t.Context(), "s", "d", lock.MustParse("/a"), nil)
		require.NoError(t, err)
		slow, err := c.CreateSystem(t.Context(), "slow", nil)
		require.NoError(t, err)
		synctest.Wait()

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Close(short), queue.ErrNotDrained)
		require.NoError(t, c.Close(t.Context()))
		rec, err := slow.Wait(t.Context())
		require.NoError(t, err, "Close waits for the work on systems")
		require.Equal(t, lattice.Stable, rec.State)
		d, err := c.Deploys().Get(t.Context(), "s/d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionInProgress, d.State, "deploys stay for the next controller")

		_, err = c.CreateSystem(t.Context(), "late", nil)
		require.ErrorIs(t, err, queue.ErrTerminated)
		late, err := c.Deploy(t.Context(), "s", "late", lock.MustParse("/b"), nil)
		require.NoError(t, err, "it is stored, and runs in the next controller")
		require.Equal(t, lattice.ActionPending, late.State)
	})
}

// Work that ends during Close is stored.
func TestWorkEndsDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := func(context.Context, lattice.Running) error {
			time.Sleep(time.Minute) // ignores the context
			return nil
		}
		store := lifecycle.NewMemoryStore()
		infra := lattice.Infrastructure{Build: step, Deploy: step}
		for i, at := range []lattice.ActionState{lattice.ActionInProgress, lattice.ActionSucceeded} {
			c := live(t, store, infra)
			if i == 0 {
				createSystem(t, c, "s")
				_, err := c.Deploy(t.Context(), "s", "d", lock.Path{}, nil)
				require.NoError(t, err)
			}
			synctest.Wait()
			require.NoError(t, c.Close(t.Context()))
			d, err := c.Deploys().Get(t.Context(), "s/d")
			require.NoError(t, err)
			require.Equal(t, at, d.State)
		}
	})
}

// Run ends actions at their deadlines, and reports errors until its context ends.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		infra := lattice.Infrastructure{Deploy: func(ctx context.Context, _ lattice.Running) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		store := lifecycle.NewMemoryStore()
		c := live(t, store, infra, "s")
		ctx, cancel := context.WithCancel(t.Context())
		var sweeps errgroup.Group
		var failed atomic.Int32
		sweeps.Go(func() error {
			return lifecycle.Run(ctx, 0, func(_ []lifecycle.SweepResult, err error) {
				if err != nil {
					failed.Add(1)
				}
			}, c)
		})
		_, err := c.Deploy(t.Context(), "s", "d", lock.MustParse("/a"), nil)
		require.NoError(t, err)
		rec, err := c.WaitDeploy(t.Context(), "s", "d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionFailed, rec.State)
		require.Equal(t, lattice.Overdue, lattice.ActionEvent(rec.Event))
		require.Zero(t, failed.Load())
		require.NoError(t, store.Close())
		time.Sleep(time.Minute)
		require.NotZero(t, failed.Load())
		cancel()
		require.NoError(t, sweeps.Wait())
	})
}

// sweep returns the error of a sweep.
func sweep(ctx context.Context, c *lattice.Controller) error {
	_, err := c.Sweep(ctx)
	return err
}

// The controller that was started last is in charge. An earlier one moves nothing.
func TestLastControllerIsInCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		answer := make(chan error)
		infra := lattice.Infrastructure{Deploy: func(ctx context.Context, r lattice.Running) error { return <-answer }}
		old := live(t, store, infra, "s")
		_, err := old.Deploy(t.Context(), "s", "d", lock.MustParse("/a"), nil)
		require.NoError(t, err)
		synctest.Wait()

		c := live(t, store, infra)
		synctest.Wait()
		holders := func(c *lattice.Controller) lock.Token {
			all, err := c.Actions().Holders(t.Context(), "s", lock.Root())
			require.NoError(t, err)
			require.Len(t, all, 1)
			return all[0].Token
		}
		require.Greater(t, holders(c), holders(old), "a fence refuses late changes of the earlier one")

		answer <- nil // to the earlier controller
		synctest.Wait()
		d, err := c.Deploys().Get(t.Context(), "s/d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionInProgress, d.State)
		answer <- nil
		d, err = c.WaitDeploy(t.Context(), "s", "d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionSucceeded, d.State)

		// A request to the earlier controller is stored. The last one performs it.
		d, err = old.Deploy(t.Context(), "s", "e", lock.MustParse("/a"), nil)
		require.NoError(t, err)
		synctest.Wait()
		d, err = c.Deploys().Get(t.Context(), "s/e")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionPending, d.State)
		require.ErrorIs(t, sweep(t.Context(), old), lifecycle.ErrStale)
		require.ErrorIs(t, sweep(t.Context(), old), lifecycle.ErrStale, "again")
		require.NoError(t, sweep(t.Context(), c))
		answer <- nil
		d, err = c.WaitDeploy(t.Context(), "s", "e")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionSucceeded, d.State)
		require.NoError(t, old.Close(t.Context()))
		require.NoError(t, c.Close(t.Context()))
	})
}

// A controller stalls in its sweep until another one has started. It moves no deploy that
// is past its deadline; the other one does.
func TestSweepOfEarlierController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), scripttest.NewStore()
		infra := lattice.Infrastructure{Deploy: func(ctx context.Context, _ lattice.Running) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		old := live(t, store, infra, "s")
		_, err := old.Deploy(ctx, "s", "d", lock.MustParse("/a"), nil)
		require.NoError(t, err)
		time.Sleep(lattice.RunTimeout + time.Minute)
		var c *lattice.Controller
		synctest.Wait() // No work of the first controller lists systems meanwhile.
		stalled := store.OnceBefore(scripttest.Call{Method: "List", Machine: lattice.System.Name()}, func() {
			c = live(t, store.MemoryStore, infra)
		})
		require.ErrorIs(t, sweep(ctx, old), lifecycle.ErrStale)
		require.True(t, stalled())
		d, err := c.Deploys().Get(ctx, "s/d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionInProgress, d.State)
		require.NoError(t, sweep(ctx, c))
		d, err = c.WaitDeploy(ctx, "s", "d")
		require.NoError(t, err)
		require.Equal(t, lattice.Overdue, lattice.ActionEvent(d.Event))
		require.NoError(t, old.Close(ctx))
		require.NoError(t, c.Close(ctx))
	})
}

// Of several controllers that are started at once, one is in charge.
func TestConcurrentStarts(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	controllers := make([]*lattice.Controller, 8)
	var all errgroup.Group
	for i := range controllers {
		all.Go(func() (err error) {
			controllers[i], err = lattice.Start(t.Context(), store, lattice.Infrastructure{}, nil)
			return err
		})
	}
	require.NoError(t, all.Wait())
	inCharge := 0
	for _, c := range controllers {
		if err := sweep(t.Context(), c); err == nil {
			inCharge++
		} else {
			require.ErrorIs(t, err, lifecycle.ErrStale)
		}
	}
	require.Equal(t, 1, inCharge)
}

// A start on an empty store, whose commit comes after two other starts, does not begin the first
// term again.
func TestStartAfterTwoOthers(t *testing.T) {
	store := scripttest.NewStore()
	var others []*lattice.Controller
	ran := store.OnceBefore(scripttest.Call{Method: "Commit"}, func() {
		others = append(others, live(t, store, lattice.Infrastructure{}), live(t, store, lattice.Infrastructure{}))
	})
	last := live(t, store, lattice.Infrastructure{})
	require.True(t, ran())
	require.NoError(t, sweep(t.Context(), last))
	for _, c := range others {
		require.ErrorIs(t, sweep(t.Context(), c), lifecycle.ErrStale)
	}
}

func TestStartNeedsTheStore(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	require.NoError(t, store.Close())
	_, err := lattice.Start(t.Context(), store, lattice.Infrastructure{}, nil)
	require.ErrorIs(t, err, lifecycle.ErrClosed)
	_, err = lattice.Start(t.Context(), small{lifecycle.NewMemoryStore()}, lattice.Infrastructure{}, nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// small is a store whose commits are too small.
type small struct{ *lifecycle.MemoryStore }

func (small) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 2} }

// A start that is refused does not end the term of the controller before.
func TestStartRefuses(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	c := live(t, store, lattice.Infrastructure{})
	_, err := lattice.Start(t.Context(), nil, lattice.Infrastructure{}, nil)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	_, err = lattice.Start(t.Context(), store, lattice.Infrastructure{}, &lattice.Config{Owner: &lifecycle.Owner{}})
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.NoError(t, sweep(t.Context(), c))
}
