package storetest

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/internal/suitetest"
)

// outcome is what became of every demand.
type outcome struct {
	failed, skipped map[string]string // by name, what was said
}

// judge runs the suite as Run does, but on recorders, or only the demands that
// are named.
func judge(t *testing.T, h Harness, only ...string) outcome {
	o := outcome{failed: map[string]string{}, skipped: map[string]string{}}
	for _, d := range h.demands() {
		if len(only) > 0 && !slices.Contains(only, d.name) {
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
