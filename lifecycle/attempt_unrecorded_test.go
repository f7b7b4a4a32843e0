package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestUnrecordedAttemptCounts: the store is down when the first attempt fails, so that the
// record does not have that. The next attempt begins after the outage, and its process dies.
// The heir makes the third attempt of three.
func TestUnrecordedAttemptCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &mortal{MemoryStore: lifecycle.NewMemoryStore()}
		var attempts atomic.Int32
		m := workers(store, lifecycle.Config[event]{
			Owner: join(t, store.MemoryStore, "first", time.Second), Handlers: map[string]lifecycle.Handler{
				"reboot": func(ctx context.Context, _ []byte) error {
					if attempts.Add(1) == 1 {
						store.dead.Store(true)
						return errBoom
					}
					return untilEnded(ctx)
				},
			},
		})
		running(t, m, "a")
		do(t, m, "a", "reboot", user, lifecycle.Work{Handler: "reboot", Retries: lifecycle.Retries{Attempts: 3}}, nil)
		time.Sleep(5 * time.Second)
		store.dead.Store(false)
		time.Sleep(10 * time.Second)
		x := explain(t, m, "a")
		require.Equal(t, []any{int32(2), 2, "boom"}, []any{attempts.Load(), x.Attempt, x.LastError})

		n := heir(t, store.MemoryStore, map[string]lifecycle.Handler{"reboot": func(ctx context.Context, _ []byte) error { return untilEnded(ctx) }})
		require.Len(t, sweepFor(t, n, time.Second), 1)
		synctest.Wait()
		require.Equal(t, 3, explain(t, n, "a").Attempt)
		override(t, n, "a", "running", user, "end of the test", nil)
		sweep(t, m)
	})
}
