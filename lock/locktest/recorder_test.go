package locktest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// recorder is a test that may fail: it keeps what is said. What it does not
// record, such as TempDir, is the real test's.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	skipped  bool
	said     []string
	cleanups []func()
}

// watch runs a test to its end and returns what became of it.
func watch(t testing.TB, run func(t testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine
		defer close(done)
		defer r.cleanUp()
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		run(r)
	}()
	<-done
	return r
}

func (r *recorder) cleanUp() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func (r *recorder) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, text)
}

func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.said, "\n")
}

func (r *recorder) set(flag *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*flag = true
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

func (r *recorder) Fail()              { r.set(&r.failed) }
func (r *recorder) Cleanup(run func()) { r.cleanups = append(r.cleanups, run) }
func (r *recorder) Helper()            {}
func (r *recorder) Log(args ...any)    { r.say(strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
func (r *recorder) Error(args ...any)  { r.Log(args...); r.Fail() }
func (r *recorder) Fatal(args ...any)  { r.Error(args...); r.FailNow() }

func (r *recorder) Logf(format string, args ...any)   { r.say(fmt.Sprintf(format, args...)) }
func (r *recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }

// Context is not ended before the cleanups, unlike that of the real test: no
// demand may depend on it.
func (r *recorder) Context() context.Context { return context.Background() }

func (r *recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *recorder) SkipNow() {
	r.set(&r.skipped)
	runtime.Goexit()
}

func (r *recorder) Skip(args ...any)                 { r.Log(args...); r.SkipNow() }
func (r *recorder) Skipf(format string, args ...any) { r.Logf(format, args...); r.SkipNow() }

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
			r := watch(t, func(t testing.TB) { d.try(t, &h, bubble) })
			switch {
			case r.Failed():
				o.failed[d.name] = r.text()
			case r.Skipped():
				o.skipped[d.name] = r.text()
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
