package lifecycle_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

func stuck(t *testing.T, m *sizedManager, most int) []lifecycle.SweepResult {
	t.Helper()
	found, err := lifecycle.Stuck(t.Context(), m, most)
	require.NoError(t, err)
	return found
}

// TestStuck: it finds what a sweep finds, in the same order, and changes nothing.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		gone := join(t, store, "gone", time.Minute)
		m := workers(store, lifecycle.Config[event]{Owner: gone})
		ids := []string{"rests", "orphan", "late", "ownerless"}
		for _, id := range ids {
			running(t, m, id)
		}
		do(t, m, "orphan", "stop", user, lifecycle.Func(untilEnded), nil)
		require.NoError(t, gone.Leave(t.Context()))
		unowned := workers(store, lifecycle.Config[event]{})
		fire(t, unowned, "late", "stop", user, nil)
		fire(t, unowned, "ownerless", "inspect", user, nil)
		synctest.Wait()
		require.Len(t, stuck(t, unowned, 0), 2, "the deadline has not passed")
		time.Sleep(time.Minute + 1)

		before := all(t, store, "work-vm", ids...)
		found := stuck(t, unowned, 0)
		require.Equal(t, found, stuck(t, unowned, 0))
		require.Equal(t, before, all(t, store, "work-vm", ids...))
		require.Equal(t, found[:2], stuck(t, unowned, 2))

		swept := sweep(t, unowned)
		require.Len(t, swept, 3)
		for i, result := range swept {
			if result.Resolution == lifecycle.Moved {
				result.Resolution, result.To = lifecycle.Unswept, ""
			}
			require.Equal(t, result, found[i])
		}
		_, err := lifecycle.Stuck(t.Context(), m, lifecycle.MaxPage+1)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	})
}

// TestStuckStoreFails: an outage is not an empty list.
func TestStuckStoreFails(t *testing.T) {
	store := &clocked{hooked: &hooked{MemoryStore: lifecycle.NewMemoryStore()}, fail: lifecycle.ErrUnavailable}
	m := workers(store, lifecycle.Config[event]{})
	_, err := lifecycle.Stuck(t.Context(), m, 0)
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
	_, err = lifecycle.Owners(t.Context(), m)
	require.ErrorIs(t, err, lifecycle.ErrUnavailable)
}

// TestOwners: an owner that has left is not listed, a dead one is.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := lifecycle.NewMemoryStore()
		start := time.Now()
		slow := join(t, store, "slow", time.Hour)
		join(t, store, "dies", time.Second)
		require.NoError(t, join(t, store, "left", 0).Leave(t.Context()))
		m := workers(store, lifecycle.Config[event]{})
		sweepFor(t, m, time.Second)
		died := time.Now()
		time.Sleep(time.Minute)
		require.NoError(t, slow.Heartbeat(t.Context()))

		owners, err := lifecycle.Owners(t.Context(), m)
		require.NoError(t, err)
		require.Equal(t, []string{
			fmt.Sprintf("dies 1 false 1s %v %v", died.Sub(start), time.Time{}),
			fmt.Sprintf("slow 1 true 1h0m0s 0s %v", time.Now()),
		}, []string{ownerText(owners[0], start), ownerText(owners[1], start)})
	})
}

func ownerText(o lifecycle.OwnerInfo, start time.Time) string {
	return fmt.Sprint(o.Name, " ", o.Epoch, " ", o.Alive, " ", o.TTL, " ", o.Since.Sub(start), " ", o.Heartbeat)
}

// TestListWithoutPayload: the store is asked for no payloads, and a payload that cannot be
// decoded hides nothing.
func TestListWithoutPayload(t *testing.T) {
	m, store := listed(t, 3)
	plant(t, store, lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "note", ID: "0003"}, State: "Draft", Origin: "Draft", Payload: []byte("7")})
	records, err := m.List(t.Context(), lifecycle.Select[state]{})
	require.NoError(t, err)
	require.Error(t, records[3].Err)
	store.queries = nil
	records, err = m.List(t.Context(), lifecycle.Select[state]{WithoutPayload: true})
	require.NoError(t, err)
	require.Len(t, records, 4)
	for _, rec := range records {
		require.NoError(t, rec.Err)
		require.Zero(t, rec.Payload)
		require.NotEmpty(t, rec.State)
	}
	require.True(t, store.queries[0].WithoutPayload)
}

// TestMachineAndQueue: a manager has its machine, and the queue of its work.
func TestMachineAndQueue(t *testing.T) {
	m := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{})
	require.Same(t, workVM, m.Machine())
	require.NotNil(t, lifecycle.QueueOf(m))
	other := workers(lifecycle.NewMemoryStore(), lifecycle.Config[event]{Queue: lifecycle.QueueOf(m)})
	require.Equal(t, lifecycle.QueueOf(m), lifecycle.QueueOf(other))
	running(t, m, "a")
	do(t, m, "a", "stop", user, nothing, nil)
	require.NoError(t, lifecycle.Drain(t.Context(), m))
}
