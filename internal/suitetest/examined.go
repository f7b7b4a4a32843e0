package suitetest

import (
	"context"
	"sync/atomic"
)

// EndWhenExamined returns a context that ends with a cause when Done or Err is called for the
// n-th time. The function ends the context and reports whether that has happened before.
func EndWhenExamined(ctx context.Context, n int, cause error) (context.Context, func() bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	e := &examined{Context: ctx}
	e.examine = func() {
		if e.times.Add(1) == int64(n) {
			cancel(cause)
		}
	}
	return e, func() bool {
		cancel(nil)
		return e.times.Load() >= int64(n)
	}
}

// examined is a context that calls a function when it is examined.
type examined struct {
	context.Context
	times   atomic.Int64
	examine func()
}

// Done implements [context.Context].
func (e *examined) Done() <-chan struct{} {
	e.examine()
	return e.Context.Done()
}

// Err implements [context.Context].
func (e *examined) Err() error {
	e.examine()
	return e.Context.Err()
}
