package lock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A conversion that checked the grant before Break began is refused.
func TestNoConversionDuringBreak(t *testing.T) {
	var tree Tree
	ctx := t.Context()
	g, err := tree.TryLock(ctx, Request{MustParse("/a"), SIX}, nil)
	require.NoError(t, err)
	c := g.Driver().(*claim)
	c.leaving = true
	require.Equal(t, ErrNotHeld, c.Upgrade(ctx, X))
	require.Equal(t, ErrNotHeld, c.Downgrade(ctx, IS))
	require.Equal(t, []Request{{MustParse("/a"), SIX}}, c.Requests())
	require.NoError(t, g.Unlock(ctx))
	require.Empty(t, checkTree(&tree))
}
