package crashtest

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// recorder is a test that may fail: it keeps what is said.
type recorder struct {
	testing.TB
	failures []string
	logs     []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(f string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(f, args...))
}

func (r *recorder) Logf(f string, args ...any) { r.logs = append(r.logs, fmt.Sprintf(f, args...)) }

func (r *recorder) text() string { return strings.Join(r.failures, "\n") }

// judge runs a scenario as Run does, but on a recorder.
func judge[A any](t *testing.T, h Harness, s Scenario[A]) (*recorder, Coverage) {
	r := &recorder{TB: t}
	c := explore(r, &h, s.plain(), func(try func(t testing.TB)) {
		synctest.Test(t, func(t *testing.T) { try(t) })
	})
	return r, c
}
