package locktest

import (
	"cmp"
	"fmt"
	"math/rand/v2"

	"github.com/interlock-go/interlock/internal/shrink"
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
// one that fails and reports it with its seed.
func randomSequences(e *env) {
	seed := cmp.Or(e.h.Seed, rand.Uint64())
	play := func(sequence []step) error {
		fresh := &env{TB: e.TB, h: e.h, bubble: e.bubble, patience: e.patience, config: e.config}
		fresh.l = fresh.fresh()
		defer fresh.endCalls()
		return fresh.play(sequence)
	}
	for i := range (cmp.Or(e.h.Steps, 10_000) + sequenceLength - 1) / sequenceLength {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		sequence := make([]step, sequenceLength)
		for k := range sequence {
			sequence[k] = draw(random, e.bubble)
		}
		if err := play(sequence); err != nil {
			e.Fatal(shrink.Report(seed, sequence, err, play))
		}
	}
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
	s := step{op: odds[op].op, client: fmt.Sprint("client", random.IntN(12)), random: true}
	one := func() lock.Request {
		return lock.Request{
			Path: lock.MustParse(world[random.IntN(len(world))]), Mode: lock.Modes[random.IntN(len(lock.Modes))],
		}
	}
	switch s.op {
	case "try", "lock":
		s.rs = append(s.rs, one())
		if random.IntN(4) == 0 {
			for range random.IntN(mostRequests) {
				s.rs = append(s.rs, one())
			}
		}
		if id := random.IntN(6); ids && id < 2 {
			s.id = fmt.Sprint(id)
			if random.IntN(4) > 0 { // mostly the same requests, so that calls join
				s.rs = []lock.Request{at(lock.X, world[1+id])}
			}
		}
	case "upgrade", "downgrade":
		s.mode = one().Mode
	case "holders":
		s.path = one().Path
	}
	return s
}
