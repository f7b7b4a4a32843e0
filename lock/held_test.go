package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// closed reports whether a holder was told.
func closed(lost <-chan struct{}) bool {
	select {
	case <-lost:
		return true
	default:
		return false
	}
}

// takings are the ways in which a grant ends or is about to: what is done, what
// Check says then, and whether Lost is closed.
var takings = map[string]struct {
	do   func(*lock.Tree, *lock.Held) error
	want error
	lost bool
}{
	"unlock": {func(_ *lock.Tree, h *lock.Held) error { return h.Unlock(context.Background()) }, lock.ErrNotHeld, false},
	"revoke": {func(t *lock.Tree, h *lock.Held) error { return t.Revoke(context.Background(), h.Token(), "why") }, lock.ErrRevoked, true},
	"break":  {func(t *lock.Tree, h *lock.Held) error { return t.Break(context.Background(), h.Token(), "why") }, lock.ErrLost, true},
}

// G8: whatever asks, before and after, gets one answer.
func TestHowAGrantEnds(t *testing.T) {
	for name, taking := range takings {
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

				require.NoError(t, taking.do(tree, h))
				err := h.Check()
				require.ErrorIs(t, err, taking.want)
				require.Equal(t, taking.lost, closed(before))
				require.Equal(t, taking.lost, closed(h.Lost()), "also when asked only now")
				require.ErrorIs(t, ctx.Err(), context.Canceled)
				require.Same(t, err, context.Cause(ctx))
				require.Equal(t, context.Canceled, context.Cause(left), "that had ended before")
				late, cancelLate := h.Context(parent)
				require.Same(t, err, context.Cause(late))
				cancelLate()
				require.NoError(t, parent.Err())
				require.False(t, h.Covers(lock.MustParse("/a"), lock.S))
				require.ErrorIs(t, h.Upgrade(t.Context(), lock.X), taking.want)
				require.ErrorIs(t, h.Downgrade(t.Context(), lock.IS), taking.want)
				require.Equal(t, reqs("S at /a"), h.Requests())
				require.EqualValues(t, 1, h.Token())
				if detail, ok := errors.AsType[*lock.LostError](err); ok {
					require.Equal(t, lock.LostError{Token: 1, Reason: "why", Err: taking.want}, *detail)
				}
				_ = h.Unlock(t.Context())
			})
		})
	}
}

// A Lost that is first asked for after the loss is closed, too.
func TestLostAskedForLate(t *testing.T) {
	for name, taking := range takings {
		inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
			h := take(t, tree, "S at /a", nil)
			require.NoError(t, taking.do(tree, h))
			require.Equal(t, taking.lost, closed(h.Lost()), name)
			_ = h.Unlock(t.Context())
		})
	}
}

func TestUnlockAfterEveryEnd(t *testing.T) {
	ctx := context.Background()
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		h := take(t, tree, "X at /", nil)
		require.NoError(t, tree.Revoke(ctx, 1, ""))
		require.Equal(t, 1, snapshot(t, tree).Held, "revoked, it holds")
		require.NoError(t, tree.Revoke(ctx, 1, "again"), "as asked")
		require.EqualError(t, h.Check(), "lock: revoked: token 1", "told once")
		unlock(t, h, h)
		require.ErrorIs(t, h.Check(), lock.ErrNotHeld)
		require.ErrorIs(t, tree.Revoke(ctx, 1, ""), lock.ErrNotHeld)
		require.ErrorIs(t, tree.Break(ctx, 1, ""), lock.ErrNotHeld)

		h = take(t, tree, "X at /", nil)
		lost := h.Lost()
		require.NoError(t, tree.Revoke(ctx, 2, "first"))
		require.NoError(t, tree.Break(ctx, 2, "then"))
		require.True(t, closed(lost))
		require.EqualError(t, h.Check(), "lock: lost: token 2: then")
		next := take(t, tree, "X at /", nil)
		for range 2 { // a stale handle does nothing
			require.ErrorIs(t, h.Unlock(ctx), lock.ErrLost)
		}
		require.NoError(t, next.Check())
		require.Equal(t, 1, snapshot(t, tree).Held)
		require.ErrorIs(t, tree.Break(ctx, 2, ""), lock.ErrNotHeld)
		for _, none := range []lock.Token{0, 2, 4, 1 << 60} {
			require.ErrorIs(t, tree.Revoke(ctx, none, ""), lock.ErrNotHeld)
			require.ErrorIs(t, tree.Break(ctx, none, ""), lock.ErrNotHeld)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		require.NoError(t, next.Unlock(gone), "G11: a release does not depend on the context")
	})
}

