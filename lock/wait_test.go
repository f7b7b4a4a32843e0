package lock_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The order of waits, cancellations, full queues and ids are demands of the suite,
// which TestTreeConforms runs. The tests here add what only the Tree promises.

// inBubble runs a test in a bubble, with a tree that must be idle at the end.
func inBubble(t *testing.T, c *lock.Config, f func(t *testing.T, tree *lock.Tree)) {
	synctest.Test(t, func(t *testing.T) {
		tree := lock.Must(c)
		f(t, tree)
		synctest.Wait()
		idle(t, tree)
	})
}

func TestDeadlineListsTheHolder(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		began := time.Now()
		holder := take(t, tree, "X at /a/b", &lock.Options{Owner: "ann", Reason: "upgrade", ID: "u-1"})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		p := wait(ctx, tree, "X at /a", by("ann"))
		time.Sleep(3 * time.Second)
		err := p.failed(t)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, lock.ErrConflict)
		require.EqualError(t, err, "lock: X at /a: the context has ended: context deadline exceeded; "+
			"X at /a/b held by ann as u-1 (upgrade) since "+began.Format(time.RFC3339)+", token 1")
		unlock(t, holder)
	})
}

// everyCall makes each call that takes a context.
func everyCall(ctx context.Context, tree *lock.Tree) (errs []error) {
	_, err := tree.TryLock(ctx, req("X at /"), nil)
	errs = append(errs, err)
	_, err = tree.LockAll(ctx, reqs("X at /"), nil)
	errs = append(errs, err)
	_, err = tree.Holders(ctx, lock.Root(), lock.At)
	errs = append(errs, err)
	_, err = tree.Snapshot(ctx)
	return append(errs, err, tree.Revoke(ctx, 1, ""), tree.Break(ctx, 1, ""))
}

// Repeated calls wait for one acquisition and get one Grant. A cancelled call
// leaves it to the others; the last one withdraws it.
func TestSeveralCallsWaitForOneAcquisition(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		o := &lock.Options{ID: "deploy-1"}
		holder := take(t, tree, "X at /", nil)
		var calls []*pending
		var cancels []func()
		for range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancels = append(cancels, cancel)
			calls = append(calls, wait(ctx, tree, "X at /a", o))
		}
		require.Equal(t, 1, snapshot(t, tree).Waiting)
		cancels[0]()
		cancels[2]()
		require.ErrorIs(t, calls[0].failed(t), context.Canceled)
		require.ErrorIs(t, calls[2].failed(t), context.Canceled)
		unlock(t, holder)
		require.Same(t, calls[1].granted(t), calls[3].granted(t))
		unlock(t, calls[3].grant)
		require.ErrorIs(t, calls[1].grant.Check(), lock.ErrNotHeld)

		holder = take(t, tree, "X at /", nil)
		ctx, cancel := context.WithCancel(t.Context())
		calls = []*pending{wait(ctx, tree, "X at /a", o), wait(ctx, tree, "X at /a", o)}
		cancel()
		for _, c := range calls {
			require.ErrorIs(t, c.failed(t), context.Canceled)
		}
		unlock(t, holder)
		unlock(t, take(t, tree, "S at /a", o)) // the id is free for other requests
	})
}

// faulty is a context whose methods the test replaces.
type faulty struct {
	context.Context
	err  func() error
	done func() <-chan struct{}
}

func (c faulty) Err() error {
	if c.err != nil {
		return c.err()
	}
	return c.Context.Err()
}

func (c faulty) Done() <-chan struct{} {
	if c.done != nil {
		return c.done()
	}
	return c.Context.Done()
}

// A call that panics, because a method of its context does, leaves nothing (G2).
func TestPanicsLeaveNothing(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "X at /a", by("holder"))
		before := snapshot(t, tree)
		panicked := errors.New("a method of the context panics")
		for _, rs := range [][]lock.Request{{req("X at /a/b")}, {req("X at /free")}, {req("S at /free"), req("X at /")}} {
			for n := range 16 {
				acquire, left := tree.LockAll, n/2
				if n%2 == 0 {
					acquire = tree.TryLockAll
				}
				ctx, cancel := context.WithCancel(t.Context())
				count := func() {
					if left--; left < 0 {
						panic(panicked)
					}
				}
				late := faulty{
					Context: ctx,
					err:     func() error { count(); return ctx.Err() },
					done:    func() <-chan struct{} { count(); return ctx.Done() },
				}
				call := start(func() (_ *lock.Grant, err error) {
					defer func() {
						if value := recover(); value != nil {
							err = value.(error)
						}
					}()
					g, err := acquire(late, rs, by("panicking"))
					if err == nil {
						err = g.Unlock(t.Context())
					}
					return nil, err
				})
				cancel()
				synctest.Wait()
				require.True(t, call.done, "%s still waits after %d calls of the context", rs, n/2)
				if !errors.Is(call.err, lock.ErrConflict) && !errors.Is(call.err, context.Canceled) && call.err != nil {
					require.Equal(t, panicked, call.err)
				}
				after := snapshot(t, tree)
				after.LastToken = before.LastToken
				require.Equal(t, before, after, "%s, panic after %d calls of the context", rs, n/2)
			}
		}
		unlock(t, take(t, tree, "X at /free", nil), holder)
		unlock(t, take(t, tree, "X at /", nil))
	})
}

