package lifecycle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestLimitsBelowOne: a limit below 1 is no message and no changed object.
func TestLimitsBelowOne(t *testing.T) {
	m, store := vms(t)
	ready(t, m, "a")
	fire(t, m, "a", "touch", user, &lifecycle.Change[size]{Messages: []lifecycle.Message{{Topic: "t"}}})
	for _, limit := range []int{0, -1} {
		found, err := store.Messages(t.Context(), limit)
		require.NoError(t, err)
		require.Empty(t, found)
		changed, err := store.Recent(t.Context(), "vm", time.Hour, "", limit)
		require.NoError(t, err)
		require.Empty(t, changed)
	}
	found, err := store.Messages(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, found, 1)
}