func TestHeldCovers(t *testing.T) {
	ctx := context.Background()
	var tree lock.Tree
	// What a lock at /a allows at these nodes; X only where nothing is weaker.
	for _, c := range []struct {
		held string
		at   string
		want string // modes
	}{
		{"IS at /a", "/a", "IS"},
		{"IS at /a", "/a/b", ""},
		{"IX at /a", "/a", "IS IX"},
		{"IX at /a", "/a/b", ""},
		{"S at /a", "/a", "IS S"},
		{"S at /a", "/a/b/c", "IS S"},
		{"SIX at /a", "/a", "IS IX S SIX"},
		{"SIX at /a", "/a/b", "IS S"},
		{"X at /a", "/a", "IS IX S SIX X"},
		{"X at /a", "/a/b/c", "IS IX S SIX X"},
		{"X at /", "/a", "IS IX S SIX X"},
		{"X at /a", "/ab", ""},
		{"X at /a", "/", ""},
	} {
		h := take(t, &tree, c.held, nil)
		got := ""
		for _, m := range lock.Modes {
			if h.Covers(lock.MustParse(c.at), m) {
				got += " " + m.String()
			}
		}
		require.Equal(t, c.want, trim(got), "%s, asked at %s", c.held, c.at)
		require.False(t, h.Covers(lock.Path{}, lock.IS))
		for _, m := range badModes {
			require.False(t, h.Covers(lock.MustParse(c.at), m))
		}
		unlock(t, h)
	}
	h, err := tree.TryLockAll(ctx, reqs("S at /a", "IX at /a", "X at /b"), nil)
	require.NoError(t, err)
	require.True(t, h.Covers(lock.MustParse("/a"), lock.SIX))
	require.True(t, h.Covers(lock.MustParse("/b/c"), lock.X))
	require.False(t, h.Covers(lock.MustParse("/"), lock.IS))
	require.NoError(t, h.Downgrade(ctx, lock.IX))
	require.False(t, h.Covers(lock.MustParse("/b"), lock.S))
	unlock(t, h)
	idle(t, &tree)
}

func trim(s string) string {
	if s == "" {
		return s
	}
	return s[1:]
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
		require.EqualError(t, h.Upgrade(gone, lock.X), "lock: given up: context canceled: out of time")
		require.ErrorIs(t, h.Downgrade(gone, lock.IS), context.Canceled)
	})
	require.NoError(t, h.Downgrade(ctx, lock.S))
	require.Equal(t, reqs("S at /a", "S at /b"), h.Requests())
	unlock(t, h)
	// A driver's own grant that has ended says so.
	require.ErrorIs(t, h.Upgrade(ctx, lock.X), lock.ErrNotHeld)
}

