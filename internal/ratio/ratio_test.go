package ratio

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// machine is a world in which time passes only while an operation runs.
type machine struct {
	now   time.Duration
	calls []call
}

type call struct {
	name string
	n    int
}

func (m *machine) clock() time.Duration { return m.now }

// op returns a function whose operations take this long each.
func (m *machine) op(name string, each time.Duration) func(int) {
	return func(n int) {
		m.calls = append(m.calls, call{name, n})
		m.now += time.Duration(n) * each
	}
}

func TestMeasureGivesTheRatio(t *testing.T) {
	var m machine
	got := Measure([]Pair{
		{Name: "slower", Goal: 1.5, Base: m.op("a", 10*time.Nanosecond), Subject: m.op("b", 14*time.Nanosecond)},
		{Name: "faster", Goal: 2, Base: m.op("a", time.Microsecond), Subject: m.op("b", 250*time.Nanosecond)},
	}, &Config{Clock: m.clock})
	require.Equal(t, []Figure{
		{Name: "slower", Goal: 1.5, Value: 1.4},
		{Name: "faster", Goal: 2, Value: 0.25},
	}, got)
}

// The function that goes second in one round goes first in the next one, always with slices
// of the same length.
func TestMeasureAlternates(t *testing.T) {
	var m machine
	Measure([]Pair{{Name: "x", Base: m.op("base", time.Microsecond), Subject: m.op("subject", 4*time.Microsecond)}},
		&Config{Rounds: 4, Slice: time.Millisecond, Clock: m.clock})
	base, subject := call{"base", 1000}, call{"subject", 250}
	measured := m.calls[len(m.calls)-8:]
	require.Equal(t, []call{base, subject, subject, base, base, subject, subject, base}, measured)
	for _, c := range m.calls[:len(m.calls)-8] {
		require.NotContains(t, []call{base, subject}, c, "more rounds than asked for")
	}
}

func TestMeasureDefaults(t *testing.T) {
	var m machine
	Measure([]Pair{{Name: "x", Base: m.op("base", time.Microsecond), Subject: m.op("subject", time.Microsecond)}}, &Config{Clock: m.clock})
	slices := 0
	for _, c := range m.calls {
		if c.n == 200 { // 200 µs
			slices++
		}
	}
	require.Equal(t, 2*1001, slices)
}

// The machine's own clock moves forward and is in the unit that it promises.
func TestMeasureWithTheMachinesClock(t *testing.T) {
	work := func(n int) {
		for range n {
			_ = time.Now()
		}
	}
	got := Measure([]Pair{{Name: "x", Base: work, Subject: work}}, &Config{Rounds: 3, Slice: 10 * time.Microsecond})
	require.Len(t, got, 1)
	require.Positive(t, got[0].Value)
}

// A machine that is ten times slower for a while, and many rounds in which one
// of the two was disturbed, the first included, change nothing.
func TestMeasureUnderDisturbance(t *testing.T) {
	var m machine
	slow := func(run func(int), n int, by func(slice int) time.Duration) func(int) {
		slice := 0
		return func(got int) {
			before := m.now
			run(got)
			if got != n { // calibration
				return
			}
			m.now += (by(slice) - 1) * (m.now - before)
			slice++
		}
	}
	busy := func(slice int) time.Duration {
		if slice >= 300 && slice < 500 {
			return 10
		}
		return 1
	}
	single := func(slice int) time.Duration {
		if slice%3 == 0 {
			return 30
		}
		return busy(slice)
	}
	got := Measure([]Pair{{
		Name: "x", Base: slow(m.op("base", time.Microsecond), 200, busy),
		Subject: slow(m.op("subject", 5*time.Microsecond), 40, single),
	}}, &Config{Clock: m.clock})
	require.InDelta(t, 5, got[0].Value, 1e-9)
}

// An interruption at calibration does not make the slices shorter.
func TestCalibrateUnderDisturbance(t *testing.T) {
	var m machine
	calls := 0
	run := m.op("x", time.Microsecond)
	n := Config{Slice: time.Millisecond, Clock: m.clock}.calibrate(func(n int) {
		run(n)
		if calls++; calls%3 != 0 {
			m.now += 4 * time.Millisecond
		}
	})
	require.Equal(t, 1000, n)
}

// To find out how many operations make a slice takes less than two of them, in
// each of three attempts.
func TestMeasureTakesAsLongAsItSays(t *testing.T) {
	for each := time.Nanosecond; each <= time.Millisecond; each *= 7 {
		var m machine
		Measure([]Pair{{Name: "x", Base: m.op("base", each), Subject: m.op("subject", each)}},
			&Config{Rounds: 5, Slice: time.Millisecond, Clock: m.clock})
		require.Greater(t, m.now, 2*5*800*time.Microsecond, "%v", each)
		require.Less(t, m.now, 2*(5+3*2)*time.Millisecond, "%v", each)
	}
}

// An operation longer than a slice is measured one at a time.
func TestMeasureLongOperations(t *testing.T) {
	var m machine
	got := Measure([]Pair{{Name: "x", Base: m.op("base", time.Second), Subject: m.op("subject", 2*time.Second)}},
		&Config{Rounds: 3, Clock: m.clock})
	require.InDelta(t, 2, got[0].Value, 1e-9)
	for _, c := range m.calls {
		require.Equal(t, 1, c.n)
	}
}

// Functions that take no time, or a clock that stands still, come to an end
// with a number.
func TestMeasureNothing(t *testing.T) {
	var m machine
	got := Measure([]Pair{{Name: "x", Base: m.op("base", 0), Subject: m.op("subject", 0)}}, &Config{Clock: m.clock})
	require.InDelta(t, 1, got[0].Value, 1e-9)
}

func TestMedian(t *testing.T) {
	require.InDelta(t, 2.0, median([]float64{9, 1, 2}), 0)
	require.InDelta(t, 2.5, median([]float64{9, 1, 2, 3}), 0)
	require.InDelta(t, 7.0, median([]float64{7}), 0)
}

func TestMeasureNoPairs(t *testing.T) { require.Empty(t, Measure(nil, nil)) }
