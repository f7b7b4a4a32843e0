package tumblebug_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// hung starts the system, whose VM ns/m/a-1 hangs in Suspending until its deadline has passed.
func hung(ctx context.Context, t *testing.T, store lifecycle.Store, clouds *cloud) *tumblebug.System {
	t.Helper()
	s := tumblebug.Must(store, clouds, nil)
	createOne(t, s, 1)
	clouds.faults["suspend a-1"] = "hang"
	_, err := s.HandleMciAction(ctx, "ns", "m", "suspend", false)
	require.NoError(t, err)
	time.Sleep(tumblebug.VMControlTimeout + time.Minute)
	return s
}

// A sweep of another process finds a VM past its deadline. Its next action starts before the
// sweep requests the status. The sweep does not take over that action.
func TestActionDuringASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		store := scripttest.NewStore()
		s := hung(ctx, t, store.MemoryStore, clouds)
		other := tumblebug.Must(store, clouds, nil)
		var reads atomic.Int32
		store.Before(func(c scripttest.Call) error {
			if c.Is(scripttest.Call{Method: "Get", Machine: "vm"}) && reads.Add(1) == 2 {
				_, err := s.HandleMciVmAction(ctx, "ns", "m", "a-1", "reboot", true)
				require.NoError(t, err)
			}
			return nil
		})
		results, err := other.Sweep(ctx)
		require.NoError(t, err)
		require.Len(t, results, 1)
		require.Equal(t, lifecycle.NotMoved, results[0].Resolution)
		require.EqualError(t, results[0].Err, "tumblebug: its action is running")
		vm, err := s.VMs().Get(ctx, "ns/m/a-1")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Rebooting, vm.State)
		require.Equal(t, results[0].Operation+1, vm.Operation)
		wait(ctx, t, s)
		require.NoError(t, s.Close(ctx))
		require.NoError(t, other.Close(ctx))
	})
}

// The context of a sweep ends before the provider has answered about a VM past its deadline.
// The VM does not move.
func TestCancelledSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds, store := t.Context(), newCloud(), lifecycle.NewMemoryStore()
		s := hung(ctx, t, store, clouds)
		impatient, cancel := context.WithCancel(ctx)
		cancels := func(ctx context.Context) error { cancel(); return ctx.Err() }
		other := tumblebug.Must(store, &lookCloud{cloud: clouds, look: cancels}, nil)
		_, err := other.Sweep(impatient)
		require.ErrorIs(t, err, context.Canceled)
		vm, err := s.VMs().Get(ctx, "ns/m/a-1")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Suspending, vm.State)
		_, err = s.HandleMciVmAction(ctx, "ns", "m", "a-1", "terminate", true)
		require.NoError(t, err)
		wait(ctx, t, s)
		require.NoError(t, s.Close(ctx))
		require.NoError(t, other.Close(ctx))
	})
}

// A sweep finds an MCI on hold past the time of its preparation. The hold has no deadline.
func TestSweepOfAHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := tumblebug.Must(lifecycle.NewMemoryStore(), newCloud(), nil)
		_, err := s.CreateMci(ctx, "ns", tumblebug.MciReq{Name: "m", Hold: true, SubGroups: []tumblebug.SubGroup{
			{Name: "a", Provider: "aws", Region: "r"},
		}})
		require.NoError(t, err)
		time.Sleep(tumblebug.MCIPrepareTimeout + time.Minute)
		results, err := s.Sweep(ctx)
		require.NoError(t, err)
		require.Len(t, results, 1)
		require.Equal(t, lifecycle.NotMoved, results[0].Resolution)
		require.EqualError(t, results[0].Err, "tumblebug: it is on hold until continue or withdraw")
		_, err = s.HandleMciAction(ctx, "ns", "m", "continue", false)
		require.NoError(t, err)
		require.Equal(t, "Running:1 (R:1/1)", wait(ctx, t, s).Status)
		require.NoError(t, s.Close(ctx))
	})
}

// A process dies while it creates a VM, and an operator removes the MCI. The next process
// fails the VM and sends no request about it.
func TestSweepOfAStrayVM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds, store := t.Context(), newCloud(), lifecycle.NewMemoryStore()
		start := starts(t, store, clouds, nil)
		clouds.faults["create a-1"] = "hang"
		first, process, stop := start()
		requestMci(t, first, 1)
		synctest.Wait()
		process.Die(0)
		stop()
		second, _, end := start()
		defer end()
		_, err := second.MCIs().Override(ctx, "ns/m", tumblebug.Removed, "operator", "test", nil)
		require.NoError(t, err)
		clouds.newCalls()
		clouds.newStatuses()
		_, err = second.Sweep(ctx)
		require.NoError(t, err)
		vm, err := second.VMs().Get(ctx, "ns/m/a-1")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Failed, vm.State)
		require.Empty(t, clouds.newCalls())
		require.Equal(t, "0 requests for a status", clouds.newStatuses())
		require.NoError(t, second.Close(ctx))
	})
}
