package tumblebug_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// The provider does not show a VM once, for example because its creation has just been
// superseded by force. The request to terminate it is lost. That VM is not Terminated,
// and its networks are in use.
func TestMissingVM(t *testing.T) {
	for _, from := range []tumblebug.State{tumblebug.Creating, tumblebug.Running} {
		t.Run(string(from), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, clouds := t.Context(), newCloud()
				s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
				if from == tumblebug.Creating {
					clouds.faults["create a-1"] = "hang"
					requestMci(t, s, 1)
					synctest.Wait()
				} else {
					createOne(t, s, 1)
				}
				clouds.change(func() {
					clouds.faults["terminate a-1"] = "drop"
					clouds.shows["a-1"] = []tumblebug.State{"nothing"}
				})
				_, err := s.HandleMciAction(ctx, "ns", "m", "terminate", true)
				require.NoError(t, err)
				time.Sleep(time.Minute)
				vm, err := s.VMs().Get(ctx, "ns/m/a-1")
				require.NoError(t, err)
				require.Equal(t, tumblebug.Terminating, vm.State)
				require.Len(t, clouds.list(), 3)
				time.Sleep(time.Hour) // past the deadline
				_, err = s.Sweep(ctx)
				require.NoError(t, err)
				require.NoError(t, s.Close(ctx))
			})
		})
	}
}

// The provider has no such VM any more. Three answers confirm that it is Terminated.
func TestVMIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds := t.Context(), newCloud()
		s := tumblebug.Must(lifecycle.NewMemoryStore(), clouds, nil)
		createOne(t, s, 1)
		clouds.newStatuses()
		clouds.change(func() {
			clouds.faults["terminate a-1"] = "gone"
			delete(clouds.vms, "a-1")
		})
		_, err := s.HandleMciAction(ctx, "ns", "m", "terminate", false)
		require.NoError(t, err)
		time.Sleep(time.Minute)
		vm, err := s.VMs().Get(ctx, "ns/m/a-1")
		require.NoError(t, err)
		require.Equal(t, tumblebug.Terminated, vm.State)
		require.Equal(t, "3 requests for a status", clouds.newStatuses())
		require.Empty(t, clouds.list())
		require.NoError(t, s.Close(ctx))
	})
}
