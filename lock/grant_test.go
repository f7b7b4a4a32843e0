package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lock"
)

// closed reports whether a channel is closed.
func closed(lost <-chan struct{}) bool {
	select {
	case <-lost:
		return true
	default:
		return false
	}
}

// endings are the ways in which a grant ends or is revoked, the error of Check, and
// whether Lost is closed.
var endings = map[string]struct {
	do   func(*lock.Tree, *lock.Grant) error
	want error
	lost bool
}{
	"unlock": {func(_ *lock.Tree, h *lock.Grant) error { return h.Unlock(context.Background()) }, lock.ErrNotHeld, false},
	"revoke": {func(t *lock.Tree, h *lock.Grant) error { return t.Revoke(context.Background(), h.Token(), "why") }, lock.ErrRevoked, true},
	"break":  {func(t *lock.Tree, h *lock.Grant) error { return t.Break(context.Background(), h.Token(), "why") }, lock.ErrLost, true},
}

// G8: Check, Lost and contexts agree, whether they are called before or after.
func TestHowAGrantEnds(t *testing.T) {
	for name, ending := range endings {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
				h := take(t, tree, "S at /a", nil)
				require.NoError(t, h.Check())
				before := h.Lost()
				require.False(t, closed(before))
				parent, end := context.WithCancel(t.Context())
				defer end()
				ctx, cancel := h.Context(parent)
				defer cancel()
				left, leave := h.Context(parent)
				leave()
				require.ErrorIs(t, left.Err(), context.Canceled)
				require.NoError(t, ctx.Err())

				require.NoError(t, ending.do(tree, h))
				err := h.Check()
				require.ErrorIs(t, err, ending.want)
				require.Equal(t, ending.lost, closed(before))
				require.Equal(t, ending.lost, closed(h.Lost()), "also at a second call")
				require.ErrorIs(t, ctx.Err(), context.Canceled)
				require.Same(t, err, context.Cause(ctx))
				require.Equal(t, context.Canceled, context.Cause(left), "it had ended before")
				late, cancelLate := h.Context(parent)
				require.Same(t, err, context.Cause(late))
				cancelLate()
				require.NoError(t, parent.Err())
				require.ErrorIs(t, h.Upgrade(t.Context(), lock.X), ending.want)
				require.ErrorIs(t, h.Downgrade(t.Context(), lock.IS), ending.want)
				require.Equal(t, reqs("S at /a"), h.Requests())
				require.EqualValues(t, 1, h.Token())
				if detail, ok := errors.AsType[*lock.LostError](err); ok {
					require.Equal(t, lock.LostError{Token: 1, Reason: "why", Err: ending.want}, *detail)
				}
				_ = h.Unlock(t.Context())
			})
		})
	}
}

func TestConvertRefuses(t *testing.T) {
	ctx := context.Background()
	var tree lock.Tree
	h, err := tree.TryLockAll(ctx, reqs("S at /a", "X at /b"), nil)
	require.NoError(t, err)
	gone, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("out of time"))
	unchanged(t, &tree, func() {
		for _, m := range badModes {
			require.ErrorIs(t, h.Upgrade(ctx, m), lock.ErrInvalid)
			require.ErrorIs(t, h.Downgrade(ctx, m), lock.ErrInvalid)
		}
		require.EqualError(t, h.Downgrade(ctx, lock.IX), `lock: mode "IX" is not weaker than S at /a`)
		require.ErrorIs(t, h.Downgrade(ctx, lock.X), lock.ErrInvalid)
		require.NoError(t, h.Upgrade(ctx, lock.IS), "nothing is raised: no new token")
		require.EqualError(t, h.Upgrade(gone, lock.X), "lock: the context has ended: context canceled: out of time")
		require.ErrorIs(t, h.Downgrade(gone, lock.IS), context.Canceled)
	})
	require.NoError(t, h.Downgrade(ctx, lock.S))
	require.Equal(t, reqs("S at /a", "S at /b"), h.Requests())
	unlock(t, h)
	require.ErrorIs(t, h.Upgrade(ctx, lock.X), lock.ErrNotHeld)
}

// G8: a waiter is granted after Check, Lost and the contexts of the holder report
// the loss.
func TestBreakAnnouncesBeforeItGrants(t *testing.T) {
	for name, revoked := range map[string]bool{"held": false, "revoked before": true} {
		t.Run(name, func(t *testing.T) {
			var holder *lock.Grant
			var work context.Context
			granted := 0
			tree := lock.Must(&lock.Config{Observer: lock.Observer{Granted: func(_ context.Context, g lock.Acquisition) {
				if g.Owner != "next" {
					return
				}
				granted++
				require.ErrorIs(t, holder.Check(), lock.ErrLost)
				require.True(t, closed(holder.Lost()))
				require.Error(t, work.Err())
			}}})
			synctest.Test(t, func(t *testing.T) {
				holder = take(t, tree, "X at /a", nil)
				holder.Lost()
				var cancel func()
				work, cancel = holder.Context(t.Context())
				defer cancel()
				next := wait(t.Context(), tree, "X at /", by("next"))
				// Code of the holder that runs at the end of the context may use the grant.
				after := context.AfterFunc(work, func() { _ = holder.Check() })
				defer after()
				if revoked {
					require.NoError(t, tree.Revoke(t.Context(), 1, ""))
					next.waits(t)
				}
				require.NoError(t, tree.Break(t.Context(), 1, ""))
				require.Greater(t, next.granted(t).Token(), holder.Token())
				unlock(t, next.grant)
			})
			require.Equal(t, 1, granted)
			idle(t, tree)
		})
	}
}

