package locktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/suitetest"
	"github.com/interlock-go/interlock/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func naiveHarness(fault string) *harness {
	open := func(_ testing.TB, c lock.Config) lock.Locker {
		n := newNaive(c, fault)
		if fault == "Revoke does not reach the holder of another locker" {
			return Several[lock.Locker](n, deaf{n})
		}
		return n
	}
	return newHarness(open, &Config{
		Faulty: func(t testing.TB, c lock.Config) lock.Locker {
			n := newNaive(c, fault)
			late, end := context.WithCancel(t.Context())
			t.Cleanup(end)
			n.shaky, n.late = true, late
			return n
		},
		Unknown:    func(err error) bool { return errors.Is(err, errNoAnswer) },
		TTL:        naiveTTL,
		FirstToken: true,
		Steps:      2_000, Attempts: 40, Histories: 60, Seed: 1,
	})
}

// deaf is a locker whose Revoke notifies no holder.
type deaf struct{ *naive }

func (deaf) Revoke(context.Context, lock.Token, string) error { return nil }

// verdict runs a demand as Run does, but on a recorder.
func verdict(t *testing.T, d *demand, h *harness) *suitetest.Recorder {
	return suitetest.Record(t, func(t testing.TB) { d.run(t, h) })
}

// A correct locker passes. The Tree, with which the suite compares it, is tested too: it
// answers as a simple locker does.
func TestNaivePasses(t *testing.T) {
	h := naiveHarness("")
	if os.Getenv("INTERLOCK_LONG") != "" {
		h.Steps, h.Seed = 1_000_000, 0
	}
	Run(t, h.open, &h.Config)
}

// Every planted fault is found by its demand, and every demand finds a fault.
func TestFaultsAreFound(t *testing.T) {
	all := demands()
	for _, f := range faults {
		t.Run(f.fault, func(t *testing.T) {
			i := slices.IndexFunc(all, func(d demand) bool { return d.name == f.demand })
			require.GreaterOrEqual(t, i, 0, "unknown demand %s", f.demand)
			h := naiveHarness(f.fault)
			if !all[i].faulty { // with faults, calls of a correct locker may take longer
				h.Patience = 100 * time.Millisecond // some faults make calls hang
			}
			h.Histories = 400 // at least one in ten shows a fault; the first one ends the demand
			r := verdict(t, &all[i], h)
			require.True(t, r.Failed(), "%s does not find the fault", f.demand)
			t.Logf("%s", r.Text())
		})
	}
	for _, d := range all {
		planted := slices.ContainsFunc(faults, func(f struct{ fault, demand string }) bool { return f.demand == d.name })
		require.True(t, planted, "no fault is planted for %s", d.name)
	}
}

// A call that hangs is no unknown answer, whatever the configuration reports about its error.
func TestHangsAreNoUnknownAnswers(t *testing.T) {
	h := naiveHarness("a granted wait does not return")
	h.Unknown = func(error) bool { return true }
	h.Patience = 100 * time.Millisecond
	all := demands()
	i := slices.IndexFunc(all, func(d demand) bool { return d.faulty })
	require.Contains(t, verdict(t, &all[i], h).Text(), "the call hangs")
}

// Without declarations the suite skips the demands that need more.
func TestTreeWithoutDeclarations(t *testing.T) {
	open := func(_ testing.TB, c lock.Config) lock.Locker { return lock.Must(&c) }
	h := newHarness(open, &Config{Steps: 500, Histories: 5, Attempts: 10})
	var skipped []string
	for _, d := range demands() {
		r := verdict(t, &d, h)
		require.False(t, r.Failed(), "%s: %s", d.name, r.Text())
		if r.Skipped() {
			skipped = append(skipped, r.Text())
		}
	}
	require.ElementsMatch(t, []string{
		"skipped: the configuration does not declare FirstToken", "skipped: the configuration does not declare Faulty",
		"skipped: the configuration does not declare Faulty",
	}, skipped)
}

// A demand about faults needs Unknown beside Faulty.
func TestFaultyWithoutUnknown(t *testing.T) {
	for _, d := range demands() {
		if !d.faulty {
			continue
		}
		h := naiveHarness("")
		h.TTL = 0
		if d.expires {
			require.Equal(t, "skipped: the configuration does not declare TTL", verdict(t, &d, h).Text(), d.name)
		}
		h.Unknown = nil
		require.Equal(t, "skipped: the configuration does not declare Unknown", verdict(t, &d, h).Text(), d.name)
	}
}

// Several of one Locker is that Locker.
func TestSeveral(t *testing.T) {
	Run(t, func(_ testing.TB, c lock.Config) lock.Locker {
		tree := lock.Must(&c)
		return Several(tree, tree)
	}, &Config{
		FirstToken: true,
		Steps:      500, Histories: 5, Attempts: 10,
	})
}

func TestWithoutLocker(t *testing.T) {
	r := verdict(t, &demands()[0], newHarness(func(testing.TB, lock.Config) lock.Locker { return nil }, nil))
	require.Contains(t, r.Text(), "open returned no locker")
}

