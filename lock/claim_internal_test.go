package lock

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// A conversion between the two steps of Break, when the claim is marked and the
// holder is not notified yet, fails with the loss, and the grant reports the same
// from then on.
func TestConversionDuringBreak(t *testing.T) {
	ctx := context.Background()
	for name, convert := range map[string]func(*Grant) error{
		"upgrade":   func(g *Grant) error { return g.Upgrade(ctx, X) },
		"downgrade": func(g *Grant) error { return g.Downgrade(ctx, IS) },
	} {
		t.Run(name, func(t *testing.T) {
			var tree Tree
			g, err := tree.TryLock(ctx, Request{MustParse("/a"), S}, nil)
			require.NoError(t, err)
			tree.mu.Lock()
			why := &LostError{Token: 1, Err: ErrLost}
			tree.claimOf(1).breaking = why
			tree.mu.Unlock()
			require.Same(t, why, convert(g))
			require.Same(t, why, g.Check())
			require.Equal(t, []Request{{MustParse("/a"), S}}, g.Requests())
			require.ErrorIs(t, g.Unlock(ctx), ErrLost)
			require.Empty(t, checkTree(&tree))
		})
	}
}

// The same with a Break that runs at the same time.
func TestConversionRacesWithBreak(t *testing.T) {
	ctx := context.Background()
	for range 3000 {
		var tree Tree
		g, err := tree.TryLock(ctx, Request{MustParse("/a"), S}, nil)
		require.NoError(t, err)
		var group errgroup.Group
		group.Go(func() error { return tree.Break(ctx, 1, "") })
		for err == nil {
			err = g.Downgrade(ctx, S)
			runtime.Gosched() // on a single processor the Break could wait long
		}
		require.ErrorIs(t, err, ErrLost)
		require.ErrorIs(t, g.Unlock(ctx), ErrLost)
		require.NoError(t, group.Wait())
		require.Empty(t, checkTree(&tree))
	}
}
