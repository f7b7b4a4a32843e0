package storetest

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-go/interlock/lifecycle"
)

// register is the specification that contradiction decides in one pass, for a
// checker that searches: an object is at a sequence number, commits go from one
// to the next, reads see where it is.
func register(first uint64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			o, at := input.(observation), state.(uint64)
			if o.wrote {
				return o.record.Sequence == at+1, o.record.Sequence
			}
			return o.record.Sequence == at, at
		},
	}
}

func operations(seen []observation) []porcupine.Operation {
	history := make([]porcupine.Operation, len(seen))
	for i, o := range seen {
		history[i] = porcupine.Operation{ClientId: i, Input: o, Call: o.called, Return: o.returned}
	}
	return history
}

func at(n uint64) lifecycle.StoredRecord {
	return lifecycle.StoredRecord{Key: key("a"), State: idle, Sequence: n, Revision: lifecycle.Revision(rune('A' + n))}
}

func wrote(called, returned int64, n uint64) observation {
	return observation{called: called, returned: returned, wrote: true, expected: at(n - 1).Revision, record: at(n)}
}

func saw(called, returned int64, n uint64) observation {
	return observation{called: called, returned: returned, record: at(n)}
}

// On every history, the pass over it and the search agree.
func TestContradictionAgreesWithPorcupine(t *testing.T) {
	both := map[bool]int{}
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Uint64Range(0, 2).Draw(t, "first")
		writes := rapid.Uint64Range(0, 5).Draw(t, "writes")
		var seen []observation
		moment := int64(0)
		span := func() (int64, int64) {
			moment += rapid.Int64Range(0, 2).Draw(t, "pause")
			return moment, moment + rapid.Int64Range(0, 6).Draw(t, "length")
		}
		for n := first + 1; n <= first+writes; n++ {
			if rapid.IntRange(0, 30).Draw(t, "lost") > 0 {
				called, returned := span()
				seen = append(seen, wrote(called, returned, n))
			}
			for range rapid.IntRange(0, 2).Draw(t, "reads") {
				called, returned := span()
				seen = append(seen, saw(called, returned, n-rapid.Uint64Range(0, min(n, 2)).Draw(t, "behind")))
			}
		}
		sound := contradiction(first, seen) == ""
		require.Equal(t, porcupine.CheckOperations(register(first), operations(seen)), sound)
		both[sound]++
	})
	require.Greater(t, both[true], 5, "histories that are linearizable")
	require.Greater(t, both[false], 5, "histories that are not")
}

