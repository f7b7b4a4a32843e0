package lock_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// G9: a fence refuses tokens below the highest admitted one.
func TestFence(t *testing.T) {
	var f lock.Fence
	for _, c := range []struct {
		token, highest lock.Token
		ok             bool
	}{
		{0, 0, false},
		{3, 3, true},
		{3, 3, true}, // one holder may write often
		{2, 3, false},
		{0, 3, false},
		{7, 7, true},
		{3, 7, false},
		{math.MaxUint64, math.MaxUint64, true},
		{7, math.MaxUint64, false},
	} {
		err := f.Admit(c.token)
		if c.ok {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, lock.ErrStaleToken)
		var stale *lock.StaleTokenError
		require.ErrorAs(t, err, &stale)
		require.Equal(t, lock.StaleTokenError{Token: c.token, Highest: c.highest}, *stale)
	}
	require.EqualError(t, f.Admit(7), "lock: token 7 is stale: the fence has admitted token 18446744073709551615")
}

// The highest admitted token only grows, also with concurrent callers.
func TestFenceWithConcurrentCallers(t *testing.T) {
	var f lock.Fence
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for token := range lock.Token(2000) {
				err := f.Admit(token + 1)
				if stale, ok := errors.AsType[*lock.StaleTokenError](err); err != nil && (!ok || stale.Highest <= token+1) {
					t.Errorf("token %d: %v", token+1, err)
				}
				if err == nil && token > 0 && f.Admit(token) == nil {
					t.Errorf("token %d is admitted after token %d", token, token+1)
				}
			}
		})
	}
	wg.Wait()
	require.ErrorIs(t, f.Admit(1999), lock.ErrStaleToken)
	require.NoError(t, f.Admit(2000))
}

func TestNew(t *testing.T) {
	for want, c := range map[string]lock.Config{
		`lock: MaxWaiters "-1" is negative`:                         {MaxWaiters: -1},
		`lock: MaxHolders "-1" is negative`:                         {MaxHolders: -1},
		`lock: FirstToken "9223372036854775808" is above 1<<63 - 1`: {FirstToken: math.MaxInt64 + 1},
	} {
		_, err := lock.New(&c)
		require.EqualError(t, err, want)
		require.ErrorIs(t, err, lock.ErrInvalid)
		require.PanicsWithValue(t, want, func() { lock.Must(&c) })
	}
	for _, c := range []*lock.Config{nil, {FirstToken: math.MaxInt64}} {
		tree, err := lock.New(c)
		require.NoError(t, err)
		idle(t, tree)
	}
}

// Every locked resource has a Fence of its own: tokens of grants that do not
// conflict have no order that means anything to a resource.
func TestOneFenceForEachResource(t *testing.T) {
	var tree lock.Tree
	a, b := take(t, &tree, "X at /a", nil), take(t, &tree, "X at /b", nil)
	var shared, ofA, ofB lock.Fence
	require.NoError(t, shared.Admit(b.Token()))
	require.NoError(t, a.Check())
	require.ErrorIs(t, shared.Admit(a.Token()), lock.ErrStaleToken, "refused, although the grant holds")
	require.NoError(t, ofB.Admit(b.Token()))
	require.NoError(t, ofA.Admit(a.Token()))
	unlock(t, a)
	next := take(t, &tree, "X at /a", nil)
	require.NoError(t, ofA.Admit(next.Token()))
	require.ErrorIs(t, ofA.Admit(a.Token()), lock.ErrStaleToken)
}
