package lock_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lock"
)

// G9: a fence refuses tokens below the highest admitted one.
func TestFence(t *testing.T) {
	var f lock.Fence
	for _, c := range []struct {
		name           string
		token, highest lock.Token
		ok             bool
	}{
		{"no token", 0, 0, false},
		{"the first", 3, 3, true},
		{"the same again", 3, 3, true},
		{"an earlier one", 2, 3, false},
		{"no token after a token", 0, 3, false},
		{"a later one", 7, 7, true},
		{"the first again", 3, 7, false},
		{"the greatest", math.MaxUint64, math.MaxUint64, true},
		{"one before the greatest", 7, math.MaxUint64, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := f.Admit(c.token)
			if c.ok {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, lock.ErrStaleToken)
			var stale *lock.StaleTokenError
			require.ErrorAs(t, err, &stale)
			require.Equal(t, lock.StaleTokenError{Token: c.token, Highest: c.highest}, *stale)
		})
	}
	require.EqualError(t, f.Admit(7), "lock: token 7 is stale: the fence has admitted token 18446744073709551615")
}

// The highest admitted token only grows, also with concurrent callers.
func TestFenceWithConcurrentCallers(t *testing.T) {
	var f lock.Fence
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			for token := range lock.Token(2000) {
				err := f.Admit(token + 1)
				if stale, ok := errors.AsType[*lock.StaleTokenError](err); err != nil && (!ok || stale.Highest <= token+1) {
					return fmt.Errorf("token %d: %w", token+1, err)
				}
				if err == nil && token > 0 && f.Admit(token) == nil {
					return fmt.Errorf("token %d is admitted after token %d", token, token+1)
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.ErrorIs(t, f.Admit(1999), lock.ErrStaleToken)
	require.NoError(t, f.Admit(2000))
}

func TestNew(t *testing.T) {
	for want, c := range map[string]lock.Config{
		`lock: MaxWaiters "-1" is negative`:                         {MaxWaiters: -1},
		`lock: MaxHolders "-1" is negative`:                         {MaxHolders: -1},
		`lock: FirstToken "9223372036854775808" is above 1<<63 - 1`: {FirstToken: math.MaxInt64 + 1},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := lock.New(&c)
			require.EqualError(t, err, want)
			require.ErrorIs(t, err, lock.ErrInvalid)
			require.PanicsWithValue(t, want, func() { lock.Must(&c) })
		})
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
