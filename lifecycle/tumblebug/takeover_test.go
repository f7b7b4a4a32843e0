package tumblebug_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
	"github.com/interlock-go/interlock/queue"
)

// This file has tests with a process that takes over the VMs of one that has died.

// succession is a process that has died, and the next one on its store.
type succession struct {
	*testing.T
	clouds *cloud
	second *tumblebug.System
	broken *atomic.Bool      // a-1 panics, and a-3 has no answer
	store  *scripttest.Store // of the second process
}

// brokenCloud is a cloud that can be broken.
type brokenCloud struct {
	*cloud
	broken atomic.Bool
}

func (c *brokenCloud) Control(ctx context.Context, vm tumblebug.VMRef, a tumblebug.Action) error {
	switch {
	case c.broken.Load() && vm.VMID == "a-1":
		panic("provider is broken")
	case c.broken.Load() && vm.VMID == "a-3":
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return c.cloud.Control(ctx, vm, a)
}

// takenOver runs a test with the MCI ns/m of six VMs. The first process has died when it
// had requested a suspend of two of them, and the others waited for their turns.
func takenOver(t *testing.T, test func(s *succession)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), lifecycle.NewMemoryStore()
		clouds := &brokenCloud{cloud: newCloud()}
		start := func() (*tumblebug.System, *scripttest.Store, context.CancelFunc) {
			base, stop := context.WithCancel(ctx)
			process := &scripttest.Store{MemoryStore: store}
			owner, err := lifecycle.Join(ctx, process, "tb", 24*time.Hour)
			require.NoError(t, err)
			return tumblebug.Must(process, clouds, &tumblebug.Config{
				Base: base, Owner: owner, Limits: map[string]tumblebug.Limit{"aws": {VMs: 2}},
			}), process, stop
		}
		first, process, stop := start()
		requestMci(t, first, 6)
		wait(ctx, t, first)
		clouds.newCalls()
		clouds.change(func() { clouds.delay = 10 * time.Minute })
		_, err := first.HandleMciAction(ctx, "ns", "m", "suspend", false)
		require.NoError(t, err)
		synctest.Wait()
		process.Die(0)
		stop()
		require.Len(t, clouds.newCalls(), 2)
		second, reached, end := start()
		defer end()
		test(&succession{t, clouds.cloud, second, &clouds.broken, reached})
		require.NoError(t, second.Close(ctx))
	})
}

// sweep sweeps and waits until nothing moves, and returns the VMs that were requested.
func (s *succession) sweep() []string {
	s.Helper()
	_, err := s.second.Recover(s.Context())
	require.NoError(s, err)
	synctest.Wait()
	return s.clouds.newCalls()
}

// state returns the state of a VM.
func (s *succession) state(vm string) tumblebug.State {
	s.Helper()
	rec, err := s.second.VMs().Get(s.Context(), "ns/m/"+vm)
	require.NoError(s, err)
	return rec.State
}

// The limits of a provider hold for the VMs of a dead process too: two of them are
// requested at a time.
func TestTakenOverVMsWaitForTheirTurns(t *testing.T) {
	takenOver(t, func(s *succession) {
		require.Equal(s, []string{"suspend a-1", "suspend a-2"}, s.sweep())
		require.Empty(s, s.sweep())
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		require.Equal(s, []string{"suspend a-3", "suspend a-4"}, s.clouds.newCalls())
		time.Sleep(11 * time.Minute)
		require.Equal(s, []string{"suspend a-5", "suspend a-6"}, s.sweep())
		require.Equal(s, "Suspended:6 (R:0/6)", wait(s.Context(), s.T, s.second).Status)
	})
}

// A VM that is taken over is forced into another action while it waits, and while its
// turn lasts. It is not requested for the superseded one.
func TestTakenOverVMIsSuperseded(t *testing.T) {
	takenOver(t, func(s *succession) {
		s.sweep()
		for _, vm := range []string{"a-1", "a-6"} {
			_, err := s.second.HandleMciVmAction(s.Context(), "ns", "m", vm, "terminate", true)
			require.NoError(s, err)
		}
		require.Equal(s, "Partial-Suspended:4 (R:0/6)", wait(s.Context(), s.T, s.second).Status)
		calls := s.clouds.newCalls()
		require.Contains(s, calls, "terminate a-1")
		require.Contains(s, calls, "terminate a-6")
		require.False(s, slices.Contains(calls, "suspend a-6"))
	})
}

