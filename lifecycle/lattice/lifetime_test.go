package lattice_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
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
		_, err := c.Deploy(t.Context(), "s", "d", lock.MustParse("/a"))
		require.NoError(t, err)
		slow, err := c.CreateSystem(t.Context(), "slow")
		require.NoError(t, err)
		synctest.Wait()

		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Close(short), queue.ErrNotDrained)
		require.NoError(t, c.Close(t.Context()))
		rec, err := slow.Wait(t.Context())
		require.NoError(t, err, "what is done to systems is waited for")
		require.Equal(t, lattice.Stable, rec.State)
		d, err := c.Deploys().Get(t.Context(), "s/d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionInProgress, d.State, "deploys stay for who comes next")

		_, err = c.CreateSystem(t.Context(), "late")
		require.ErrorIs(t, err, queue.ErrTerminated)
		late, err := c.Deploy(t.Context(), "s", "late", lock.MustParse("/b"))
		require.NoError(t, err, "it is stored, and runs in the next controller")
		require.Equal(t, lattice.ActionPending, late.State)
	})
}

func TestWorkThatIsDoneWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := func(context.Context, lattice.Running) error {
			time.Sleep(time.Minute) // whatever the context says
			return nil
		}
		store := lifecycle.NewMemoryStore()
		infra := lattice.Infrastructure{Build: step, Deploy: step}
		for i, at := range []lattice.ActionState{lattice.ActionInProgress, lattice.ActionSucceeded} {
			c := live(t, store, infra)
			if i == 0 {
				h, err := c.CreateSystem(t.Context(), "s")
				require.NoError(t, err)
				_, err = h.Wait(t.Context())
				require.NoError(t, err)
				_, err = c.Deploy(t.Context(), "s", "d", lock.Path{})
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

func TestRunSweepsUntilItIsToldToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		infra := lattice.Infrastructure{Deploy: func(ctx context.Context, _ lattice.Running) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		l := &link{MemoryStore: lifecycle.NewMemoryStore()}
		c := live(t, l, infra, "s")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		var told atomic.Int32
		go func() { ended <- c.Run(ctx, 0, func(error) { told.Add(1) }) }()
		_, err := c.Deploy(t.Context(), "s", "d", lock.MustParse("/a"))
		require.NoError(t, err)
		rec, err := c.WaitDeploy(t.Context(), "s", "d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionFailed, rec.State)
		require.Equal(t, lattice.Overdue, lattice.ActionEvent(rec.Event))
		require.Zero(t, told.Load())
		require.NoError(t, l.Close())
		time.Sleep(time.Minute)
		require.NotZero(t, told.Load())
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestTheLastControllerCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		answer := make(chan error)
		infra := lattice.Infrastructure{Deploy: func(ctx context.Context, r lattice.Running) error { return <-answer }}
		old := live(t, store, infra, "s")
		_, err := old.Deploy(t.Context(), "s", "d", lock.MustParse("/a"))
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
		require.Greater(t, holders(c), holders(old), "a fence refuses what the old one still does")

		answer <- nil // to the old one, which was first
		synctest.Wait()
		d, err := c.Deploys().Get(t.Context(), "s/d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionInProgress, d.State)
		answer <- nil
		d, err = c.WaitDeploy(t.Context(), "s", "d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionSucceeded, d.State)

		// What is asked of the old one is stored, and done by the new one.
		d, err = old.Deploy(t.Context(), "s", "e", lock.MustParse("/a"))
		require.NoError(t, err)
		synctest.Wait()
		d, err = c.Deploys().Get(t.Context(), "s/e")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionPending, d.State)
		require.ErrorIs(t, old.Sweep(t.Context()), lifecycle.ErrStale)
		require.ErrorIs(t, old.Run(t.Context(), time.Second, nil), lifecycle.ErrStale)
		require.NoError(t, c.Sweep(t.Context()))
		answer <- nil
		d, err = c.WaitDeploy(t.Context(), "s", "e")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionSucceeded, d.State)
		require.NoError(t, old.Close(t.Context()))
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestControllersThatAreStartedAtOnce(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	controllers := make([]*lattice.Controller, 8)
	var all sync.WaitGroup
	for i := range controllers {
		all.Go(func() {
			var err error
			if controllers[i], err = lattice.Start(t.Context(), store, lattice.Infrastructure{}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	lasts := 0
	for _, c := range controllers {
		if err := c.Sweep(t.Context()); err == nil {
			lasts++
		} else {
			require.ErrorIs(t, err, lifecycle.ErrStale)
		}
	}
	require.Equal(t, 1, lasts)
}

func TestOtherDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := lattice.DeployTable()
		for i := range spec.Rows {
			spec.Rows[i].Timeout /= 60
		}
		infra := lattice.Infrastructure{Deploy: func(ctx context.Context, _ lattice.Running) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		c, err := lattice.Start(t.Context(), lifecycle.NewMemoryStore(), infra, &lattice.Config{Deploys: fsm.Must[lattice.Action](spec)})
		require.NoError(t, err)
		h, err := c.CreateSystem(t.Context(), "s")
		require.NoError(t, err)
		_, err = h.Wait(t.Context())
		require.NoError(t, err)
		_, err = c.Deploy(t.Context(), "s", "d", lock.Path{})
		require.NoError(t, err)
		time.Sleep(61 * time.Second)
		require.NoError(t, c.Sweep(t.Context()))
		d, err := c.WaitDeploy(t.Context(), "s", "d")
		require.NoError(t, err)
		require.Equal(t, lattice.ActionFailed, d.State)
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestStartNeedsTheStore(t *testing.T) {
	store := lifecycle.NewMemoryStore()
	require.NoError(t, store.Close())
	_, err := lattice.Start(t.Context(), store, lattice.Infrastructure{}, nil)
	require.ErrorIs(t, err, lifecycle.ErrClosed)
	_, err = lattice.Start(t.Context(), small{lifecycle.NewMemoryStore()}, lattice.Infrastructure{}, nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

type small struct{ *lifecycle.MemoryStore }

func (small) Capabilities() lifecycle.Capabilities { return lifecycle.Capabilities{Changes: 2} }