// slow is a context that blocks the end of its first child until leave is closed.
type slow struct {
	context.Context
	arrived, leave chan struct{}
	on             atomic.Bool
}

func newSlow() *slow {
	return &slow{Context: context.Background(), arrived: make(chan struct{}), leave: make(chan struct{})}
}

func (c *slow) Value(key any) any {
	if c.on.CompareAndSwap(true, false) {
		close(c.arrived)
		<-c.leave
	}
	return c.Context.Value(key)
}

func (c *slow) Done() <-chan struct{} { return make(chan struct{}) }

// Break grants only after the announcement, also if a Revoke has begun it.
func TestBreakDuringARevocation(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		h := take(t, tree, "X at /a", nil)
		lost := h.Lost()
		parent := newSlow()
		var works []context.Context
		for range 4 {
			ctx, cancel := h.Context(parent)
			defer cancel()
			works = append(works, ctx)
		}
		next := wait(t.Context(), tree, "X at /", nil)
		parent.on.Store(true)
		revoked := start(func() (*lock.Grant, error) { return nil, tree.Revoke(t.Context(), 1, "") })
		<-parent.arrived // one has ended, three have not
		next.waits(t)
		require.NoError(t, tree.Break(t.Context(), 1, ""))
		require.True(t, closed(lost))
		for _, ctx := range works {
			require.Error(t, ctx.Err())
		}
		unlock(t, next.granted(t))
		require.False(t, revoked.done)
		close(parent.leave)
		synctest.Wait()
		require.NoError(t, revoked.err)
		require.ErrorIs(t, h.Check(), lock.ErrLost)
	})
}

// While Break announces the loss, the lock is not granted, no acquisition joins the
// id, and an Unlock of the holder does not hide the loss.
func TestDuringTheAnnouncement(t *testing.T) {
	for name, unlocks := range map[string]bool{"the holder waits": false, "the holder unlocks": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
				o := &lock.Options{ID: "d"}
				h := take(t, tree, "X at /a", o)
				parent := newSlow()
				_, cancel := h.Context(parent)
				defer cancel()
				parent.on.Store(true)
				broken := start(func() (*lock.Grant, error) { return nil, tree.Break(t.Context(), 1, "why") })
				<-parent.arrived
				require.False(t, broken.done)
				require.ErrorIs(t, h.Check(), lock.ErrLost)
				unchanged(t, tree, func() {
					_, err := tree.TryLock(t.Context(), req("X at /a"), o)
					require.ErrorIs(t, err, lock.ErrConflict, "the lost grant is not returned")
					require.Equal(t, []string{"X at /a held as d"}, names(t, err))
					require.ErrorIs(t, tree.Revoke(t.Context(), 1, ""), lock.ErrNotHeld)
					require.ErrorIs(t, tree.Break(t.Context(), 1, ""), lock.ErrNotHeld)
				})
				again := wait(t.Context(), tree, "X at /a", o)
				again.waits(t)
				if unlocks {
					require.ErrorIs(t, h.Unlock(t.Context()), lock.ErrLost)
					again.granted(t)
				}
				close(parent.leave)
				synctest.Wait()
				require.True(t, broken.done)
				require.NoError(t, broken.err, "the grant was broken before the Unlock")
				require.NotSame(t, h, again.granted(t))
				require.EqualValues(t, 2, again.grant.Token())
				require.ErrorIs(t, h.Unlock(t.Context()), lock.ErrLost)
				require.NoError(t, again.grant.Check())
				require.Same(t, again.grant, take(t, tree, "X at /a", o), "the id belongs to the new grant")
				unlock(t, again.grant)
			})
		})
	}
}

// An Unlock before Break is not a loss, also for the observer, and Break returns
// ErrNotHeld.
func TestUnlockBeforeBreak(t *testing.T) {
	var released []error
	tree := lock.Must(&lock.Config{Observer: lock.Observer{Released: func(_ context.Context, e lock.Released) { released = append(released, e.Err) }}})
	h := take(t, tree, "X at /a", nil)
	parent := newSlow()
	_, cancel := h.Context(parent)
	defer cancel()
	parent.on.Store(true)
	var group errgroup.Group
	group.Go(func() error { return h.Unlock(context.Background()) })
	<-parent.arrived // unlocked, and not yet released
	require.ErrorIs(t, tree.Revoke(context.Background(), 1, ""), lock.ErrNotHeld)
	require.ErrorIs(t, tree.Break(context.Background(), 1, ""), lock.ErrNotHeld)
	close(parent.leave)
	require.NoError(t, group.Wait())
	require.Equal(t, []error{nil}, released)
	idle(t, tree)
}

// A wait that is granted, broken and cancelled at once fails.
func TestBrokenBeforeItIsReceived(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "X at /a", nil)
		var err error
		p := wait(faulty{Context: t.Context(), err: func() error { return err }}, tree, "X at /a", by("late"))
		holder2 := wait(t.Context(), tree, "X at /", nil)
		err = context.Canceled
		require.NoError(t, holder.Unlock(t.Context()))
		_ = tree.Break(t.Context(), 2, "at once") // before the wait has ended, or after
		require.ErrorIs(t, p.failed(t), context.Canceled)
		require.Empty(t, names(t, p.err))
		unlock(t, holder2.granted(t))
	})
}

// Lost is closed after a revocation, also if it is called for the first time after Unlock.
func TestLostAfterUnlock(t *testing.T) {
	tree := lock.Must(nil)
	g := take(t, tree, "X at /a", nil)
	require.NoError(t, tree.Revoke(t.Context(), g.Token(), ""))
	unlock(t, g)
	require.True(t, closed(g.Lost()))
}