// The provider rejects a VM that is taken over: it fails at once.
func TestTakenOverVMIsRejected(t *testing.T) {
	takenOver(t, func(s *succession) {
		s.clouds.change(func() { s.clouds.faults["suspend a-1"] = "reject" })
		s.sweep()
		require.Equal(s, tumblebug.Failed, s.state("a-1"))
		require.Equal(s, tumblebug.Suspending, s.state("a-2"))
		require.Equal(s, "Partial-Suspended:5 (R:0/6)", wait(s.Context(), s.T, s.second).Status)
	})
}

// The provider panics, or does not answer until the context of the request ends. The
// panic is the outcome of the VM. The request without an answer ends with the time of the
// action.
func TestTakenOverVMWithABrokenProvider(t *testing.T) {
	takenOver(t, func(s *succession) {
		s.broken.Store(true)
		s.sweep()
		panicked, err := s.second.VMs().Get(s.Context(), "ns/m/a-1")
		require.NoError(s, err)
		require.Equal(s, tumblebug.Failed, panicked.State)
		require.Contains(s, panicked.Reason, "provider is broken")
		time.Sleep(tumblebug.VMControlTimeout + time.Minute)
		s.sweep()
		require.Equal(s, tumblebug.Undefined, s.state("a-3"))
		require.Equal(s, "Partial-Suspended:4 (R:0/6)", wait(s.Context(), s.T, s.second).Status)
	})
}

// The store is out of reach when the turns of two VMs come. They are requested after that.
func TestTakenOverVMInAnOutage(t *testing.T) {
	takenOver(t, func(s *succession) {
		s.sweep()
		time.Sleep(9 * time.Minute)
		s.store.Refuse(scripttest.Call{Method: "Get"}, lifecycle.ErrUnavailable)
		time.Sleep(4 * time.Minute)
		require.Empty(s, s.clouds.newCalls())
		s.store.Before(nil)
		time.Sleep(time.Minute)
		s.sweep() // the operation of the MCI
		require.Equal(s, "Suspended:6 (R:0/6)", wait(s.Context(), s.T, s.second).Status)
	})
}

// A closed system takes over nothing.
func TestClosedSystemTakesOverNothing(t *testing.T) {
	takenOver(t, func(s *succession) {
		require.NoError(s, s.second.Close(s.Context()))
		results, err := s.second.Sweep(s.Context())
		require.NoError(s, err)
		require.Len(s, results, 6)
		for _, r := range results {
			require.Equal(s, lifecycle.NotMoved, r.Resolution)
			require.ErrorIs(s, r.Err, queue.ErrTerminated)
		}
		require.Empty(s, s.clouds.newCalls())
	})
}

// A forced action does not wait for a request that has no answer.
func TestForceEndsATakeOver(t *testing.T) {
	takenOver(t, func(s *succession) {
		s.clouds.change(func() { s.clouds.delay = time.Second })
		s.broken.Store(true)
		s.sweep() // the turn of a-1 ends, and that of a-3 begins
		s.broken.Store(false)
		_, err := s.second.HandleMciVmAction(s.Context(), "ns", "m", "a-3", "terminate", true)
		require.NoError(s, err)
		time.Sleep(time.Minute)
		require.Equal(s, tumblebug.Terminated, s.state("a-3"))
		wait(s.Context(), s.T, s.second)
	})
}

// A VM whose turn comes after the take-over has its full time from then on. Without an
// answer it is Undefined after that.
func TestTakenOverVMHasADeadline(t *testing.T) {
	takenOver(t, func(s *succession) {
		s.clouds.change(func() {
			for _, vm := range []string{"a-3", "a-4"} {
				s.clouds.faults["suspend "+vm] = "drop"
			}
		})
		s.sweep()
		time.Sleep(11 * time.Minute) // the turns of a-3 and a-4 begin
		time.Sleep(tumblebug.VMControlTimeout - 2*time.Minute)
		s.sweep()
		require.Equal(s, tumblebug.Suspending, s.state("a-3"))
		require.Equal(s, tumblebug.Suspending, s.state("a-5"))
		time.Sleep(2 * time.Minute)
		s.sweep()
		require.Equal(s, tumblebug.Undefined, s.state("a-3"))
		require.Equal(s, tumblebug.Suspending, s.state("a-5"), "it waits for its turn")
		require.Equal(s, "Partial-Suspended:4 (R:0/6)", wait(s.Context(), s.T, s.second).Status)
	})
}
