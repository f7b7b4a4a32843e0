package queues

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/queue"
)

// ours is the queue of this repository, with all its features.
type ours struct {
	queue *queue.Queuer[string]
	ctx   context.Context
}

func newOurs() *ours {
	return &ours{queue.Must(&queue.Config[string]{MaxRunning: workers}), context.Background()}
}

func (o *ours) submit(key string, f func()) {
	_, err := o.queue.Submit(o.ctx, key, &queue.Action{Run: func(context.Context) error { f(); return nil }})
	if err != nil {
		panic(err)
	}
}

func (o *ours) close() {
	if err := o.queue.Terminate(o.ctx); err != nil {
		panic(err)
	}
}

func keys(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("key-%06d", i)
	}
	return list
}

// rounds submits n functions that do nothing, over the keys in turn, and returns
// when all have run.
func rounds(r runner, list []string) func(n int) {
	var all sync.WaitGroup
	nothing := all.Done
	return func(n int) {
		all.Add(n)
		for i := range n {
			r.submit(list[i%len(list)], nothing)
		}
		all.Wait()
	}
}

// reused is rounds for the queue with one action, as a service has them.
func reused(q *queue.Queuer[string], list []string) func(n int) {
	var all sync.WaitGroup
	ctx := context.Background()
	act := &queue.Action{Run: func(context.Context) error { all.Done(); return nil }}
	return func(n int) {
		all.Add(n)
		for i := range n {
			if _, err := q.Submit(ctx, list[i%len(list)], act); err != nil {
				panic(err)
			}
		}
		all.Wait()
	}
}

func BenchmarkRatios(*testing.B) {
	var figures []ratio.Figure
	for _, n := range []int{100, 100_000} {
		list := keys(n)
		base, q := newListed(), newOurs()
		figures = append(figures, ratio.Measure([]ratio.Pair{{
			Name: fmt.Sprintf("queue/client-go-%d-keys", n), Goal: 1.6,
			Base: rounds(base, list), Subject: reused(q.queue, list),
		}}, &ratio.Config{Rounds: 9, Slice: 400 * time.Millisecond})...)
		base.close()
		q.close()
	}
	figure := func(name string, value, goal float64) {
		figures = append(figures, ratio.Figure{Name: "queue/" + name, Value: value, Goal: goal})
	}
	allocs, bytes := perAction()
	figure("allocations", allocs, 3)
	figure("bytes", bytes, 400)
	idleBytes, idleGoroutines := idle()
	figure("idle-bytes-per-key", idleBytes, 1)
	figure("idle-goroutines", idleGoroutines, 0)
	waitingBytes, waitingGoroutines := waiting()
	figure("waiting-bytes-per-key", waitingBytes, 450)
	figure("waiting-goroutines-to-running", waitingGoroutines, 1)
	figure("growth-of-submit-100-to-40000-waiting", float64(submits(40_000))/float64(submits(100)), 3)
	ratio.Print(os.Stdout, figures)
	ratio.PrintMachine(os.Stdout)
}

// perAction is what one action costs whose function is used again.
func perAction() (allocs, bytes float64) {
	const n = 200_000
	list := keys(100)
	q := newOurs()
	defer q.close()
	run := reused(q.queue, list)
	run(n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	run(n)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / n, float64(after.TotalAlloc-before.TotalAlloc) / n
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// grown is how much the heap and the stacks have grown, per key.
func grown(before uint64, keys int) float64 {
	return max(0, float64(int64(heap())-int64(before))/float64(keys))
}

const many = 100_000

func idle() (bytes, goroutines float64) {
	list := keys(many)
	q := newOurs()
	run := reused(q.queue, list[:1])
	run(1)
	before, were := heap(), runtime.NumGoroutine()
	reused(q.queue, list)(many)
	for runtime.NumGoroutine() > were { // the last worker is about to end
		runtime.Gosched()
	}
	bytes, goroutines = grown(before, many), float64(runtime.NumGoroutine()-were)
	runtime.KeepAlive(q)
	runtime.KeepAlive(list)
	q.close()
	return bytes, goroutines
}

func waiting() (bytes, goroutines float64) {
	const running = 64
	list := keys(many)
	q := queue.Must(&queue.Config[string]{MaxRunning: running})
	ctx := context.Background()
	hold := make(chan struct{})
	var run atomic.Int64
	act := &queue.Action{Run: func(context.Context) error { run.Add(1); <-hold; return nil }}
	before, were := heap(), runtime.NumGoroutine()
	for _, k := range list {
		if _, err := q.Submit(ctx, k, act); err != nil {
			panic(err)
		}
	}
	for run.Load() < running {
		runtime.Gosched()
	}
	bytes, goroutines = grown(before, many), float64(runtime.NumGoroutine()-were)/running
	close(hold)
	if err := q.Terminate(ctx); err != nil {
		panic(err)
	}
	return bytes, goroutines
}

// Both keep order and exclusion for each key. Otherwise the ratio has no meaning.
// submits is the least time of some submits to one key behind a backlog, with an observer; Admit
// refuses half of them.
func submits(backlog int) time.Duration {
	q := queue.Must(&queue.Config[string]{Observer: queue.Observer[string]{
		Accepted: func(context.Context, queue.Accepted[string]) {},
	}})
	ctx, hold := context.Background(), make(chan struct{})
	act := &queue.Action{Run: func(context.Context) error { <-hold; return nil }}
	refused := &queue.Action{Admit: func(context.Context) error { return errors.New("refused") }, Run: act.Run}
	for range backlog {
		if _, err := q.Submit(ctx, "a", act); err != nil {
			panic(err)
		}
	}
	best := time.Hour
	for range 20 {
		begin := time.Now()
		for range 20 {
			_, _ = q.Submit(ctx, "a", act)
			_, _ = q.Submit(ctx, "a", refused)
		}
		best = min(best, time.Since(begin))
	}
	q.Abort(nil)
	close(hold)
	if err := q.Terminate(ctx); err != nil {
		panic(err)
	}
	return best
}

func TestRunners(t *testing.T) {
	for name, r := range map[string]runner{"client-go": newListed(), "ours": newOurs()} {
		t.Run(name, func(t *testing.T) {
			const each = 200
			list := keys(50)
			var all sync.WaitGroup
			at := make([][]int, len(list)) // guarded by the runner, that is the point
			for i := range each {
				for k := range list {
					all.Add(1)
					r.submit(list[k], func() {
						at[k] = append(at[k], i)
						all.Done()
					})
				}
			}
			all.Wait()
			r.close()
			for k := range at {
				if len(at[k]) != each || !slices.IsSorted(at[k]) {
					t.Fatalf("%s ran %v", list[k], at[k])
				}
			}
		})
	}
}
