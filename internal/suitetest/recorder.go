// Package suitetest helps to test conformance suites: it records a test that may fail,
// and compares a suite with its documentation.
package suitetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Recorder is a test that may fail. It records messages and failures. Its other methods,
// such as TempDir, are those of the real test. [Record] returns one.
type Recorder struct {
	testing.TB
	mu       sync.Mutex
	failed   bool
	skipped  bool
	messages []string
	cleanups []func()
}

// Record runs a test in a goroutine and returns its record. It waits for the end of the
// test. A panic is a failure.
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

func (r *Recorder) log(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, text)
}

// Text returns the messages, one per line.
func (r *Recorder) Text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.messages, "\n")
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
func (r *Recorder) Log(args ...any)    { r.log(strings.TrimSuffix(fmt.Sprintln(args...), "\n")) }
func (r *Recorder) Error(args ...any)  { r.Log(args...); r.Fail() }
func (r *Recorder) Fatal(args ...any)  { r.Error(args...); r.FailNow() }

func (r *Recorder) Logf(format string, args ...any)   { r.log(fmt.Sprintf(format, args...)) }
func (r *Recorder) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *Recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }

// Context returns a context that does not end before the cleanups, unlike that of the
// real test.
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
