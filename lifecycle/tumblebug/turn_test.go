package tumblebug_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// turnStore is out of reach for some time from the commit on with which the first turn of a
// VM begins: before that commit, or after it.
type turnStore struct {
	*lifecycle.MemoryStore
	before, after time.Duration
	begun, outage atomic.Bool
}

func (s *turnStore) fail(d time.Duration) {
	s.outage.Store(true)
	time.AfterFunc(d, func() { s.outage.Store(false) })
}

func (s *turnStore) Commit(ctx context.Context, c *lifecycle.Commit) error {
	begins := c.Changes[0].To.Machine == "vm" && c.Changes[0].MetadataOnly && s.begun.CompareAndSwap(false, true)
	if begins && s.before > 0 {
		s.fail(s.before)
	}
	if s.outage.Load() {
		return lifecycle.ErrUnavailable
	}
	err := s.MemoryStore.Commit(ctx, c)
	if begins && s.after > 0 {
		s.fail(s.after)
	}
	return err
}

func (s *turnStore) Get(ctx context.Context, k lifecycle.Key) (lifecycle.StoredRecord, error) {
	if s.outage.Load() {
		return lifecycle.StoredRecord{}, lifecycle.ErrUnavailable
	}
	return s.MemoryStore.Get(ctx, k)
}

// The store fails while the turn of a VM begins. Nothing has failed: the VM is requested
// from its provider after the outage.
func TestOutageAtTheBeginOfATurn(t *testing.T) {
	for name, store := range map[string]*turnStore{"before the commit": {before: time.Minute}, "after the commit": {after: time.Minute}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, clouds := t.Context(), newCloud()
				store.MemoryStore = lifecycle.NewMemoryStore()
				s := tumblebug.Must(store, clouds, nil)
				requestMci(t, s, 1)
				time.Sleep(59 * time.Second)
				require.True(t, store.begun.Load())
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
		ctx, clouds := t.Context(), newCloud()
		store := &turnStore{MemoryStore: lifecycle.NewMemoryStore(), after: time.Minute}
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
