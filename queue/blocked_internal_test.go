package queue

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// A place is given to a submitter at the moment at which its context ends: the
// place was counted, so it is taken, whatever the submitter sees first.
func TestPlaceGivenAtTheEndOfContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			q := Must(&Config[string]{MaxPerKey: 1})
			hold := make(chan struct{})
			_, err := q.Submit(t.Context(), "a", &Action{Run: func(context.Context) error { <-hold; return nil }})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			accepted := make(chan error)
			go func() {
				_, err := q.Submit(ctx, "a", &Action{Wait: true, Run: func(context.Context) error { return nil }})
				accepted <- err
			}()
			synctest.Wait()

			q.mu.Lock()
			cancel()
			q.maxPerKey++
			q.roomFor(q.lanes["a"].crowd.first)
			q.grant()
			q.mu.Unlock()

			require.NoError(t, <-accepted)
			close(hold)
			require.NoError(t, q.Terminate(t.Context()))
		}
	})
}
