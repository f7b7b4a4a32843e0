package models

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/fsm/explore"
	"github.com/interlock-go/interlock/internal/ratio"
)

// benched is the protocol as lifecycle runs it, with all its faults.
func benched() *explore.System {
	model := faulty(3)
	model.Failures = 1
	return model.System()
}

// measured explores it some times, and returns the median time of a state and the
// last verdict.
func measured(workers, times int) (each time.Duration, v *explore.Verdict) {
	var all []time.Duration
	for range times {
		start := time.Now()
		var err error
		v, err = benched().Explore(context.Background(), &explore.Config{Workers: workers, SkipLeadsTo: true})
		if err != nil || v.Outcome != explore.Holds {
			panic(fmt.Sprint(v, err))
		}
		all = append(all, time.Since(start)/time.Duration(v.States))
	}
	slices.Sort(all)
	return all[len(all)/2], v
}

// BenchmarkRatios prints what a state of the protocol costs: nanoseconds, of which
// 3333 are 300,000 states a second, and bytes. One worker and two find the same.
func BenchmarkRatios(*testing.B) {
	one, v1 := measured(1, 3)
	two, v2 := measured(2, 3)
	if v1.States != v2.States || v1.Steps != v2.Steps || v1.Depth != v2.Depth {
		panic(fmt.Sprintf("one worker finds %v, two find %v", v1, v2))
	}
	ratio.Print(os.Stdout, []ratio.Figure{
		{Name: "models/EdgeCloud-ns-a-state-1-worker", Value: float64(one), Goal: 6666},
		{Name: "models/EdgeCloud-ns-a-state-2-workers", Value: float64(two), Goal: 3333},
		{Name: "models/EdgeCloud-bytes-a-state", Value: float64(v2.Bytes) / float64(v2.States), Goal: 120},
	})
	ratio.PrintMachine(os.Stdout)
}

func BenchmarkEdgeCloud(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			states, bytes := 0, int64(0)
			for b.Loop() {
				_, v := measured(workers, 1)
				states += v.States
				bytes = v.Bytes / int64(v.States)
			}
			b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
			b.ReportMetric(float64(bytes), "B/state")
			b.ReportMetric(float64(states/b.N), "states")
		})
	}
}
