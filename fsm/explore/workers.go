package explore

import (
	"context"
	"sync"
	"sync/atomic"
)

// parallel calls do(worker, i) for every i below n and returns when all are
// done; it owns its goroutines. Which worker takes which i is chance: what do
// leaves behind may depend on i only. If the context ends, the rest is left out.
func parallel(ctx context.Context, workers, n int, do func(worker, i int)) error {
	var next atomic.Int64
	work := func(worker int) {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			do(worker, i)
		}
	}
	if workers = min(workers, n); workers <= 1 {
		work(0)
		return ctx.Err()
	}
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() { work(worker) })
	}
	all.Wait()
	return ctx.Err()
}
