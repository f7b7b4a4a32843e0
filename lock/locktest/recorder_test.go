package locktest

import (
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/suitetest"
)

// outcomes is what became of every demand.
type outcomes struct {
	failed, skipped map[string]string // by name, what was said
}

// judgeAll runs the suite as Run does, but on recorders, or only the demands
// whose names begin so.
func judgeAll(t *testing.T, h Harness, only ...string) outcomes {
	o := outcomes{failed: map[string]string{}, skipped: map[string]string{}}
	for _, d := range everything(t) {
		if len(only) > 0 && !slices.ContainsFunc(only, func(prefix string) bool { return strings.HasPrefix(d.name, prefix) }) {
			continue
		}
		d.inTime(t, &h, func(t testing.TB, bubble bool) {
			r := suitetest.Record(t, func(t testing.TB) { d.try(t, &h, bubble) })
			switch {
			case r.Failed():
				o.failed[d.name] = r.Text()
			case r.Skipped():
				o.skipped[d.name] = r.Text()
			}
		})
	}
	return o
}

// everything is what Run runs.
func everything(t testing.TB) []demand {
	list, err := parseVectors(vectors)
	if err != nil {
		t.Fatal(err)
	}
	return append(demands(), list...)
}
