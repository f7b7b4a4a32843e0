package tumblebug_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// slow is a cloud whose first request for a key gets its answer when somebody says
// so.
type slow struct {
	*cloud
	asked  atomic.Bool
	answer chan error
	late   error // what is answered although the key is made
}

func (c *slow) Prepare(ctx context.Context, r tumblebug.Resource) error {
	if r.Kind == tumblebug.SSHKey && c.asked.CompareAndSwap(false, true) {
		if err := <-c.answer; err != nil {
			return err
		}
		return errors.Join(c.cloud.Prepare(ctx, r), c.late)
	}
	return c.cloud.Prepare(ctx, r)
}

// TestLateFailure: a process prepares an MCI for so long that another one goes on
// with it, and has done so when the first one fails. What the VMs need is not
// released, and the MCI does not fail.
func TestLateFailure(t *testing.T) {
	for name, hold := range map[string]bool{"prepared": true, "running": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				store := lifecycle.NewMemoryStore()
				c := &slow{cloud: newCloud(), answer: make(chan error)}
				first, err := tumblebug.New(store, c, nil)
				require.NoError(t, err)
				second, err := tumblebug.New(store, c, nil)
				require.NoError(t, err)
				_, err = first.CreateMci(ctx, "ns", tumblebug.MciReq{Name: "m", Hold: hold, SubGroups: []tumblebug.SubGroup{
					{Name: "a", Size: 2, Provider: "aws", Region: "r"},
				}})
				require.NoError(t, err)
				time.Sleep(2 * time.Minute)
				_, err = second.Sweep(ctx)
				require.NoError(t, err)
				time.Sleep(time.Minute)
				prepared := c.list()
				require.Len(t, prepared, 3)
				c.answer <- errors.New("gateway timeout")
				synctest.Wait()
				require.Equal(t, prepared, c.list())
				if hold {
					_, err = second.HandleMciAction(ctx, "ns", "m", "continue", false)
					require.NoError(t, err)
				}
				status, err := wait(ctx, t, second)
				require.NoError(t, err)
				require.Equal(t, "Running:2 (R:2/2)", status.Status)
				require.NoError(t, first.Close(ctx))
				require.NoError(t, second.Close(ctx))
			})
		})
	}
}

// overlapping are two processes, of which one prepares an MCI. It has prepared it
// just when the other one releases something.
func overlapping(t *testing.T) (c *slow, first, second *tumblebug.System) {
	store := lifecycle.NewMemoryStore()
	c = &slow{cloud: newCloud(), answer: make(chan error)}
	first, err := tumblebug.New(store, c, nil)
	require.NoError(t, err)
	second, err = tumblebug.New(store, &releases{c.cloud, func() {
		c.answer <- nil
		time.Sleep(time.Second)
	}}, nil)
	require.NoError(t, err)
	_, err = first.CreateMci(t.Context(), "ns", tumblebug.MciReq{Name: "m", SubGroups: []tumblebug.SubGroup{
		{Name: "a", Size: 2, Provider: "aws", Region: "r"},
	}})
	require.NoError(t, err)
	return c, first, second
}

// TestLateSuccess: the other way round. While one process releases what it could
// not finish, another one finishes it: the MCI has failed, and nothing is left.
func TestLateSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c, first, second := overlapping(t)
		time.Sleep(2 * time.Minute)
		_, err := second.Sweep(ctx)
		require.NoError(t, err)
		_, err = wait(ctx, t, second)
		require.NoError(t, err)
		synctest.Wait()
		status, err := second.GetMciStatus(ctx, "ns", "m")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Failed, status.State)
		require.Empty(t, c.list())
		require.NoError(t, first.Close(ctx))
		require.NoError(t, second.Close(ctx))
	})
}

// TestGivenUpLate: a sweep gives up an MCI that another process is still preparing,
// and has prepared just then. Either it is there with what it needs, or nothing is.
func TestGivenUpLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		c, first, second := overlapping(t)
		time.Sleep(tumblebug.MCIPrepareTimeout + time.Minute)
		cases, err := second.Sweep(ctx)
		require.NoError(t, err)
		require.Len(t, cases, 1)
		require.Equal(t, lifecycle.Moved, cases[0].Resolution, "%v", cases)
		synctest.Wait()
		status, err := second.GetMciStatus(ctx, "ns", "m")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Failed, status.State)
		require.Empty(t, c.list())
		require.NoError(t, first.Close(ctx))
		require.NoError(t, second.Close(ctx))
	})
}

// releases is a cloud that finds nothing valid, and before whose first release
// something happens.
type releases struct {
	*cloud
	before func()
}

func (c *releases) Validate(context.Context, tumblebug.SubGroup) error {
	return tumblebug.ErrRejected
}

func (c *releases) Release(ctx context.Context, r tumblebug.Resource) error {
	if do := c.before; do != nil {
		c.before = nil
		do()
	}
	return c.cloud.Release(ctx, r)
}
