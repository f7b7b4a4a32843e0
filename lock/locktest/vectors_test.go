package locktest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/suitetest"
)

func TestVectorsOfTheSuite(t *testing.T) {
	list, err := parseVectors(vectors)
	require.NoError(t, err)
	require.Len(t, list, 52)
	h := treeHarness()
	for _, synctest := range []bool{true, false} {
		h.Synctest = synctest
		o := judgeAll(t, h, "Vectors/")
		require.Empty(t, o.failed)
		require.Empty(t, o.skipped)
	}
}

// of makes a file of one sequence.
func of(steps string) []byte {
	return []byte(`{"format": 1, "groups": {"g": "a group"}, "sequences": [{"name": "n", "group": "g", "steps": [` + steps + `]}]}`)
}

// What is not understood is refused, not left out.
func TestVectorsAreReadStrictly(t *testing.T) {
	_, err := parseVectors(of(`{"op": "idle", "want": "ok"}`))
	require.NoError(t, err)
	for what, data := range map[string][]byte{
		"no JSON":            []byte(`{`),
		"no sequence":        []byte(`{"format": 1}`),
		"another format":     []byte(strings.Replace(string(of(``)), `1`, `2`, 1)),
		"an unknown field":   []byte(strings.Replace(string(of(``)), `"groups"`, `"grops"`, 1)),
		"an unknown group":   []byte(strings.Replace(string(of(``)), `"g": "a`, `"h": "a`, 1)),
		"something behind":   append(of(``), '1'),
		"another matrix":     []byte(strings.Replace(string(of(``)), `"groups"`, `"compatible": {"IS": ["IS"]}, "groups"`, 1)),
		"an unknown mode":    []byte(strings.Replace(string(of(``)), `"groups"`, `"compatible": {"U": []}, "groups"`, 1)),
		"a name twice":       []byte(strings.Replace(string(of(``)), `"sequences": [`, `"sequences": [{"name": "n", "group": "g", "steps": []}, `, 1)),
		"an unknown op":      of(`{"op": "steal", "h": "a"}`),
		"an unknown answer":  of(`{"op": "unlock", "h": "a", "want": "maybe"}`),
		"no answer":          of(`{"op": "unlock", "h": "a"}`),
		"no handle":          of(`{"op": "unlock", "want": "ok"}`),
		"a handle too much":  of(`{"op": "idle", "h": "a", "want": "ok"}`),
		"no path":            of(`{"op": "try", "h": "a", "mode": "X", "want": "ok"}`),
		"path and locks":     of(`{"op": "try", "h": "a", "mode": "X", "path": "/", "locks": [], "want": "ok"}`),
		"a lock of no mode":  of(`{"op": "try", "h": "a", "locks": [{"path": "/"}], "want": "ok"}`),
		"a path too much":    of(`{"op": "unlock", "h": "a", "path": "/", "want": "ok"}`),
		"convert to nothing": of(`{"op": "convert", "h": "a", "want": "ok"}`),
		"a count of nothing": of(`{"op": "count", "held": 1}`),
		"a count too much":   of(`{"op": "idle", "held": 1, "want": "ok"}`),
		"a nameless refusal": of(`{"op": "try", "h": "a", "mode": "X", "path": "/", "want": "conflict"}`),
		"names of a success": of(`{"op": "try", "h": "a", "mode": "X", "path": "/", "want": "ok", "with": ["b"]}`),
		"grants of nothing":  of(`{"op": "unlock", "h": "a", "want": "not-held", "granted": ["b"]}`),
	} {
		_, err := parseVectors(data)
		require.Error(t, err, what)
		require.Regexp(t, "^locktest: ", err.Error(), what)
	}
}

