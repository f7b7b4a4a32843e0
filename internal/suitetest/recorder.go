// Package suitetest has a test that may fail. The tests of the conformance suites use it
// to check that the suites find planted faults.
package suitetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Recorder is a test that may fail and keeps its log. Methods that it does not implement,
// such as TempDir, are those of the real test. [Record] makes one.
type Recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	skipped  bool
	log      []string
	cleanups []func()
}

// Record runs a test to its end, in a goroutine of its own, and returns the result. A
// panic is a failure.
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

type mutantKey struct{}

// WithMutant returns the context of a test that runs with a mutant of its table.
func WithMutant(ctx context.Context) context.Context {
	return context.WithValue(ctx, mutantKey{}, true)
}

// IsMutant reports whether a test runs with a mutant. It must not write golden files.
func IsMutant(ctx context.Context) bool { return ctx.Value(mutantKey{}) != nil }

func (r *Recorder) cleanUp() {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
}

func (r *Recorder) write(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, text)
}

// Text returns the log, one line for each call.
func (r *Recorder) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.log, "\n")
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

// The methods below implement [testing.TB].

func (r *Recorder) Fail()              { r.set(&r.failed) }
func (r *Recorder) Cleanup(run func()) { r.cleanups = append(r.cleanups, run) }
func (r *Recorder) Helper()            {}
func (r *Recorder) Log(args ...any)    { r.write(strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
func (r *Recorder) Error(args ...any)  { r.Log(args...); r.Fail() }
func (r *Recorder) Fatal(args ...any)  { r.Error(args...); r.FailNow() }

func (r *Recorder) Logf(format string, args ...any)   { r.write(fmt.Sprintf(format, args...)) }
func (r *Recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *Recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }

// Context returns a context that does not end before the cleanups, unlike that of the real
// test.
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
