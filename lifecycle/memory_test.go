package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// The reference passes the suite, whatever it keeps of the past. With
// INTERLOCK_LONG set it is tried harder.
func TestMemoryStore(t *testing.T) {
	attempts := 500
	if os.Getenv("INTERLOCK_LONG") != "" {
		attempts = 10_000
	}
	for name, open := range map[string]func() *lifecycle.MemoryStore{
		"New":        lifecycle.NewMemoryStore,
		"Zero":       func() *lifecycle.MemoryStore { return new(lifecycle.MemoryStore) },
		"Little":     func() *lifecycle.MemoryStore { return (&lifecycle.MemoryStore{KeepHistory: 8}).KeepRemoved(8) },
		"Everything": func() *lifecycle.MemoryStore { return (&lifecycle.MemoryStore{KeepHistory: -1}).KeepRemoved(1 << 30) },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(testing.TB) lifecycle.Store { return open() },
				&storetest.Config{Exclusive: true, Synctest: true, Attempts: attempts})
		})
	}
}

// memory is a memory store in a test.
type memory struct {
	*lifecycle.MemoryStore
	t require.TestingT
}

func memKey(id string) lifecycle.Key { return lifecycle.Key{Machine: "m", ID: id} }

func (m memory) get(id string) lifecycle.StoredRecord {
	r, err := m.Get(context.Background(), memKey(id))
	require.NoError(m.t, err)
	return r
}

// to is the commit that takes an object to a state; no state removes it.
func (m memory) to(id, state string) *lifecycle.Commit {
	before := m.get(id)
	ch := lifecycle.StoredChange{
		Expect: before.Revision, From: before.State, Remove: state == "",
		To: lifecycle.StoredRecord{
			Key: before.Key, State: state, Origin: state, Sequence: before.Sequence + 1, Operation: before.Operation,
		},
	}
	if ch.Remove {
		ch.To.State = "gone"
	}
	if !before.Exists() {
		ch.To.Operation++
	}
	return &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{ch}}
}

func (m memory) put(id, state string) lifecycle.StoredRecord {
	c := m.to(id, state)
	require.NoError(m.t, m.Commit(context.Background(), c))
	return c.Changes[0].To
}

// rows returns the sequence numbers of an object's history.
func (m memory) rows(id string) []uint64 {
	rows, err := m.History(context.Background(), memKey(id), 0, 1<<20)
	require.NoError(m.t, err)
	numbers := []uint64{}
	for _, row := range rows {
		numbers = append(numbers, row.Sequence)
	}
	return numbers
}

func TestMemoryStoreIsClosedForGood(t *testing.T) {
	ctx := t.Context()
	m := memory{&lifecycle.MemoryStore{}, t}
	require.NoError(t, m.Close(), "a store that was never used")
	_, err := m.Get(ctx, memKey("a"))
	require.ErrorIs(t, err, lifecycle.ErrClosed)

	m = memory{lifecycle.NewMemoryStore(), t}
	m.put("a", "idle")
	repeated := m.to("a", "moving")
	require.NoError(t, m.Commit(ctx, repeated))
	require.NoError(t, m.Close())
	require.NoError(t, m.Close())
	require.ErrorIs(t, m.Commit(ctx, repeated), lifecycle.ErrClosed, "known as it may be")
	require.Equal(t, lifecycle.NewMemoryStore().Capabilities(), m.Capabilities())

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = m.Get(ended, memKey("a"))
	require.ErrorIs(t, err, context.Canceled, "the context is checked first")
}

// All calls at once, for the race detector.
func TestMemoryStoreAllCallsAtOnce(t *testing.T) {
	ctx := t.Context()
	m := memory{(&lifecycle.MemoryStore{KeepHistory: 3}).KeepRemoved(2), t}
	calls := []func(id string) error{
		func(id string) error { _, err := m.Get(ctx, memKey(id)); return err },
		func(id string) error {
			_, err := m.List(ctx, lifecycle.Query{Machine: "m", States: []string{"idle"}, Limit: 5})
			return err
		},
		func(id string) error {
			_, err := m.List(ctx, lifecycle.Query{Machine: "m", After: id, Limit: 3})
			return err
		},
		func(id string) error {
			rows, err := m.History(ctx, memKey(id), 0, 10)
			for i := range rows {
				rows[i] = lifecycle.HistoryRow{} // a copy, to be used as one likes
			}
			return err
		},
		func(id string) error {
			list, err := m.Messages(ctx, 10)
			for i := range list {
				list[i].Number = 0
			}
			return err
		},
		func(id string) error { return m.Discard(ctx, 3, 1) },
		func(id string) error { m.Capabilities(); return nil },
	}
	for _, state := range []string{"idle", "moving", ""} {
		calls = append(calls, func(id string) error {
			if before := m.get(id); state == "" && !before.Exists() {
				return nil
			}
			c := m.to(id, state)
			if c.Changes[0].From == "" && c.Changes[0].Remove {
				return nil // it went away meanwhile
			}
			c.Messages = []lifecycle.Message{{Topic: "t", Key: id}}
			if err := m.Commit(ctx, c); !errors.Is(err, lifecycle.ErrConflict) {
				return err
			}
			return nil
		})
	}
	var all errgroup.Group
	for w := range 2 * len(calls) {
		all.Go(func() error {
			for i := range 200 {
				if err := calls[w%len(calls)](fmt.Sprint(i % 5)); err != nil {
					return fmt.Errorf("call %d: %w", w%len(calls), err)
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	for i := range 5 {
		r := m.get(fmt.Sprint(i))
		if rows := m.rows(r.ID); len(rows) > 0 {
			require.Equal(t, r.Sequence, rows[len(rows)-1])
			require.LessOrEqual(t, len(rows), 3)
		}
	}
}

// TestMemoryStoreMessagesAreCopies: a program that changes the payload of a message before it
// delivers it finds the message as it was committed if it reads it again.
func TestMemoryStoreMessagesAreCopies(t *testing.T) {
	m := memory{lifecycle.NewMemoryStore(), t}
	c := m.to("a", "idle")
	c.Messages = []lifecycle.Message{{Topic: "t", Payload: []byte("bill")}}
	require.NoError(t, m.Commit(t.Context(), c))
	for range 2 {
		list, err := m.Messages(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, "bill", string(list[0].Payload))
		copy(list[0].Payload, "kill")
	}
	require.NoError(t, m.Discard(t.Context()), "no message")
}