// Steps with an answer that a sound locker does not give, each at the end of a
// sequence that is right until then.
func TestWrongVectorsFail(t *testing.T) {
	const (
		holdsA = `{"op": "try", "h": "a", "mode": "X", "path": "/a", "want": "ok"}, `
		bWaits = holdsA + `{"op": "lock", "h": "b", "mode": "X", "path": "/a", "want": "waiting", "with": ["a"]}, `
		cWaits = bWaits + `{"op": "lock", "h": "c", "mode": "S", "path": "/a/c", "want": "waiting", "with": ["a", "b"]}, `
	)
	for steps, said := range map[string]string{
		holdsA + `{"op": "try", "h": "b", "mode": "S", "path": "/b", "want": "conflict", "with": ["a"]}`:               "the answer is ok, not conflict",
		holdsA + `{"op": "try", "h": "b", "mode": "S", "path": "/", "want": "ok"}`:                                     "the answer is conflict, not ok",
		holdsA + `{"op": "try", "h": "b", "mode": "S", "path": "/", "want": "conflict", "with": ["c"]}`:                `the answer names ["a"], not ["c"]`,
		holdsA + `{"op": "try", "h": "b", "mode": "S", "path": "/", "want": "conflict", "with": ["a", "c"]}`:           `the answer names ["a"], not ["a" "c"]`,
		holdsA + `{"op": "try", "h": "b", "mode": "S", "path": "/a", "want": "invalid"}`:                               "the answer is conflict, not invalid",
		`{"op": "try", "h": "b", "mode": "S", "path": "/a/", "want": "ok"}`:                                            "the answer is invalid, not ok",
		`{"op": "try", "h": "b", "mode": "U", "path": "/a", "want": "ok"}`:                                             "the answer is invalid, not ok",
		`{"op": "lock", "h": "b", "mode": "U", "path": "/a", "want": "ok"}`:                                            "the answer is invalid, not ok",
		`{"op": "try", "h": "b", "locks": [], "want": "ok"}`:                                                           "the answer is invalid, not ok",
		`{"op": "lock", "h": "b", "mode": "S", "path": "/a", "want": "waiting", "with": ["a"]}`:                        "it is to wait, but a TryLock before it is: ok",
		`{"op": "lock", "h": "b", "mode": "S", "path": "/a", "want": "waiting"}`:                                       "the answer is ok, not waiting",
		holdsA + `{"op": "lock", "h": "b", "mode": "S", "path": "/a", "want": "waiting", "with": ["b"]}`:               `the answer names ["a"], not ["b"]`,
		holdsA + `{"op": "lock", "h": "b", "mode": "S", "path": "/a", "want": "ok"}`:                                   "does not end",
		holdsA + `{"op": "unlock", "h": "a", "want": "not-held"}`:                                                      "the answer is ok, not not-held",
		`{"op": "unlock", "h": "a", "want": "ok"}`:                                                                     "the answer is not-held, not ok",
		holdsA + `{"op": "unlock", "h": "a", "want": "ok"}, {"op": "unlock", "h": "a", "want": "ok"}`:                  "the answer is not-held, not ok",
		holdsA + `{"op": "cancel", "h": "a", "want": "ok"}`:                                                            "the answer is not-held, not ok",
		bWaits + `{"op": "cancel", "h": "b", "want": "not-held"}`:                                                      "the answer is ok, not not-held",
		bWaits + `{"op": "unlock", "h": "b", "want": "ok"}`:                                                            "the answer is not-held, not ok",
		bWaits + `{"op": "unlock", "h": "a", "want": "ok"}`:                                                            `it grants ["b"], not []`,
		bWaits + `{"op": "unlock", "h": "a", "want": "ok", "granted": ["c"]}`:                                          `it is to grant "c", which does not wait`,
		cWaits + `{"op": "unlock", "h": "a", "want": "ok", "granted": ["b", "c"]}`:                                     "does not end",
		cWaits + `{"op": "unlock", "h": "a", "want": "ok", "granted": ["c"]}`:                                          "does not end",
		bWaits + `{"op": "cancel", "h": "b", "want": "ok"}, {"op": "count", "held": 1, "waiting": 1}`:                  "1 are held and 0 wait, not 1 and 1",
		holdsA + `{"op": "convert", "h": "a", "mode": "S", "want": "conflict", "with": ["b"]}`:                         "the answer is ok, not conflict",
		bWaits + `{"op": "convert", "h": "a", "mode": "IX", "want": "ok"}`:                                             "",
		holdsA + `{"op": "convert", "h": "a", "mode": "U", "want": "ok"}`:                                              "the answer is invalid, not ok",
		holdsA + `{"op": "convert", "h": "z", "mode": "S", "want": "ok"}`:                                              "the answer is not-held, not ok",
		holdsA + `{"op": "idle", "want": "ok"}`:                                                                        "1 are held and 0 wait",
		holdsA + `{"op": "try", "h": "b", "system": "s", "mode": "X", "path": "/a", "want": "ok"}`:                     "",
		holdsA + `{"op": "unlock", "system": "s", "h": "a", "want": "ok"}`:                                             "the answer is not-held, not ok",
		`{"op": "try", "h": "b", "system": "s", "mode": "X", "path": "/", "want": "ok"}, {"op": "idle", "want": "ok"}`: "1 are held and 0 wait",
		holdsA + `{"op": "count", "held": 2, "waiting": 0}`:                                                            "1 are held and 0 wait, not 2 and 0",
		holdsA + `{"op": "count", "system": "s", "held": 1, "waiting": 0}`:                                             "0 are held and 0 wait, not 1 and 0",
	} {
		list, err := parseVectors(of(steps))
		require.NoError(t, err, steps)
		h := treeHarness()
		var r *suitetest.Recorder
		list[0].inTime(t, &h, func(tb testing.TB, bubble bool) {
			r = suitetest.Record(tb, func(t testing.TB) { list[0].try(t, &h, bubble) })
		})
		if said == "" {
			require.False(t, r.Failed(), "%s\n%s", steps, r.Text())
			continue
		}
		require.True(t, r.Failed(), steps)
		require.Contains(t, r.Text(), said, steps)
	}
}

