// Package ratio measures one function against another and prints the result as a line.
//
// The time of an operation depends on the machine. A ratio to a baseline is comparable if
// both were measured under the same conditions. Measure therefore runs base and subject
// in short slices, in turn, and computes the ratio of each turn. A disturbance that is
// longer than two slices slows both.
//
// What it guarantees:
//   - Base and subject are called strictly in turn, and the one that goes first
//     alternates, so that neither is always the one with the warm cache.
//   - The value is the median over all rounds: a few disturbed ones change
//     nothing.
//   - A goal is printed and never judged.
//
// What it does not guarantee:
//   - That the compiler leaves the measured work in place. Keep the results
//     alive, as in any benchmark.
//   - The same value on another machine.
//
// A benchmark named BenchmarkRatios calls the package once, outside any loop;
// "make bench" runs all of them and keeps nothing but these lines:
//
//	func BenchmarkRatios(b *testing.B) {
//		ratio.Print(os.Stdout, ratio.Measure(pairs, nil))
//		ratio.PrintMachine(os.Stdout)
//	}
package ratio

import (
	"cmp"
	"runtime"
	"slices"
	"time"
)

// Pair is a subject and the baseline that it is compared with. Both functions
// are required; each performs n operations and must neither grow slower with
// every call nor be used by another goroutine meanwhile.
type Pair struct {
	Name    string // without white space
	Goal    float64
	Base    func(n int)
	Subject func(n int)
}

// Config contains the settings of [Measure]. The zero Config and nil are the defaults.
type Config struct {
	Rounds int                  // slices of base and subject each; 0: 1001
	Slice  time.Duration        // about how long a slice takes; 0: 200 µs
	Clock  func() time.Duration // monotonic, any origin; nil: the machine's
}

// Figure is a measured value and its goal. [Measure] returns ratios; a value in
// another unit (bytes, allocations) is a Figure made by hand, with the unit in
// its name.
type Figure struct {
	Name  string // without white space
	Value float64
	Goal  float64 // the value should be at most this
}

// Many short slices, because an operating system that has other work takes the
// processor away for milliseconds. It disturbs most slices of that length, and few
// slices of 200 µs.
const (
	defaultRounds = 1001
	defaultSlice  = 200 * time.Microsecond

	maxOperations = 1 << 30 // per slice: an end for functions that take no time
	attempts      = 3       // at calibration, the fastest counts
)

// Measure returns a figure for each pair, in order. It takes about
// 2 * Rounds * Slice for each, and more where one operation is longer than a
// slice. It measures nothing of use while the program does something else, a
// second Measure included.
func Measure(pairs []Pair, config *Config) []Figure {
	c := config.withDefaults()
	figures := make([]Figure, 0, len(pairs))
	for _, p := range pairs {
		figures = append(figures, Figure{Name: p.Name, Value: c.measure(p), Goal: p.Goal})
	}
	return figures
}

func (c *Config) withDefaults() Config {
	var full Config
	if c != nil {
		full = *c
	}
	full.Rounds, full.Slice = cmp.Or(full.Rounds, defaultRounds), cmp.Or(full.Slice, defaultSlice)
	if full.Clock == nil {
		start := time.Now()
		full.Clock = func() time.Duration { return time.Since(start) }
	}
	return full
}

// measure returns the median of the ratios of all rounds.
func (c Config) measure(p Pair) float64 {
	runtime.GC() // so that the garbage of the previous pair costs nothing
	base, subject := c.slices(p.Base), c.slices(p.Subject)
	ratios := make([]float64, c.Rounds)
	for round := range ratios {
		var b, s float64
		if round%2 == 0 {
			b, s = base(), subject()
		} else {
			s, b = subject(), base()
		}
		ratios[round] = s / b
	}
	return median(ratios)
}

// slices returns a function that runs a slice and returns what an operation took.
func (c Config) slices(run func(n int)) func() float64 {
	n := c.calibrate(run)
	return func() float64 { return float64(c.time(run, n)) / float64(n) }
}

// calibrate returns how many operations take about a slice. One that was
// interrupted would give too few, and slices of different lengths are
// interrupted with different odds. What it runs also warms the function up.
func (c Config) calibrate(run func(n int)) int {
	for n := 1; ; n *= 2 {
		took := c.time(run, n)
		for range attempts - 1 {
			took = min(took, c.time(run, n))
		}
		if took >= c.Slice/2 {
			return max(1, int(float64(n)*float64(c.Slice)/float64(took)))
		}
		if n >= maxOperations {
			return n
		}
	}
}

// time returns what n operations took, at least 1 ns: a coarse clock may stand
// still, and a ratio to zero has no meaning.
func (c Config) time(run func(n int), n int) time.Duration {
	start := c.Clock()
	run(n)
	return max(c.Clock()-start, 1)
}

// median sorts its argument. It is not defined for none.
func median(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
