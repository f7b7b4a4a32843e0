package locktest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

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
	play := func(sequence []step) error {
		defer e.endCalls()
		return e.play(sequence)
	}
	for i := range (e.h.Steps + sequenceLength - 1) / sequenceLength {
		random := rand.New(rand.NewPCG(e.h.Seed, uint64(i)))
		sequence := make([]step, sequenceLength)
		for k := range sequence {
			sequence[k] = draw(random, e.bubble)
		}
		if err := play(sequence); err != nil {
			text := fmt.Sprintf("a random sequence (Seed %d) fails: %v\n", e.h.Seed, err)
			end := time.Now().Add(e.h.Patience)
			inTime := func() bool { return e.bubble || time.Now().Before(end) }
			shorter, err := shorten(sequence, err, inTime, play)
			text += fmt.Sprintf("the shortest one that was found fails: %v\n", err)
			for k, s := range shorter {
				text += fmt.Sprintf("%3d %s\n", k+1, s.text)
			}
			e.Fatal(text)
		}
	}
}

// shorten removes steps as long as the rest fails too, and returns the rest and its error.
// A play of a locker that hangs takes long, except in a bubble, so there is a limit.
func shorten(steps []step, err error, inTime func() bool, play func([]step) error) ([]step, error) {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps) && inTime(); {
			fewer := slices.Concat(steps[:at], steps[at+size:])
			if shorter := play(fewer); shorter != nil {
				steps, err = fewer, shorter
			} else {
				at += size
			}
		}
	}
	return steps, err
}

// odds is how often each operation is drawn.
var odds = [...]struct {
	op      string
	percent int
}{
	{"try", 20},
	{"lock", 20},
	{"unlock", 30},
	{"cancel", 6},
	{"upgrade", 7},
	{"downgrade", 7},
	{"revoke", 2},
	{"break", 4},
	{"holders", 4},
}

// draw returns a random call. Ids repeat only in bubbles: otherwise the suite
// cannot find out when a second call has joined a wait.
func draw(random *rand.Rand, ids bool) step {
	op, n := 0, random.IntN(100)
	for n >= odds[op].percent {
		n -= odds[op].percent
		op++
	}
	line := fmt.Sprintf("client%d %s", random.IntN(12), odds[op].op)
	mode := func() string { return " " + lock.Modes[random.IntN(len(lock.Modes))].String() }
	path := func() string { return " " + world[random.IntN(len(world))] }
	switch odds[op].op {
	case "try", "lock":
		requests, id := mode()+path(), ""
		if random.IntN(4) == 0 {
			for range random.IntN(mostRequests) {
				requests += mode() + path()
			}
		}
		if n := random.IntN(6); ids && n < 2 {
			id = fmt.Sprint(" id=", n)
			if random.IntN(4) > 0 { // mostly the same requests, so that calls join
				requests = " X " + world[1+n]
			}
		}
		line += requests + id
	case "upgrade", "downgrade":
		line += mode()
	case "holders":
		line += path()
	}
	s, _ := parseStep(line)
	s.random = true
	return s
}
