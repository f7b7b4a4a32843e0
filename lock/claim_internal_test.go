package lock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A conversion that has passed Check when Break begins to tell the holder: it is
// refused, and nothing has changed.
func TestNoConversionWhileBreakIsAtWork(t *testing.T) {
	var tree Tree
	ctx := t.Context()
	h, err := tree.TryLock(ctx, Request{MustParse("/a"), SIX}, nil)
	require.NoError(t, err)
	c := h.grant.(*claim)
	c.leaving = true
	require.Equal(t, ErrNotHeld, c.Upgrade(ctx, X))
	require.Equal(t, ErrNotHeld, c.Downgrade(ctx, IS))
	require.Equal(t, []Request{{MustParse("/a"), SIX}}, c.Requests())
	require.EqualValues(t, 1, c.Token())
	require.NoError(t, h.Unlock(ctx))
	require.Empty(t, checkTree(&tree))
}
