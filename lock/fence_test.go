package lock_test

import (
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// G9.
func TestFence(t *testing.T) {
	var f lock.Fence
	require.Zero(t, f.Highest())
	for _, c := range []struct {
		token, highest lock.Token
		ok             bool
	}{
		{0, 0, false},
		{3, 3, true},
		{3, 3, true}, // one holder writes as often as it likes
		{2, 3, false},
		{0, 3, false},
		{7, 7, true},
		{3, 7, false},
		{math.MaxUint64, math.MaxUint64, true},
		{7, math.MaxUint64, false},
	} {
		err := f.Admit(c.token)
		require.Equal(t, c.highest, f.Highest())
		if c.ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, lock.ErrStaleToken)
		var stale *lock.StaleTokenError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, lock.StaleTokenError{Token: c.token, Highest: c.highest}, *stale)
	}
	require.EqualError(t, f.Admit(7), "lock: token 7 is stale: token 18446744073709551615 was here before")
}

// The highest token only grows, whoever comes when.
func TestFenceFromEverywhere(t *testing.T) {
	var f lock.Fence
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for token := range lock.Token(2000) {
				before := f.Highest()
				err := f.Admit(token + 1)
				if err == nil && before > token+1 || f.Highest() < before || err == nil && f.Highest() < token+1 {
					t.Errorf("token %d: %v, highest was %d and is %d", token+1, err, before, f.Highest())
				}
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 2000, f.Highest())
}

// G7, and that tokens go on where an earlier tree has ended.
func TestTokens(t *testing.T) {
	ctx := t.Context()
	for _, first := range []lock.Token{0, 1, 2, 41, math.MaxInt64} {
		tree := lock.NewTree(&lock.Config{FirstToken: first})
		s, err := tree.Snapshot(ctx)
		require.NoError(t, err)
		want := max(first, 1)
		require.Equal(t, want-1, s.LastToken)
		for range 3 {
			h, err := tree.TryLock(ctx, lock.Request{Path: lock.Root(), Mode: lock.S}, nil)
			require.NoError(t, err)
			require.Equal(t, want, h.Token())
			_, err = tree.Try(lock.Root(), lock.X)
			require.ErrorIs(t, err, lock.ErrConflict, "a refusal takes no token")
			require.NoError(t, h.Upgrade(ctx, lock.X))
			want++
			require.Equal(t, want, h.Token())
			require.NoError(t, h.Downgrade(ctx, lock.IS))
			require.Equal(t, want, h.Token())
			require.NoError(t, h.Unlock(ctx))
			require.Equal(t, want, h.Token(), "readable after the end")
			want++
		}
		s, err = tree.Snapshot(ctx)
		require.NoError(t, err)
		require.Equal(t, want-1, s.LastToken)
	}
	require.Equal(t, "12", lock.Token(12).String())
}

func TestNewTreePanics(t *testing.T) {
	require.PanicsWithValue(t, "lock: NewTree: a limit is negative", func() { lock.NewTree(&lock.Config{MaxWaiters: -1}) })
	require.PanicsWithValue(t, "lock: NewTree: a limit is negative", func() { lock.NewTree(&lock.Config{MaxHolders: -1}) })
	require.PanicsWithValue(t, "lock: NewTree: FirstToken 9223372036854775808 leaves no room to count",
		func() { lock.NewTree(&lock.Config{FirstToken: math.MaxInt64 + 1}) })
}
