package queue

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// A goroutine that lingers is given the next action, and is not given a second
// one while it does that.
func TestLinger(t *testing.T) {
	q := Must[string](nil)
	hold := make(chan struct{})
	act := &Action{Run: func(context.Context) error { <-hold; return nil }}
	w := &worker[string]{q: q}
	q.idle = w
	first, err := q.Submit(t.Context(), "a", act)
	require.NoError(t, err)
	require.Same(t, first, w.t)
	require.Nil(t, q.idle)
	require.Equal(t, Running, first.Info().State)
	second, err := q.Submit(t.Context(), "b", act)
	require.NoError(t, err)
	require.Same(t, first, w.t)
	close(hold)
	require.NoError(t, second.Wait(t.Context())) // by a goroutine of its own
	require.Equal(t, Pending, first.Outcome())
	w.t = w.conclude(w.call())
	require.NoError(t, first.Wait(t.Context()))

	w.linger()
	require.Nil(t, w.t)
	q.mu.Lock()
	defer q.mu.Unlock()
	require.NotSame(t, w, q.idle)
}
