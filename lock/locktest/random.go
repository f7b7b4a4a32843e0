package locktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/suitetest"
	"github.com/interlock-go/interlock/lock"
)

// sequenceLength is the number of calls in a random sequence, without the releases
// at its end.
const sequenceLength = 100

// mostRequests is the greatest number of requests in a random list.
const mostRequests = 3

// world has the paths of random requests: above and below each other, beside each
// other, and with a common prefix only.
var world = []string{"/", "/a", "/a/b", "/a/c", "/a/b/d", "/ab", "/a!", "/c/d/e"}

// randomSequences plays random sequences on fresh lockers. It shortens the first
// one that fails, for as long as one call may take, and reports it with its seed.
func randomSequences(e *env) {
	play := func(sequence []step) *suitetest.Recorder {
		d := demand{steps: sequence}
		return suitetest.Record(e, func(t testing.TB) { d.run(t, e.h) })
	}
	for i := range (e.h.Steps + sequenceLength - 1) / sequenceLength {
		random := rand.New(rand.NewPCG(e.h.Seed, uint64(i)))
		sequence := make([]step, sequenceLength)
		for k := range sequence {
			sequence[k] = draw(random)
		}
		if failure := play(sequence); failure.Failed() {
			e.Errorf("a random sequence (Seed %d) fails: %s", e.h.Seed, failure.Text())
			sequence, failure = shorten(sequence, failure, time.Now().Add(e.h.Patience), play)
			e.Logf("the shortest one that was found fails: %s", failure.Text())
			for k, s := range sequence {
				e.Logf("%3d %s", k+1, s.text)
			}
			return
		}
	}
}

// shorten removes steps as long as the rest fails too, and returns the rest and its failure.
// It has a time limit, because a play of a locker that hangs takes long.
func shorten(
	steps []step, failure *suitetest.Recorder, end time.Time, play func([]step) *suitetest.Recorder,
) ([]step, *suitetest.Recorder) {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps) && time.Now().Before(end); {
			fewer := slices.Concat(steps[:at], steps[at+size:])
			if shorter := play(fewer); shorter.Failed() {
				steps, failure = fewer, shorter
			} else {
				at += size
			}
		}
	}
	return steps, failure
}

// drawn lists what is drawn at random. An operation is drawn as often as it is listed.
var drawn = strings.Fields(`
	try try try try lock lock lock lock unlock unlock unlock unlock unlock unlock
	upgrade upgrade downgrade downgrade cancel revoke break holders`)

// draw returns a random call. It has no id: the suite cannot find out when a second call has
// joined a wait.
func draw(random *rand.Rand) step {
	op := drawn[random.IntN(len(drawn))]
	line := fmt.Sprintf("client%d %s", random.IntN(12), op)
	mode := func() string { return " " + lock.Modes[random.IntN(len(lock.Modes))].String() }
	path := func() string { return " " + world[random.IntN(len(world))] }
	switch op {
	case "try", "lock":
		line += mode() + path()
		if random.IntN(4) == 0 {
			for range random.IntN(mostRequests) {
				line += mode() + path()
			}
		}
	case "upgrade", "downgrade":
		line += mode()
	case "holders":
		line += path()
	}
	s, _ := parseStep(line)
	s.random = true
	return s
}