func TestContradiction(t *testing.T) {
	other := func(o observation) observation {
		o.record.Revision = "other"
		return o
	}
	stolen := wrote(5, 6, 3)
	stolen.expected = at(1).Revision
	for name, test := range map[string]struct {
		seen []observation
		want string
	}{
		"nothing":             {nil, ""},
		"one after the other": {[]observation{saw(1, 2, 1), wrote(3, 4, 2), saw(5, 6, 2), wrote(7, 8, 3)}, ""},
		"an early read":       {[]observation{wrote(1, 9, 2), saw(2, 3, 2), saw(4, 5, 2)}, ""},
		"a late read":         {[]observation{wrote(1, 9, 2), saw(2, 3, 1)}, ""},
		"at the same moment":  {[]observation{wrote(1, 3, 2), saw(3, 4, 1)}, ""},
		"a stale read":        {[]observation{wrote(1, 2, 2), saw(3, 4, 1)}, "a call that began after #2 was known gave #1"},
		"a read that goes back": {
			[]observation{wrote(1, 9, 2), saw(2, 3, 2), saw(4, 5, 1)}, "a call that began after #2 was known gave #1",
		},
		"made after it was seen": {[]observation{saw(1, 2, 2), wrote(3, 4, 2)}, "a call that began after #2 was known gave #2"},
		"made twice":             {[]observation{wrote(1, 2, 2), wrote(1, 2, 2)}, "#2 was made twice"},
		"never made":             {[]observation{saw(1, 2, 2)}, "#2 was seen, and nobody made it"},
		"from before":            {[]observation{saw(1, 2, 0)}, "#0 was seen, and nobody made it"},
		"two faces": {
			[]observation{saw(1, 2, 1), other(saw(1, 2, 1))},
			`#1 was seen as crane "a" Idle at #1 at revision "B" and as crane "a" Idle at #1 at "other"`,
		},
		"on another revision": {
			[]observation{saw(0, 0, 1), wrote(1, 2, 2), saw(3, 4, 2), stolen},
			`#3 was made on revision "B", which is not that of #2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, contradiction(1, test.seen))
		})
	}
}

// What clients see of a real store is what both checkers accept, and it is worth
// checking: there are commits, conflicts and reads in it.
func TestObservationsOfMemory(t *testing.T) {
	try := &trial{TB: t, h: &Harness{}, store: lifecycle.NewMemoryStore(), attempts: 100}
	first := try.put(key("object0"), idle)
	seen := try.observe(8, 1, 100, nil)[0]
	require.Empty(t, contradiction(first.Sequence, seen))
	require.True(t, porcupine.CheckOperations(register(first.Sequence), operations(seen)))
	commits, reads := 0, 0
	for _, o := range seen {
		if o.wrote {
			commits++
		} else {
			reads++
		}
	}
	require.Equal(t, 800, commits+reads)
	require.Positive(t, commits)
	require.Positive(t, reads)
}

// So it is of what clients see whose connections are cut: a commit that is sent
// again until it is settled is one call.
func TestObservationsUnderCuts(t *testing.T) {
	e := startEngine(t)
	p := NewProxy(t)
	p.To("tcp", e.address())
	try := &trial{TB: t, h: &Harness{}, store: newRemote(p.Addr(), "a"), attempts: 100, patience: time.Minute}
	closeLater(t, try.store)
	first := try.put(key("object0"), idle)
	p.CutAtRandom(10, 1)
	seen := try.observe(8, 1, 50, func() bool { return p.Cuts() < 20 })[0]
	p.CutAtRandom(0, 0)
	require.Empty(t, contradiction(first.Sequence, seen))
	require.True(t, porcupine.CheckOperations(register(first.Sequence), operations(seen)))
	require.GreaterOrEqual(t, p.Cuts(), 20)
	commits := 0
	for _, o := range seen {
		if o.wrote {
			commits++
		}
	}
	require.Positive(t, commits)
}

// What an engine has shown before it kept it may be lost, but not its revision be
// given to something else, nor what was acknowledged be lost.
func TestWhatAnEngineLoses(t *testing.T) {
	as := func(o observation, revision lifecycle.Revision) observation {
		o.record.State, o.record.Revision = moving, revision
		return o
	}
	for name, test := range map[string]struct {
		seen []observation
		want string
	}{
		"lost":                      {[]observation{as(saw(1, 2, 2), "lost"), wrote(3, 4, 2), saw(5, 6, 2)}, ""},
		"and more was made":         {[]observation{as(saw(1, 2, 2), "lost"), wrote(3, 4, 2), wrote(5, 6, 3), saw(7, 8, 3)}, ""},
		"and nothing comes instead": {[]observation{wrote(1, 2, 2), as(saw(3, 4, 3), "lost"), saw(5, 6, 2)}, ""},
		"and made after all":        {[]observation{saw(1, 2, 2), saw(3, 4, 1), wrote(5, 6, 2)}, ""},
		"and shown once more":       {[]observation{wrote(1, 2, 2), as(saw(3, 4, 2), "lost")}, `#2 was seen as crane "a" Idle at #2 at revision "C" and as crane "a" Moving at #2 at "lost"`},
		"under a revision that is given again": {
			[]observation{as(saw(1, 2, 2), at(2).Revision), wrote(3, 4, 2)},
			`#2 was seen as crane "a" Moving at #2 at revision "C" and as crane "a" Idle at #2 at "C"`,
		},
		"acknowledged and lost": {
			[]observation{as(wrote(1, 2, 2), "lost"), wrote(3, 4, 2)},
			`#2 was seen as crane "a" Moving at #2 at revision "lost" and as crane "a" Idle at #2 at "C"`,
		},
		"built upon": {
			[]observation{as(saw(1, 2, 2), "lost"), wrote(3, 4, 2), {called: 5, returned: 6, wrote: true, expected: "lost", record: at(3)}},
			`#3 was made on revision "lost", which is not that of #2`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, contradiction(1, withoutEarly(1, test.seen)))
		})
	}
}
