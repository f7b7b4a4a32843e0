package inspect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/interlock-go/interlock/lifecycle"
)

// shared is a value that is read for all requests. However many pages are open, it uses
// one connection to the store, and pauses after each reading, also after one that has
// failed. A request waits for its turn no longer than its context lasts.
type shared[T any] struct {
	turn  *semaphore.Weighted // held by a request that reads, or uses the fields below
	last  T                   // does not change
	err   error               // of the last reading
	until time.Time           // last and err are used until then
}

func newShared[T any]() *shared[T] { return &shared[T]{turn: semaphore.NewWeighted(1)} }

// get returns the last value for ten times the time that its reading took, at most 10
// seconds, and then reads again.
func (s *shared[T]) get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	if s.turn.Acquire(ctx, 1) != nil {
		var none T
		return none, lifecycle.Ended(ctx)
	}
	defer s.turn.Release(1)
	begin := time.Now()
	if begin.Before(s.until) {
		return s.last, s.err
	}
	// A client that leaves does not end the reading: others wait for it.
	ctx, cancel := withTimeout(context.WithoutCancel(ctx))
	defer cancel()
	s.last, s.err = read(ctx)
	end := time.Now()
	s.until = end.Add(min(10*end.Sub(begin), 10*time.Second))
	return s.last, s.err
}

// timeout is how long an answer may read, and how long a shared reading may. It does not
// apply to streams.
const timeout = 10 * time.Second

// errLate is the cause of a context whose time is over.
var errLate = errors.New("inspect: no answer in time")

func withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, errLate)
}

// lateError is an error that names what has not answered, in the form that
// [lifecycle.Problem] reads.
type lateError struct {
	name  string
	cause error
}

func (e *lateError) Error() string {
	return fmt.Sprintf("inspect: %s has not answered within %v", e.name, timeout)
}
func (e *lateError) Unwrap() error { return e.cause }
func (*lateError) HTTPStatus() int { return http.StatusServiceUnavailable }

// late returns an error with the name of what has not answered, if the time for an answer
// is over and the error has no name yet.
func late(name string, err error) error {
	if _, named := errors.AsType[*lateError](err); named || !errors.Is(err, errLate) {
		return err
	}
	return &lateError{name, err}
}

// storeOf is the name of a machine's store in the error of late.
func storeOf(machine string) string { return fmt.Sprintf("the store of machine %q", machine) }