// A context that is done without an error breaks its contract and gets no lock.
func TestDoneWithoutError(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "X at /a", nil)
		done := make(chan struct{})
		close(done)
		ctx := faulty{Context: t.Context(), done: func() <-chan struct{} { return done }}
		g, err := tree.Lock(ctx, req("X at /a"), nil)
		require.Nil(t, g)
		require.ErrorIs(t, err, context.Canceled)
		unlock(t, holder)
	})
}

// A grant that comes together with the end of the context is released.
func TestGrantMeetsTheEndOfTheContext(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "X at /a", by("holder"))
		var err error
		p := wait(faulty{Context: t.Context(), err: func() error { return err }}, tree, "X at /a", by("late"))
		behind := wait(t.Context(), tree, "X at /a", by("behind"))
		err = context.Canceled // wakes no call
		unlock(t, holder)      // wakes the call
		refused := p.failed(t)
		require.ErrorIs(t, refused, context.Canceled)
		require.Empty(t, names(t, refused), "no earlier request conflicts at that moment")
		unlock(t, behind.granted(t))
	})
}

// Such a grant is not released if another call of the same id has it. That call may have
// waited, or may have been made while the grant was held.
func TestGrantOfAnotherCallStays(t *testing.T) {
	for name, waits := range map[string]bool{"waited": true, "while held": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
				var err error
				o := &lock.Options{ID: "both"}
				received := make(chan struct{})
				holder := take(t, tree, "X at /a", nil)
				p := wait(faulty{Context: t.Context(), err: func() error {
					if err != nil {
						<-received
					}
					return err
				}}, tree, "X at /a", o)
				var other *pending
				if waits {
					other = wait(t.Context(), tree, "X at /a", o)
				}
				err = context.Canceled
				unlock(t, holder)
				if !waits {
					other = wait(t.Context(), tree, "X at /a", o)
				}
				other.granted(t)
				close(received)
				require.ErrorIs(t, p.failed(t), context.Canceled)
				unlock(t, other.granted(t))
			})
		})
	}
}

// The same race in real time: a call returns a grant that is held, or an error.
func TestGrantsRaceWithCancels(t *testing.T) {
	tree := new(lock.Tree)
	granted := 0
	for range 500 {
		holder := take(t, tree, "X at /", nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *lock.Grant)
		go func() {
			g, _ := tree.Lock(ctx, req("X at /a"), nil)
			done <- g
		}()
		for snapshot(t, tree).Waiting == 0 {
			require.Empty(t, lock.CheckTree(tree))
			runtime.Gosched()
		}
		go cancel()
		unlock(t, holder)
		if g := <-done; g != nil {
			granted++
			require.NoError(t, g.Check())
			unlock(t, g)
		}
		idle(t, tree)
		cancel()
	}
	t.Logf("granted %d of 500", granted)
}

// The grant of a request that waited is a new one.
func TestGrantAfterAWaitReplacesNone(t *testing.T) {
	var replaces []lock.Token
	inBubble(t, &lock.Config{Observer: lock.Observer{Granted: func(_ context.Context, e lock.Acquisition) {
		replaces = append(replaces, e.Replaces)
	}}}, func(t *testing.T, tree *lock.Tree) {
		first := take(t, tree, "X at /a", nil)
		second := wait(t.Context(), tree, "X at /a", nil)
		unlock(t, first)
		unlock(t, second.granted(t))
		require.Equal(t, []lock.Token{0, 0}, replaces)
	})
}

// Requests that one unlock lets in get their tokens in the order of their arrival.
func TestGrantsOfOneUnlockAreInOrderOfArrival(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		first := take(t, tree, "X at /a", nil)
		strong, weak := wait(t.Context(), tree, "S at /a", nil), wait(t.Context(), tree, "IS at /a", nil)
		unlock(t, first)
		require.Equal(t, []lock.Token{2, 3}, []lock.Token{strong.granted(t).Token(), weak.granted(t).Token()})
		unlock(t, strong.grant, weak.grant)
	})
}
