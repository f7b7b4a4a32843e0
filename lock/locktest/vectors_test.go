package locktest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVectorsOfTheSuite(t *testing.T) {
	list, err := parseVectors(vectors)
	require.NoError(t, err)
	require.Len(t, list, 52)
}

// file returns a file of one sequence.
func file(steps string) string {
	return `{"format": 1, "groups": {"g": "a group"}, "sequences": [{"name": "n", "group": "g", "steps": [` + steps + `]}]}`
}

// Anything unknown is refused and not skipped.
func TestVectorsAreReadStrictly(t *testing.T) {
	empty := file("")
	for what, data := range map[string]string{
		"no JSON":          `{`,
		"no sequence":      `{"format": 1}`,
		"another format":   strings.Replace(empty, `1`, `2`, 1),
		"an unknown field": strings.Replace(empty, `"groups"`, `"grops"`, 1),
	} {
		t.Run(what, func(t *testing.T) {
			_, err := parseVectors([]byte(data))
			require.Error(t, err)
		})
	}
}

// Forms that the file of the suite does not have.
func TestMoreVectors(t *testing.T) {
	for name, steps := range map[string]string{
		"conversions": `{"op": "try", "h": "a", "mode": "S", "path": "/a", "want": "ok"},
			{"op": "try", "h": "b", "mode": "S", "path": "/a", "want": "ok"},
			{"op": "lock", "h": "w", "mode": "X", "path": "/", "want": "waiting", "with": ["a", "b"]},
			{"op": "convert", "h": "a", "mode": "X", "want": "conflict", "with": ["b", "w"]},
			{"op": "convert", "h": "w", "mode": "S", "want": "not-held"},
			{"op": "convert", "h": "a", "mode": "Q", "want": "invalid"},
			{"op": "cancel", "h": "w", "want": "ok"}, {"op": "cancel", "h": "w", "want": "not-held"},
			{"op": "unlock", "h": "b", "want": "ok"}, {"op": "convert", "h": "a", "mode": "IX", "want": "ok"},
			{"op": "try", "h": "c", "mode": "IX", "path": "/a", "want": "conflict", "with": ["a"]},
			{"op": "unlock", "h": "a", "want": "ok"}, {"op": "idle", "want": "ok"}`,
		"lists": `{"op": "lock", "h": "a", "mode": "S", "path": "/a", "want": "ok"},
			{"op": "lock", "h": "l", "locks": [{"mode": "X", "path": "/a"}, {"mode": "X", "path": "/b"}], "want": "waiting", "with": ["a"]},
			{"op": "lock", "h": "r", "mode": "S", "path": "/a/x", "want": "waiting", "with": ["l"]},
			{"op": "lock", "h": "s", "mode": "S", "path": "/b", "want": "waiting", "with": ["l"]},
			{"op": "lock", "h": "s2", "locks": [{"mode": "X", "path": "/c"}], "want": "ok"},
			{"op": "try", "h": "x", "locks": [], "want": "invalid"}, {"op": "count", "held": 2, "waiting": 3},
			{"op": "cancel", "h": "l", "want": "ok", "granted": ["r", "s"]}`,
		"systems": `{"op": "lock", "system": "s", "h": "a", "mode": "X", "path": "/", "want": "ok"},
			{"op": "lock", "system": "t", "h": "a", "mode": "X", "path": "/", "want": "ok"},
			{"op": "lock", "system": "s", "h": "b", "mode": "X", "path": "/", "want": "waiting", "with": ["a"]},
			{"op": "count", "system": "s", "held": 1, "waiting": 1}, {"op": "count", "held": 2, "waiting": 1},
			{"op": "unlock", "system": "t", "h": "a", "want": "ok"}, {"op": "idle", "system": "t", "want": "ok"},
			{"op": "unlock", "system": "s", "h": "a", "want": "ok", "granted": ["b"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			list, err := parseVectors([]byte(file(steps)))
			require.NoError(t, err)
			list[0].run(t, naiveHarness(""))
		})
	}
}
