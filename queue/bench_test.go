package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/queue"
)

func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "key-" + strconv.Itoa(i)
	}
	return keys
}

// BenchmarkThroughput submits actions that do nothing, over some keys, with two
// of them at a time, and waits until the last one has ended.
func BenchmarkThroughput(b *testing.B) {
	for _, n := range []int{1, 100, 100_000} {
		b.Run(fmt.Sprint("keys=", n), func(b *testing.B) {
			keys := names(n)
			q := queue.Must(&queue.Config[string]{MaxRunning: 2})
			var wg sync.WaitGroup
			act := &queue.Action{Run: func(context.Context) error { wg.Done(); return nil }}
			ctx := context.Background()
			wg.Add(b.N)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if _, err := q.Submit(ctx, keys[i%n], act); err != nil {
					b.Fatal(err)
				}
			}
			wg.Wait()
		})
	}
}

// BenchmarkLatency is one action on an idle key, from submit to notice.
func BenchmarkLatency(b *testing.B) {
	keys := names(1000)
	q := new(queue.Queuer[string])
	act := &queue.Action{Run: func(context.Context) error { return nil }}
	ctx := context.Background()
	took := make([]time.Duration, b.N)
	b.ReportAllocs()
	for i := range b.N {
		start := time.Now()
		t, err := q.Submit(ctx, keys[i%len(keys)], act)
		if err != nil {
			b.Fatal(err)
		}
		if err := t.Wait(ctx); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N/2]), "p50-ns")
	b.ReportMetric(float64(took[b.N*99/100]), "p99-ns")
}

// BenchmarkMemory reports what keys cost that wait, and that were used and are
// idle.
func BenchmarkMemory(b *testing.B) {
	const n = 100_000
	for b.Loop() {
		keys := names(n)
		q := queue.Must(&queue.Config[string]{MaxRunning: 64})
		before, goroutines := heap(), runtime.NumGoroutine()
		hold := make(chan struct{})
		act := &queue.Action{Run: func(context.Context) error { <-hold; return nil }}
		for _, k := range keys {
			if _, err := q.Submit(b.Context(), k, act); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/n, "B/waiting-key")
		b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
		close(hold)
		for q.Stats().Keys > 0 || runtime.NumGoroutine() > goroutines {
			runtime.Gosched()
		}
		b.ReportMetric(float64(heap()-before)/n, "B/idle-key")
		runtime.KeepAlive(keys)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// BenchmarkBlocked is the end of an action while submitters wait for room in other
// lanes. Its cost grows with their number.
func BenchmarkBlocked(b *testing.B) {
	for _, n := range []int{0, 10, 100} {
		b.Run(fmt.Sprint("submitters=", n), func(b *testing.B) {
			q := queue.Must(&queue.Config[string]{MaxPerKey: 1, MaxRunning: n + 2})
			hold := make(chan struct{})
			stuck := &queue.Action{Run: func(context.Context) error { <-hold; return nil }}
			act := &queue.Action{Wait: true, Run: func(context.Context) error { return nil }}
			var wg sync.WaitGroup
			for _, k := range names(n) {
				if _, err := q.Submit(b.Context(), k, stuck); err != nil {
					b.Fatal(err)
				}
				wg.Go(func() { _, _ = q.Submit(b.Context(), k, act) })
			}
			for q.Stats().Blocked < n {
				runtime.Gosched()
			}
			for b.Loop() {
				t, err := q.Submit(b.Context(), "free", act)
				if err != nil {
					b.Fatal(err)
				}
				if err := t.Wait(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			close(hold)
			wg.Wait()
			if err := q.Terminate(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
