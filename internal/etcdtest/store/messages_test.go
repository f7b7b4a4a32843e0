package store

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/etcdtest"
	"github.com/interlock-go/interlock/lifecycle"
)

// Discard finds the keys of messages in an outbox of several pages. A discarded number is
// never that of a later message.
func TestDiscardFromALongOutbox(t *testing.T) {
	store := newPlace(etcdtest.Start(t, nil)).open(t)
	const commits, each = 16, 100
	before := get(t, store, key("a"))
	send := func() {
		t.Helper()
		c := commitOf(change(before, "Idle"))
		for range each {
			c.Messages = append(c.Messages, lifecycle.Message{Topic: "t"})
		}
		require.NoError(t, store.Commit(t.Context(), c))
		before = c.Changes[0].To
	}
	numbers := func() (list []uint64) {
		t.Helper()
		all, err := store.Messages(t.Context(), 2*commits*each)
		require.NoError(t, err)
		for _, m := range all {
			list = append(list, m.Number)
		}
		return list
	}
	for range commits {
		send()
	}
	sent := numbers()
	require.Len(t, sent, commits*each)
	require.True(t, slices.IsSorted(sent), "one writer")

	gone := []uint64{sent[0], sent[1], sent[1100], sent[1599]}
	require.NoError(t, store.Discard(t.Context(), append(gone, gone[0], 0, 1, 1<<63)...))
	left := slices.DeleteFunc(slices.Clone(sent), func(n uint64) bool { return slices.Contains(gone, n) })
	require.Equal(t, left, numbers())

	require.NoError(t, store.Discard(t.Context(), sent...), "those that are discarded already too")
	require.Empty(t, numbers())
	send()
	for _, n := range numbers() {
		require.NotContains(t, sent, n)
	}
}
