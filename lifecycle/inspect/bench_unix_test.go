//go:build unix

package inspect_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle/inspect"
)

// BenchmarkFleet measures the answers about 10,000 objects: the processor time of each, the
// garbage collector included.
func BenchmarkFleet(b *testing.B) {
	_, vms := fleet(b, 10_000, 0)
	for _, url := range largeRoutes {
		b.Run(url, func(b *testing.B) {
			begin := processorTime(b)
			for b.Loop() {
				// A page of its own, because counts are used again.
				page, err := inspect.New(&inspect.Config{Machines: []inspect.Machine{inspect.Of(vms, nil)}})
				require.NoError(b, err)
				ask(page, "GET", url)
			}
			b.ReportMetric(float64((processorTime(b)-begin).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
