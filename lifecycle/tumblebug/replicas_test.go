package tumblebug_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// countedCloud counts the VMs that the provider creates at once.
type countedCloud struct {
	*cloud
	most int
}

func (c *countedCloud) Create(ctx context.Context, vm tumblebug.VMRef) error {
	err := c.cloud.Create(ctx, vm)
	c.change(func() {
		busy := 0
		for _, m := range c.vms {
			if time.Now().Before(m.at) {
				busy++
			}
		}
		c.most = max(c.most, busy)
	})
	return err
}

// Two processes create 100 VMs, and the queue is much longer than the deadline of a VM.
// With shared turns the limit of the region holds for both together.
func TestTwoProcesses(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared=", shared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const limit, each = 3, 50
				ctx, store, clouds := t.Context(), lifecycle.NewMemoryStore(), &countedCloud{cloud: newCloud()}
				clouds.delay = 5 * time.Minute
				var systems [2]*tumblebug.System
				running, stop := context.WithCancel(ctx)
				defer stop()
				for i := range systems {
					owner, err := lifecycle.Join(ctx, store, fmt.Sprint("tb-", i), time.Hour)
					require.NoError(t, err)
					systems[i] = tumblebug.Must(store, clouds, &tumblebug.Config{
						Owner: owner, Shared: shared, Poll: time.Minute, Limits: map[string]tumblebug.Limit{"aws": {VMs: limit}},
					})
					go owner.Run(running)
					go lifecycle.Run(running, time.Minute, nil, systems[i])
					_, err = systems[i].CreateMci(ctx, "ns", tumblebug.MciReq{Name: fmt.Sprint("m", i), SubGroups: []tumblebug.SubGroup{
						{Name: fmt.Sprint("g", i), Size: each, Provider: "aws", Region: "r"},
					}})
					require.NoError(t, err)
				}
				for i, s := range systems {
					status, err := s.Wait(ctx, "ns", fmt.Sprint("m", i))
					require.NoError(t, err)
					require.Equal(t, fmt.Sprintf("Running:%d (R:%[1]d/%[1]d)", each), status.Status)
				}
				want := limit
				if !shared {
					want = 2 * limit
				}
				require.Equal(t, want, clouds.most)
				stop()
				for _, s := range systems {
					require.NoError(t, s.Close(ctx))
				}
			})
		})
	}
}

// The store fails when the turns of VMs start. With shared turns the region goes on when the
// store answers again.
func TestSharedTurnsAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 24*time.Hour)
		defer stop()
		store, failed := scripttest.NewStore(), map[string]bool{}
		store.Before(func(c scripttest.Call) error {
			if !beginsTurn(c) || failed[c.ID] {
				return nil
			}
			failed[c.ID] = true
			return lifecycle.ErrUnavailable
		})
		owner, err := lifecycle.Join(ctx, store, "tb", 48*time.Hour)
		require.NoError(t, err)
		s := tumblebug.Must(store, newCloud(), &tumblebug.Config{
			Owner: owner, Shared: true, Poll: time.Minute, Limits: map[string]tumblebug.Limit{"aws": {VMs: 1}},
		})
		_, err = s.CreateMci(ctx, "ns", tumblebug.MciReq{Name: "m", SubGroups: []tumblebug.SubGroup{
			{Name: "g", Size: 3, Provider: "aws", Region: "r"},
		}})
		require.NoError(t, err)
		status, err := s.Wait(ctx, "ns", "m")
		s.Queue().Abort(nil)
		require.NoError(t, err)
		require.Equal(t, "Running:3 (R:3/3)", status.Status)
		require.Len(t, failed, 3)
		require.NoError(t, s.Close(ctx))
	})
}
