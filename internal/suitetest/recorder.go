// Package suitetest has a test that may fail, and a context that ends in the middle of a
// call. The tests of the conformance suites use the first to check that the suites find
// planted faults.
package suitetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Recorder is a test that may fail and keeps its log. Methods that it does not implement,
// such as TempDir, are those of the real test. [Record] makes one.
type Recorder struct {
	testing.TB
	failed, skipped atomic.Bool
	cleanups        []func()

	mu  sync.Mutex // guards log
	log []string
}

// Record runs a test to its end, in a goroutine of its own, and returns the result. A
// panic is a failure.
func Record(t testing.TB, run func(t testing.TB)) *Recorder {
	r := &Recorder{TB: t}
	done := make(chan struct{})
	go func() { // FailNow ends the goroutine
		defer close(done)
		defer func() {
			for _, cleanUp := range slices.Backward(r.cleanups) {
				cleanUp()
			}
		}()
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

// Failed reports whether the test has failed.
func (r *Recorder) Failed() bool { return r.failed.Load() }

// Skipped reports whether the test was skipped.
func (r *Recorder) Skipped() bool { return r.skipped.Load() }

// The methods below implement [testing.TB].

func (r *Recorder) Fail()              { r.failed.Store(true) }
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
	r.skipped.Store(true)
	runtime.Goexit()
}

func (r *Recorder) Skip(args ...any)                 { r.Log(args...); r.SkipNow() }
func (r *Recorder) Skipf(format string, args ...any) { r.Logf(format, args...); r.SkipNow() }
