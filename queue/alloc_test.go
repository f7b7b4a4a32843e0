package queue_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/queue"
)

// TestAllocations limits what one action of a reused function allocates: its ticket, its
// context, and a lane if its key was idle.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for _, keys := range []int{1, 1000} {
		r := testing.Benchmark(func(b *testing.B) {
			q := queue.Must(&queue.Config[string]{MaxRunning: 2})
			names := make([]string, keys)
			for i := range names {
				names[i] = strconv.Itoa(i)
			}
			act := &queue.Action{Run: func(context.Context) error { return nil }}
			ctx := context.Background()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if _, err := q.Submit(ctx, names[i%keys], act); err != nil {
					b.Fatal(err)
				}
			}
			if err := q.Terminate(ctx); err != nil {
				b.Fatal(err)
			}
		})
		require.LessOrEqual(t, r.AllocsPerOp(), int64(3), keys)
		require.LessOrEqual(t, r.AllocedBytesPerOp(), int64(400), keys)
	}
}

// A submit costs the same at any backlog, with an observer, and also if Admit refuses
// it. The test compares the times of one run; the factor is generous.
func TestSubmitCostsTheSame(t *testing.T) {
	accepted := 0
	submits := func(backlog int) time.Duration {
		q := queue.Must(&queue.Config[int]{Observer: queue.Observer[int]{
			Accepted: func(context.Context, queue.Accepted[int]) { accepted++ },
		}})
		end := make(chan struct{})
		act := &queue.Action{Run: func(context.Context) error { <-end; return nil }}
		refused := &queue.Action{Admit: func(context.Context) error { return errBoom }, Run: act.Run}
		ctx := context.Background()
		for range backlog {
			_, err := q.Submit(ctx, 1, act)
			require.NoError(t, err)
		}
		best := time.Hour
		for range 20 {
			begin := time.Now()
			for range 20 {
				_, _ = q.Submit(ctx, 1, act)
				_, _ = q.Submit(ctx, 1, refused)
			}
			best = min(best, time.Since(begin))
		}
		q.Abort(nil)
		close(end)
		require.NoError(t, q.Terminate(ctx))
		return best
	}
	few, many := submits(100), submits(40_000)
	require.Less(t, many, 10*few, "40,000 actions wait instead of 100")
	require.Equal(t, 100+40_000+2*400, accepted)
}