// Steps that the file of the suite has not, in all the forms that it explains.
func TestMoreVectors(t *testing.T) {
	for _, steps := range []string{
		// Conversions that are refused, by holders and by who waits; of lists; up to the join.
		`{"op": "try", "h": "a", "mode": "S", "path": "/a", "want": "ok"},
		{"op": "try", "h": "b", "mode": "S", "path": "/a", "want": "ok"},
		{"op": "lock", "h": "w", "mode": "X", "path": "/", "want": "waiting", "with": ["a", "b"]},
		{"op": "convert", "h": "a", "mode": "X", "want": "conflict", "with": ["b", "w"]},
		{"op": "convert", "h": "w", "mode": "S", "want": "not-held"},
		{"op": "convert", "h": "nobody", "mode": "S", "want": "not-held"},
		{"op": "convert", "h": "a", "mode": "Q", "want": "invalid"},
		{"op": "cancel", "h": "w", "want": "ok"},
		{"op": "cancel", "h": "w", "want": "not-held"},
		{"op": "unlock", "h": "b", "want": "ok"},
		{"op": "convert", "h": "a", "mode": "IX", "want": "ok"},
		{"op": "try", "h": "b", "mode": "IS", "path": "/a", "want": "ok"},
		{"op": "try", "h": "c", "mode": "IX", "path": "/a", "want": "conflict", "with": ["a"]},
		{"op": "unlock", "h": "a", "want": "ok"}, {"op": "unlock", "h": "b", "want": "ok"},
		{"op": "try", "h": "l", "locks": [{"mode": "S", "path": "/a"}, {"mode": "X", "path": "/b"}], "want": "ok"},
		{"op": "convert", "h": "l", "mode": "IX", "want": "ok"},
		{"op": "convert", "h": "l", "mode": "IX", "want": "ok"},
		{"op": "try", "h": "c", "mode": "IX", "path": "/b", "want": "ok"},
		{"op": "unlock", "h": "l", "want": "ok"}, {"op": "unlock", "h": "c", "want": "ok"},
		{"op": "idle", "want": "ok"}`,
		// Lists that wait; what a cancelled wait lets through; grants at once; a handle used again.
		`{"op": "lock", "h": "a", "mode": "S", "path": "/a", "want": "ok"},
		{"op": "lock", "h": "l", "locks": [{"mode": "X", "path": "/a"}, {"mode": "X", "path": "/b"}], "want": "waiting", "with": ["a"]},
		{"op": "try", "h": "a", "mode": "X", "path": "/b/c", "want": "conflict", "with": ["l"]},
		{"op": "lock", "h": "r", "mode": "S", "path": "/a/x", "want": "waiting", "with": ["l"]},
		{"op": "lock", "h": "s", "mode": "S", "path": "/b", "want": "waiting", "with": ["l"]},
		{"op": "lock", "h": "s2", "locks": [{"mode": "X", "path": "/c"}], "want": "ok"},
		{"op": "count", "held": 2, "waiting": 3},
		{"op": "cancel", "h": "l", "want": "ok", "granted": ["r", "s"]},
		{"op": "unlock", "h": "l", "want": "not-held"},
		{"op": "unlock", "h": "a", "want": "ok"}, {"op": "unlock", "h": "r", "want": "ok"}, {"op": "unlock", "h": "s", "want": "ok"},
		{"op": "unlock", "h": "s", "want": "not-held"},
		{"op": "lock", "h": "s", "mode": "X", "path": "/a", "want": "ok"},
		{"op": "unlock", "h": "s", "want": "ok"}, {"op": "unlock", "h": "s2", "want": "ok"},
		{"op": "idle", "want": "ok"}`,
		// Systems.
		`{"op": "lock", "system": "s", "h": "a", "mode": "X", "path": "/", "want": "ok"},
		{"op": "lock", "system": "t", "h": "a", "mode": "X", "path": "/", "want": "ok"},
		{"op": "lock", "system": "s", "h": "b", "mode": "X", "path": "/", "want": "waiting", "with": ["a"]},
		{"op": "count", "system": "s", "held": 1, "waiting": 1}, {"op": "count", "held": 2, "waiting": 1},
		{"op": "unlock", "system": "t", "h": "a", "want": "ok"}, {"op": "idle", "system": "t", "want": "ok"},
		{"op": "unlock", "system": "s", "h": "a", "want": "ok", "granted": ["b"]},
		{"op": "unlock", "system": "s", "h": "b", "want": "ok"}, {"op": "idle", "want": "ok"}`,
	} {
		list, err := parseVectors(of(steps))
		require.NoError(t, err)
		for _, synctest := range []bool{true, false} {
			h := treeHarness()
			h.Synctest = synctest
			list[0].inTime(t, &h, func(tb testing.TB, bubble bool) {
				r := suitetest.Record(tb, func(t testing.TB) { list[0].try(t, &h, bubble) })
				require.False(t, r.Failed(), r.Text())
			})
		}
	}
}

// More than one grant of a step comes in the order that is written.
func TestVectorsOrderGrants(t *testing.T) {
	const steps = `{"op": "try", "h": "t", "mode": "X", "path": "/", "want": "ok"},
		{"op": "lock", "h": "a", "mode": "X", "path": "/a", "want": "waiting"},
		{"op": "lock", "h": "b", "mode": "X", "path": "/b", "want": "waiting"},
		{"op": "unlock", "h": "t", "want": "ok", "granted": ["GRANTED"]}`
	h := treeHarness()
	for order, fails := range map[string]bool{`a", "b`: false, `b", "a`: true} {
		list, err := parseVectors(of(strings.Replace(steps, "GRANTED", order, 1)))
		require.NoError(t, err)
		list[0].inTime(t, &h, func(tb testing.TB, bubble bool) {
			r := suitetest.Record(tb, func(t testing.TB) { list[0].try(t, &h, bubble) })
			require.Equal(t, fails, r.Failed(), r.Text())
		})
	}
}