// G8: a waiter is granted after the holder has been told, by everything that
// tells him.
func TestBreakTellsBeforeItGrants(t *testing.T) {
	for _, revoked := range []bool{false, true} {
		var holder *lock.Held
		var work context.Context
		told := 0
		tree := lock.NewTree(&lock.Config{Observer: &lock.Observer{Granted: func(g lock.Granted) {
			if g.Owner != "next" {
				return
			}
			told++
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
			// Code of the holder that runs while it is told still has the lock.
			after := context.AfterFunc(work, func() { _ = holder.Check() })
			defer after()
			if revoked {
				require.NoError(t, tree.Revoke(t.Context(), 1, ""))
				next.waits(t)
			}
			require.NoError(t, tree.Break(t.Context(), 1, ""))
			require.Greater(t, next.granted(t).Token(), holder.Token())
			unlock(t, next.held)
		})
		require.Equal(t, 1, told)
		idle(t, tree)
	}
}

// slow is a context whose first child that ends takes until it is let go: whoever
// tells the holder is at work.
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

// Break returns, and grants, only when the holder knows, even if it finds a
// revocation that has begun to tell him.
func TestBreakWhileARevocationIsTold(t *testing.T) {
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
		revoked := start(func() (*lock.Held, error) { return nil, tree.Revoke(t.Context(), 1, "") })
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

// While Break tells the holder, the lock is nobody else's, the id is not joined,
// and whoever unlocks meanwhile changes neither that it was broken nor who hears
// of it.
func TestWhileTheHolderIsTold(t *testing.T) {
	for _, unlocks := range []bool{false, true} {
		inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
			o := &lock.Options{ID: "d"}
			h := take(t, tree, "X at /a", o)
			parent := newSlow()
			_, cancel := h.Context(parent)
			defer cancel()
			parent.on.Store(true)
			broken := start(func() (*lock.Held, error) { return nil, tree.Break(t.Context(), 1, "why") })
			<-parent.arrived
			require.False(t, broken.done)
			require.ErrorIs(t, h.Check(), lock.ErrLost)
			unchanged(t, tree, func() {
				_, err := tree.TryLock(t.Context(), req("X at /a"), o)
				require.ErrorIs(t, err, lock.ErrConflict, "not a grant that is lost")
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
			require.NoError(t, broken.err, "it was broken, whoever released it")
			require.NotSame(t, h, again.granted(t))
			require.EqualValues(t, 2, again.held.Token())
			require.ErrorIs(t, h.Unlock(t.Context()), lock.ErrLost)
			require.NoError(t, again.held.Check())
			require.Same(t, again.held, take(t, tree, "X at /a", o), "the id is the new grant's")
			unlock(t, again.held)
		})
	}
}

// An Unlock that comes before the loss is no loss, also to the observer, and
// Break says that nobody held it.
func TestUnlockBeforeBreak(t *testing.T) {
	var released []error
	tree := lock.NewTree(&lock.Config{Observer: &lock.Observer{Released: func(e lock.Released) { released = append(released, e.Err) }}})
	h := take(t, tree, "X at /a", nil)
	parent := newSlow()
	_, cancel := h.Context(parent)
	defer cancel()
	parent.on.Store(true)
	done := make(chan error)
	go func() { done <- h.Unlock(context.Background()) }()
	<-parent.arrived // unlocked, and not yet released
	require.ErrorIs(t, tree.Revoke(context.Background(), 1, ""), lock.ErrNotHeld)
	require.ErrorIs(t, tree.Break(context.Background(), 1, ""), lock.ErrNotHeld)
	close(parent.leave)
	require.NoError(t, <-done)
	require.Equal(t, []error{nil}, released)
	idle(t, tree)
}

// The same with the wait that is granted, broken and given up at once.
func TestBrokenBeforeItIsReceived(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "X at /a", nil)
		var err error
		p := wait(odd{Context: t.Context(), err: func() error { return err }}, tree, "X at /a", by("late"))
		holder2 := wait(t.Context(), tree, "X at /", nil)
		err = context.Canceled
		require.NoError(t, holder.Unlock(t.Context()))
		_ = tree.Break(t.Context(), 2, "at once") // before the wait has ended, or after
		require.ErrorIs(t, p.failed(t), context.Canceled)
		require.Empty(t, names(t, p.err))
		unlock(t, holder2.granted(t))
	})
}
