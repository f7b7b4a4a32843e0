package queue_test

import (
	"context"
	"strconv"
	"testing"

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
