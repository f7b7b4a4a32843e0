package tumblebug_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/scripttest"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// beginsTurn reports whether a call is a heartbeat of a VM, with which its turn begins.
func beginsTurn(c scripttest.Call) bool {
	return c.Is(scripttest.Call{Method: "Commit", Machine: "vm"}) && c.Commit.Changes[0].MetadataOnly
}

// failsOnce returns a function for a store that fails for a minute from the first turn on.
func failsOnce(store *scripttest.Store) func(scripttest.Call) error {
	var begun atomic.Bool
	return func(c scripttest.Call) error {
		if beginsTurn(c) && begun.CompareAndSwap(false, true) {
			store.Outage(time.Minute)
		}
		return nil
	}
}

// The store fails while the turn of a VM begins. Nothing has failed: the VM is requested
// from its provider after the outage.
func TestOutageAtTheBeginOfATurn(t *testing.T) {
	for name, hook := range map[string]func(*scripttest.Store, func(scripttest.Call) error){
		"before the commit": (*scripttest.Store).Before, "after the commit": (*scripttest.Store).After,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, clouds, store := t.Context(), newCloud(), scripttest.NewStore()
				hook(store, failsOnce(store))
				s := tumblebug.Must(store, clouds, nil)
				requestMci(t, s, 1)
				time.Sleep(59 * time.Second)
				require.NotContains(t, clouds.newCalls(), "create a-1")
				time.Sleep(time.Minute)
				require.Contains(t, clouds.newCalls(), "create a-1")
				_, err := s.Recover(ctx) // continues the operation of the MCI
				require.NoError(t, err)
				require.Equal(t, "Running:1 (R:1/1)", wait(ctx, t, s).Status)
				require.NoError(t, s.Close(ctx))
			})
		})
	}
}

// A VM is forced into another action during an outage at the begin of its turn. The action
// before is not requested after the outage.
func TestForceDuringAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, clouds, store := t.Context(), newCloud(), scripttest.NewStore()
		store.After(failsOnce(store))
		s, other := tumblebug.Must(store, clouds, nil), tumblebug.Must(store.MemoryStore, clouds, nil)
		requestMci(t, s, 1)
		time.Sleep(10 * time.Second)
		_, err := other.HandleMciAction(ctx, "ns", "m", "terminate", true)
		require.NoError(t, err)
		require.Equal(t, "Terminated:1 (R:0/1)", wait(ctx, t, other).Status)
		time.Sleep(2 * time.Minute)
		require.NotContains(t, clouds.newCalls(), "create a-1")
		require.NoError(t, s.Close(ctx))
		require.NoError(t, other.Close(ctx))
	})
}
