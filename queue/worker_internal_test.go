package queue

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A cancelled action is abandoned while its Settle hangs in the goroutine of Cancel. No worker
// is lost then, and none starts.
func TestAbandonedSettleIsNoWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := Must(&Config[string]{MaxRunning: 1})
		end := make(chan struct{})
		running, err := q.Submit(t.Context(), "a", &Action{Run: func(context.Context) error { <-end; return nil }})
		require.NoError(t, err)
		waiting, err := q.Submit(t.Context(), "b", &Action{
			Run:    func(context.Context) error { return nil },
			Settle: func(context.Context, Outcome, error) { <-end },
		})
		require.NoError(t, err)
		go waiting.Cancel(nil)
		synctest.Wait()
		require.True(t, q.Abandon("b"))
		q.mu.Lock()
		q.staff()
		workers := q.workers
		q.mu.Unlock()
		close(end)
		require.NoError(t, running.Wait(t.Context()))
		require.Equal(t, 1, workers)
	})
}
