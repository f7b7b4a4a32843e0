package ratio_test

import (
	"os"
	"time"

	"github.com/interlock-go/interlock/internal/ratio"
)

// A clock of one's own makes the result exact: here the subject takes three
// times as long as the baseline. A size has no baseline.
func Example() {
	var now time.Duration
	takes := func(each time.Duration) func(int) {
		return func(n int) { now += time.Duration(n) * each }
	}
	figures := ratio.Measure([]ratio.Pair{
		{Name: "lock/try", Goal: 4, Base: takes(20), Subject: takes(60)},
	}, &ratio.Config{Clock: func() time.Duration { return now }})
	figures = append(figures, ratio.Figure{Name: "lock/bytes", Value: 16, Goal: 16})

	ratio.Print(os.Stdout, figures)
	// Output:
	// ratio lock/try 3.00 goal<=4
	// ratio lock/bytes 16.00 goal<=16
}
