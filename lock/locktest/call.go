package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lock"
)

// call is a call of a Locker in a goroutine of its own. It ends with the test at
// the latest.
type call struct {
	what   string
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when it has returned; the fields below are set before
	grant  *lock.Grant
	err    error
	panics any
}

// errCancelled is the cause with which the suite cancels waits.
var errCancelled = errors.New("locktest: cancelled")

// begin starts a call, whose context ends with ctx or by cancel.
func (e *env) begin(ctx context.Context, what string, do func(ctx context.Context) (*lock.Grant, error)) *call {
	c := &call{what: what, done: make(chan struct{})}
	ctx, cancel := context.WithCancelCause(ctx)
	c.cancel, e.calls = cancel, append(e.calls, c)
	go func() {
		defer close(c.done)
		defer func() { c.panics = recover() }()
		c.grant, c.err = do(ctx)
	}()
	return c
}

func (c *call) returned() bool { return closed(c.done) }

// endCalls cancels all calls and waits for them.
func (e *env) endCalls() {
	for _, c := range e.calls {
		c.cancel(errCancelled)
	}
	for _, c := range e.calls {
		e.wait(c)
	}
}

// wait waits until a call has returned, and ends its context, because a grant does
// not depend on it. No request blocks the call any more, or the call was cancelled.
func (e *env) wait(c *call) {
	e.Helper()
	select {
	case <-c.done:
	case <-time.After(e.patience()):
		e.h.hangs.Store(true)
		require.FailNow(e, c.what+" does not return")
	}
	require.Nil(e, c.panics, "%s panics", c.what)
	c.cancel(errCancelled)
}

// patience returns how long a call may take now.
func (e *env) patience() time.Duration {
	if e.h.hangs.Load() { // every demand may meet the same fault
		return e.h.Patience / 10
	}
	return e.h.Patience
}

// eventually polls until check returns nil, and returns the last error. The result
// must follow from what has happened already.
func (e *env) eventually(check func() error) error {
	end := time.Now().Add(e.patience())
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := check()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			e.h.hangs.Store(true)
			return err
		}
		time.Sleep(pause)
	}
}

// take is a TryLock that must succeed.
func (e *env) take(owner string, r lock.Request) *lock.Grant {
	e.Helper()
	g, err := e.l.TryLock(e.Context(), r, by(owner))
	require.NoError(e, err, "%s by %q, without a conflict", r, owner)
	return g
}

// queue starts a Lock that must wait, and returns when it is seen in the queue. The owners
// of concurrent calls differ.
func (e *env) queue(o *lock.Options, r lock.Request) *call {
	e.Helper()
	c := e.begin(e.Context(), fmt.Sprintf("Lock of %s by %q", r, o.Owner), func(ctx context.Context) (*lock.Grant, error) {
		return e.l.Lock(ctx, r, o)
	})
	require.NoError(e, e.eventually(func() error {
		if c.returned() {
			return fmt.Errorf("the call did not wait: %w", c.err)
		}
		s, err := e.l.Snapshot(e.Context())
		if slices.ContainsFunc(s.Holders, func(h lock.Holder) bool { return h.Waiting && h.Owner == o.Owner }) {
			return nil
		}
		return fmt.Errorf("the snapshot does not list the call as waiting: %v, %w", s.Holders, err)
	}), "%s", c.what)
	return c
}

// granted returns the grant of a call.
func (e *env) granted(c *call) *lock.Grant {
	e.Helper()
	e.wait(c)
	require.NoError(e, c.err, "%s, without a conflict", c.what)
	require.NotNil(e, c.grant, "the grant of %s, which has returned no error", c.what)
	return c.grant
}

func (e *env) unlock(g *lock.Grant) {
	e.Helper()
	require.NoError(e, g.Unlock(e.Context()), "Unlock of %s", g.Requests())
}

// idle requires that the locker keeps nothing.
func (e *env) idle() {
	e.Helper()
	require.NoError(e, e.eventually(func() error {
		s, err := e.l.Snapshot(e.Context())
		if err == nil && (s.Held != 0 || s.Waiting != 0 || s.Nodes != 0 || len(s.Holders) != 0) {
			err = fmt.Errorf("%d are held, %d wait, %d nodes are kept: %v", s.Held, s.Waiting, s.Nodes, s.Holders)
		}
		return err
	}), "the locker is not idle")
}

func at(m lock.Mode, path string) lock.Request {
	return lock.Request{Path: lock.MustParse(path), Mode: m}
}

func by(owner string) *lock.Options { return &lock.Options{Owner: owner} }

// bounded returns a context for a call of a crowd, or for a few that start together. They
// return within the patience unless they hang.
func (e *env) bounded(patience time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(e.Context(), patience, errors.New("locktest: the call hangs"))
}

// together calls a function in n goroutines that start at the same moment. It returns the
// first error. The function must not end the test.
func together(n int, run func(i int) error) error {
	start := make(chan struct{})
	var group errgroup.Group
	for i := range n {
		group.Go(func() error {
			<-start
			return run(i)
		})
	}
	close(start)
	return group.Wait()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
