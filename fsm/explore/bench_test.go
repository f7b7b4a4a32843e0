package explore_test

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

// measured explores a system several times and returns the median time for a state,
// with the last verdict.
func measured(sys *explore.System, workers, times int) (each time.Duration, v *explore.Verdict) {
	var all []time.Duration
	for range times {
		start := time.Now()
		var err error
		v, err = sys.Explore(context.Background(), &explore.Config{Workers: workers})
		if err != nil || v.Outcome != explore.Holds {
			panic(fmt.Sprint(v, err))
		}
		all = append(all, time.Since(start)/time.Duration(v.States))
	}
	slices.Sort(all)
	return all[len(all)/2], v
}

// BenchmarkRatios prints the cost of a state in a protocol with three actors, two
// unordered channels and three kinds of faults, with about nine steps from a state:
// nanoseconds (3333 are 300,000 states a second), and the peak memory in bytes.
func BenchmarkRatios(*testing.B) {
	sys := shop(4, 4)
	one, _ := measured(sys, 1, 5)
	two, v := measured(sys, 2, 5)
	ratio.Print(os.Stdout, []ratio.Figure{
		{Name: "explore/Explore-ns-a-state-1-worker", Value: float64(one), Goal: 6666},
		{Name: "explore/Explore-ns-a-state-2-workers", Value: float64(two), Goal: 3333},
		{Name: "explore/Explore-bytes-a-state", Value: float64(v.Bytes) / float64(v.States), Goal: 120},
	})
	ratio.PrintMachine(os.Stdout)
}

func BenchmarkExplore(b *testing.B) {
	sys := shop(4, 4)
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			b.ReportAllocs()
			states, bytes := 0, int64(0)
			for b.Loop() {
				_, v := measured(sys, workers, 1)
				states += v.States
				bytes = v.Bytes / int64(v.States)
			}
			b.ReportMetric(float64(states)/b.Elapsed().Seconds(), "states/s")
			b.ReportMetric(float64(bytes), "B/state")
		})
	}
}