// The names of subtests are stable: a group and a requirement. Every guarantee of
// package lock has a group.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range demands() {
		require.Regexp(t, `^(G[0-9]+_[a-z_]+|[A-Z][A-Za-z]+)/[a-z0-9_]+$`, d.name)
		require.False(t, seen[d.name], d.name)
		seen[d.name] = true
		group, _, _ := strings.Cut(d.name, "_")
		seen[group] = true
	}
	for i := range 12 {
		require.True(t, seen[fmt.Sprint("G", i+1)], "guarantee %d has no demand", i+1)
	}
}

// A failing random sequence is reported in a short form, with its seed.
func TestRandomSequencesAreShortened(t *testing.T) {
	d := demand{test: randomSequences}
	text := verdict(t, &d, naiveHarness("a try overtakes waiters")).Text()
	require.Contains(t, text, "(Seed 1)")
	require.NotRegexp(t, `(?m)^  6 `, text, "five steps are enough")
}

// A history with an error that is not a refusal is not judged.
func TestHistoriesReportErrors(t *testing.T) {
	for name, c := range map[string]struct {
		op   string
		err  error
		want string
	}{
		"another error":  {"try", errors.New("no answer"), "no answer"},
		"refused unlock": {"unlock", &lock.ConflictError{Err: lock.ErrConflict}, "conflict"},
		"unknown holder": {"try", &lock.ConflictError{Err: lock.ErrConflict, Holders: []lock.Holder{{Owner: "unknown"}}}, "unknown holder"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := outcomeOf(c.op, c.err)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// A conversion of a lost grant that has an answer was made while the grant was held: here there is
// no such time before the conflicting grant ends. One without an answer may have had no effect.
func TestConversionsOfLostGrants(t *testing.T) {
	for _, answered := range []bool{true, false} {
		var r recorder
		r.add(operation{"try", 1, []lock.Request{at(lock.S, "/a")}}, 1, outcome{}, 2)
		r.add(operation{"try", 2, []lock.Request{at(lock.S, "/a")}}, 3, outcome{}, 4)
		returned := int64(never)
		if answered {
			returned = 6
		}
		r.add(operation{"upgrade", 1, []lock.Request{at(lock.X, "/a")}}, 5, outcome{}, returned)
		r.add(operation{op: "unlock", hold: 1}, 5, outcome{}, never)
		r.add(operation{op: "unlock", hold: 2}, 7, outcome{}, 8)
		require.Equal(t, !answered, porcupine.CheckOperations(sequential, r.log))
	}
}

func TestScriptsAreReadStrictly(t *testing.T) {
	for name, line := range map[string]string{
		"nothing":          "",
		"no operation":     "a",
		"one count of two": "a count 1",
		"no number":        "a count 1 x",
		"no path":          "a holders b",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseStep(line)
			require.Error(t, err)
		})
	}
}

// Scripts with a wrong expectation fail.
func TestWrongScriptsFail(t *testing.T) {
	differ := func(expected, actual string) string { return "expected: " + expected + `\s+actual  : ` + actual }
	for name, c := range map[string]struct{ script, want string }{
		"refusal that is granted":        {"a try X /a\nb try S /b : conflict a", differ(`"conflict"`, `"ok"`)},
		"grant that is refused":          {"a try X /a\nb try S /", differ(`"ok"`, `"conflict"`)},
		"refusal that lists others":      {"a try X /a\nb try S / : conflict c", differ(`"c"`, `"a"`)},
		"wait that is granted":           {"a lock X /a : waiting b", differ(`"waiting"`, `"ok"`)},
		"wait for others":                {"a try X /a\nb lock X /a : waiting c", differ(`"c"`, `"a"`)},
		"unlock of nothing":              {"a try X /a\na unlock : not-held", differ(`"not-held"`, `"ok"`)},
		"operation":                      {"a steal", "the operation is unknown"},
		"mode":                           {"a try U /a", differ(`"ok"`, `"invalid"`)},
		"path":                           {"a try X a", differ(`"ok"`, `"invalid"`)},
		"mode without path":              {"a try X /a X", differ(`"ok"`, `"invalid"`)},
		"mode of an upgrade":             {"a try X /a\na upgrade U", differ(`"ok"`, `"invalid"`)},
		"answer":                         {"a unlock : maybe", differ(`"maybe"`, `"not-held"`)},
		"cancel of nothing":              {"a cancel", differ(`"ok"`, `"not-held"`)},
		"grant of a wait, not stated":    {"a try X /a\nb lock X /a : waiting a\na unlock", differ(`""`, `"b"`)},
		"grant of a wait, not there":     {"a try X /a\nb lock X /a : waiting a\nb cancel ; grants c", differ(`"c"`, `""`)},
		"count":                          {"a try X /a\nx count 1 1", differ("1", "0")},
		"idle":                           {"a try X /a\nx idle", differ("0", "1")},
		"no fault: unlock of a wait":     {"a try X /a\nb lock X /a : waiting a\nb unlock : not-held", ""},
		"no fault: conversion of a wait": {"a try X /a\nb lock X /a : waiting a\nb upgrade X : not-held", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var d demand
			for line := range strings.Lines(c.script) {
				s, err := parseStep(line)
				require.NoError(t, err)
				d.steps = append(d.steps, s)
			}
			r := verdict(t, &d, naiveHarness(""))
			require.Equal(t, c.want != "", r.Failed())
			require.Regexp(t, c.want, r.Text())
		})
	}
}
