package locktest

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The tree agrees with the model for as many steps as are asked for: ten
// thousand, and a million with INTERLOCK_LONG set.
func TestTreeAgreesWithTheModel(t *testing.T) {
	h := treeHarness()
	h.Steps = 10_000
	if long() {
		h.Steps = 1_000_000
	}
	synctest.Test(t, func(t *testing.T) {
		require.GreaterOrEqual(t, randomSequences(newTrial(t, &h, true, nil)), h.Steps)
	})
}

// The calls of a random sequence are of every kind, and mostly do something.
func TestStepsDoSomething(t *testing.T) {
	h := treeHarness()
	h.Steps, h.Seed = 5_000, 1
	counts := map[string]int{}
	h.New = func(_ testing.TB, c lock.Config) lock.Locker {
		c.Observer = &lock.Observer{
			Granted: func(g lock.Granted) {
				counts["granted"]++
				if g.Waited > 0 || g.ID != "" {
					counts["granted with an id"]++
				}
				if len(g.Requests) > 1 {
					counts["lists granted"]++
				}
			},
			Refused: func(r lock.Refused) {
				counts["refused"]++
				if errors.Is(r.Err, lock.ErrIDInUse) {
					counts["ids in use"]++
				}
			},
			Waiting:  func(lock.Waiting) { counts["waiting"]++ },
			Released: func(lock.Released) { counts["released"]++ },
		}
		return lock.NewTree(&c)
	}
	synctest.Test(t, func(t *testing.T) { randomSequences(newTrial(t, &h, true, nil)) })
	t.Logf("%v", counts)
	for what, least := range map[string]int{
		"granted": 500, "granted with an id": 50, "lists granted": 50, "refused": 500, "ids in use": 20, "waiting": 200, "released": 500,
	} {
		require.GreaterOrEqual(t, counts[what], least, what)
	}
}

// A failure tells a sequence that a person can follow, and how to repeat it.
func TestReportTellsTheSequence(t *testing.T) {
	said := judgeAll(t, classics.barging.harness(), "Model/").failed["Model/random_sequences_agree"]
	require.Contains(t, said, "(Seed 1)")
	require.Regexp(t, `(?m)^  1 (try|lock) \[`, said)
	require.NotRegexp(t, `(?m)^  6 `, said, "five steps are enough to show it")
}

// The rule of the oracle is that of the package, pair by pair: they were written
// by different means.
func TestOracleAndPackageAgree(t *testing.T) {
	known := newRules()
	var all []lock.Request
	for _, p := range append(world, lock.MustParse("/"+strings.Repeat("x/", 20)+"x"), lock.MustParse("/a-b"), lock.MustParse("/a0")) {
		for _, m := range lock.Modes {
			all = append(all, lock.Request{Path: p, Mode: m})
		}
	}
	for _, a := range all {
		for _, b := range all {
			require.Equal(t, a.Conflicts(b), known.clash(a, b), "%s and %s", a, b)
			list, err := lock.Normalize([]lock.Request{a, b})
			require.NoError(t, err)
			require.Equal(t, list, canonical([]lock.Request{a, b}))
		}
	}
}
