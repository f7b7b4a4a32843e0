package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file call from many goroutines at once.

func anyGoroutine(e *env) {
	for range e.h.Attempts {
		g := e.take("first", at(lock.X, "/a"))
		var tried [8]*lock.Grant
		require.NoError(e, together(len(tried), func(i int) error {
			if err := g.Unlock(e.Context()); err != nil {
				return fmt.Errorf("unlock: %w", err)
			}
			var err error
			tried[i], err = e.l.TryLock(e.Context(), at(lock.X, "/a"), by("next"))
			if errors.Is(err, lock.ErrConflict) {
				return nil
			}
			return err
		}))
		next := slices.DeleteFunc(tried[:], func(g *lock.Grant) bool { return g == nil })
		require.Len(e, next, 1, "the tries that are granted after one release")
		_, err := e.l.TryLock(e.Context(), at(lock.X, "/a"), nil)
		require.ErrorIs(e, err, lock.ErrConflict, "TryLock beside the next holder")
		e.unlock(next[0])
		e.idle()
	}
}

func concurrentTokens(e *env) {
	var last atomic.Uint64
	require.NoError(e, together(8, func(i int) error {
		for range e.h.Attempts {
			ctx, cancel := e.bounded(e.h.Patience)
			g, err := e.l.Lock(ctx, at(lock.X, "/a"), by(fmt.Sprint("goroutine ", i)))
			cancel()
			if err != nil {
				return err
			}
			before := last.Swap(uint64(g.Token()))
			assert.Greater(e, uint64(g.Token()), before, "the token of the later grant")
			// One snapshot beside waits that arrive, and one beside the next grant.
			if err := errors.Join(e.checkSnapshot(), g.Unlock(e.Context()), e.checkSnapshot()); err != nil {
				return err
			}
		}
		return nil
	}))
	e.idle()
}

// checkSnapshot returns an error if a snapshot of exclusive requests for one path is not of one
// moment.
func (e *env) checkSnapshot() error {
	s, err := e.l.Snapshot(e.Context())
	if err != nil {
		return err
	}
	held := 0
	for _, h := range s.Holders {
		if !h.Waiting {
			held++
		}
	}
	if held != s.Held || len(s.Holders)-held != s.Waiting || held > 1 {
		return fmt.Errorf("a snapshot counts %d grants and %d waits, and lists %v", s.Held, s.Waiting, s.Holders)
	}
	return nil
}

func announcedFirst(e *env) {
	for range e.h.Attempts {
		ctx, end := e.bounded(e.h.Patience) // one round may not hang; all together may take long on a busy machine
		g := e.take("holder", at(lock.X, "/a"))
		work, cancel := g.Context(e.Context())
		require.NoError(e, together(4, func(i int) error {
			var next *lock.Grant
			var err error
			switch i {
			case 0:
				return e.l.Break(e.Context(), g.Token(), "an operator")
			case 1, 2:
				next, err = e.l.Lock(ctx, at(lock.X, "/"), by("next"))
			default:
				for next == nil && (err == nil || errors.Is(err, lock.ErrConflict)) {
					next, err = e.l.TryLock(ctx, at(lock.IS, "/a/b"), by("try"))
				}
			}
			if err != nil {
				return err
			}
			assert.ErrorIs(e, g.Check(), lock.ErrLost, "the check of the broken grant")
			assert.True(e, closed(g.Lost()), "Lost of the broken grant")
			assert.ErrorIs(e, context.Cause(work), lock.ErrLost, "the context of the broken grant")
			return next.Unlock(e.Context())
		}))
		cancel()
		end()
		if e.Failed() {
			return
		}
	}
	e.idle()
}

// cancelAsUnlocked cancels waits and unlocks the grant that they wait for: in one order, in
// the other, or at once. It returns when the waits have returned. A wait holds nothing if
// it returns an error.
func (e *env) cancelAsUnlocked(round int, g *lock.Grant, waits ...*call) {
	e.Helper()
	cancel := func() {
		for _, c := range waits {
			c.cancel(errCancelled)
		}
	}
	switch round % 3 {
	case 0:
		cancel()
		e.unlock(g)
	case 1:
		e.unlock(g)
		cancel()
	default:
		require.NoError(e, together(2, func(i int) error {
			if i == 0 {
				return g.Unlock(e.Context())
			}
			cancel()
			return nil
		}), "Unlock")
	}
	for _, c := range waits {
		e.wait(c)
		if c.err != nil {
			require.ErrorIs(e, c.err, errCancelled)
			require.Nil(e, c.grant)
		}
	}
}

func cancelledAsGranted(e *env) {
	for round := range e.h.Attempts {
		g := e.take("holder", at(lock.X, "/a"))
		c, behind := e.queue(by("waiting"), at(lock.X, "/a")), e.queue(by("behind"), at(lock.S, "/a"))
		e.cancelAsUnlocked(round, g, c)
		if c.err == nil {
			require.NoError(e, c.grant.Check(), "the grant")
			require.False(e, behind.returned(), "two conflicting waits are granted")
			e.unlock(c.grant)
		}
		e.unlock(e.granted(behind))
		e.idle()
	}
}

func oneCancelled(e *env) {
	o := &lock.Options{ID: "deploy", Owner: "deploy"}
	wait := func(ctx context.Context) (*lock.Grant, error) { return e.l.Lock(ctx, at(lock.X, "/a"), o) }
	for round := range e.h.Attempts {
		g := e.take("holder", at(lock.X, "/a"))
		leaving := []*call{e.queue(o, at(lock.X, "/a"))}
		// The suite cannot find out whether these calls have joined the first one.
		// The one that stays must be granted in either case.
		staying := e.begin(e.Context(), "Lock", wait)
		for range 3 {
			leaving = append(leaving, e.begin(e.Context(), "Lock", wait))
		}
		for range 10 {
			runtime.Gosched()
		}
		e.cancelAsUnlocked(round, g, leaving...)
		held := e.granted(staying)
		_, err := e.l.TryLock(e.Context(), at(lock.X, "/a"), nil)
		require.ErrorIs(e, err, lock.ErrConflict, "TryLock beside the grant of a call that stays: a cancelled call of its id has released it")
		for _, c := range leaving {
			if c.err == nil {
				require.Equal(e, held.Token(), c.grant.Token(), "the tokens of one id")
			}
		}
		e.unlock(held)
		e.idle()
	}
}

func concurrentIDs(e *env) {
	for i := range e.h.Attempts {
		ctx, cancel := e.bounded(e.h.Patience)
		o := &lock.Options{ID: fmt.Sprint("deploy-", i)}
		var got [8]*lock.Grant
		require.NoError(e, together(len(got), func(i int) (err error) {
			acquire := e.l.Lock
			if i%2 == 0 {
				acquire = e.l.TryLock
			}
			got[i], err = acquire(ctx, at(lock.X, "/a"), o)
			return err
		}), "an id, repeated at once")
		cancel()
		for _, g := range got {
			require.Equal(e, got[0].Token(), g.Token(), "the tokens of one id")
		}
		e.unlock(got[0])
		e.idle()
	}
}
