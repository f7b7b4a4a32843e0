// Package suitetest is what the tests of the conformance suites share: a test
// that may fail, and the comparison of a suite with its documentation.
package suitetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Recorder is a test that may fail: it keeps what is said. What it does not
// record, such as TempDir, is the real test's. [Record] makes one.
type Recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	skipped  bool
	said     []string
	cleanups []func()
}

// Record runs a test to its end, in a goroutine of its own, and returns what
// became of it. A panic is a failure.
func Record(t testing.TB, run func(t testing.TB)) *Recorder {
	r := &Recorder{TB: t}
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

func (r *Recorder) cleanUp() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func (r *Recorder) say(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, text)
}

// Text returns what was said, a line each.
func (r *Recorder) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.said, "\n")
}

func (r *Recorder) set(flag *bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*flag = true
}

// Failed reports whether the test has failed.
func (r *Recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// Skipped reports whether the test was skipped.
func (r *Recorder) Skipped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.skipped
}

// What follows implements [testing.TB].

func (r *Recorder) Fail()              { r.set(&r.failed) }
func (r *Recorder) Cleanup(run func()) { r.cleanups = append(r.cleanups, run) }
func (r *Recorder) Helper()            {}
func (r *Recorder) Log(args ...any)    { r.say(strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
func (r *Recorder) Error(args ...any)  { r.Log(args...); r.Fail() }
func (r *Recorder) Fatal(args ...any)  { r.Error(args...); r.FailNow() }

func (r *Recorder) Logf(format string, args ...any)   { r.say(fmt.Sprintf(format, args...)) }
func (r *Recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *Recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }

// Context is not ended before the cleanups, unlike that of the real test: no
// demand may depend on it.
func (r *Recorder) Context() context.Context { return context.Background() }

func (r *Recorder) FailNow() {
	r.Fail()
	runtime.Goexit()
}

func (r *Recorder) SkipNow() {
	r.set(&r.skipped)
	runtime.Goexit()
}

func (r *Recorder) Skip(args ...any)                 { r.Log(args...); r.SkipNow() }
func (r *Recorder) Skipf(format string, args ...any) { r.Logf(format, args...); r.SkipNow() }
