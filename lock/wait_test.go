package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// inBubble runs a test in a bubble, with a tree that has to be idle at its end.
func inBubble(t *testing.T, c *lock.Config, f func(t *testing.T, tree *lock.Tree)) {
	synctest.Test(t, func(t *testing.T) {
		tree := lock.NewTree(c)
		f(t, tree)
		synctest.Wait()
		idle(t, tree)
	})
}

// G5: in the order of arrival, side by side where they do not conflict.
func TestGrantedInTheOrderOfArrival(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		ctx := t.Context()
		first := take(t, tree, "X at /", nil)
		a := wait(ctx, tree, "X at /a", nil)
		ab := wait(ctx, tree, "S at /a/b", nil)
		c := wait(ctx, tree, "X at /c", nil)
		all := wait(ctx, tree, "S at /", nil)
		d := wait(ctx, tree, "X at /d", nil)
		cd := wait(ctx, tree, "S at /c/d", nil)
		require.Equal(t, 6, snapshot(t, tree).Waiting)

		unlock(t, first)
		tokens := []lock.Token{a.granted(t).Token(), c.granted(t).Token()}
		require.Equal(t, []lock.Token{2, 3}, tokens)
		for _, p := range []*pending{ab, all, d, cd} {
			p.waits(t)
		}
		unlock(t, c.held)
		cd.granted(t) // S beside those that come before it and only read
		all.waits(t)
		d.waits(t) // nobody is in the way but one who waits
		unlock(t, a.held)
		ab.granted(t)
		all.granted(t)
		d.waits(t)
		unlock(t, all.held, ab.held, cd.held)
		unlock(t, d.granted(t))
	})
}

// Who waits is not overtaken, by nobody and by no means, and is named.
func TestNobodyOvertakesWhoWaits(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		ctx := t.Context()
		deploy := take(t, tree, "X at /a", by("deploy"))
		teardown := wait(ctx, tree, "X at /", by("teardown"))
		unchanged(t, tree, func() {
			_, err := tree.TryLock(ctx, req("X at /b"), nil)
			require.ErrorIs(t, err, lock.ErrConflict)
			require.Equal(t, []string{"X at / awaited by teardown"}, names(t, err))
			_, err = tree.Try(lock.MustParse("/b"), lock.IS)
			require.ErrorIs(t, err, lock.ErrConflict)
			_, err = tree.TryLockAll(ctx, reqs("S at /b", "S at /c"), nil)
			require.Equal(t, []string{"X at / awaited by teardown"}, names(t, err))
		})
		late := wait(ctx, tree, "X at /b", nil)
		late.waits(t)
		unlock(t, deploy)
		unlock(t, teardown.granted(t))
		unlock(t, late.granted(t))
	})
}

func TestCancelledWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "S at /a", by("holder"))
		ctx, cancel := context.WithCancel(t.Context())
		gone := wait(ctx, tree, "X at /a", by("gone"))
		behind := wait(t.Context(), tree, "S at /a/b", by("behind"))
		behind.waits(t)
		cancel()
		err := gone.failed(t)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, lock.ErrConflict)
		require.Equal(t, []string{"S at /a held by holder"}, names(t, err), "not who came behind")
		unlock(t, behind.granted(t), holder) // whom only the cancelled one was in the way of
	})
}

// A time-out says that it is one, and who was in the way.
func TestTimeOutNamesWhoWasInTheWay(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		began := time.Now()
		holder := take(t, tree, "X at /a/b", &lock.Options{Owner: "ann", Reason: "upgrade", ID: "u-1"})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		p := wait(ctx, tree, "X at /a", by("ann"))
		time.Sleep(3 * time.Second)
		err := p.failed(t)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		var refusal *lock.ConflictError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, []lock.Holder{{
			Path: lock.MustParse("/a/b"), Mode: lock.X, ID: "u-1", Owner: "ann", Reason: "upgrade",
			Token: 1, Since: refusal.Holders[0].Since, Mine: true,
		}}, refusal.Holders)
		require.True(t, refusal.Holders[0].Since.Equal(began))
		require.EqualError(t, err, "lock: X at /a: given up: context deadline exceeded; X at /a/b held by ann as u-1 (upgrade) since "+
			began.Format(time.RFC3339)+", token 1")
		unlock(t, holder)
	})
}

func TestCauseIsKept(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		shutdown := errors.New("shutting down")
		holder := take(t, tree, "X at /", nil)
		ctx, cancel := context.WithCancelCause(t.Context())
		p := wait(ctx, tree, "X at /a", nil)
		cancel(shutdown)
		err := p.failed(t)
		require.ErrorIs(t, err, shutdown)
		require.ErrorIs(t, err, context.Canceled)
		unlock(t, holder)

		unchanged(t, tree, func() { // and by whoever begins with a context that has ended
			for _, err := range everyCall(ctx, tree) {
				require.ErrorIs(t, err, shutdown)
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorContains(t, err, "given up: context canceled: shutting down")
			}
		})
	})
}

// everyCall makes each call that takes a context.
func everyCall(ctx context.Context, tree *lock.Tree) (errs []error) {
	_, err := tree.TryLock(ctx, req("X at /"), nil)
	errs = append(errs, err)
	_, err = tree.Lock(ctx, req("X at /"), nil)
	errs = append(errs, err)
	_, err = tree.TryLockAll(ctx, reqs("X at /"), nil)
	errs = append(errs, err)
	_, err = tree.LockAll(ctx, reqs("X at /"), nil)
	errs = append(errs, err)
	_, err = tree.Holders(ctx, lock.Root(), lock.At)
	errs = append(errs, err)
	_, err = tree.Snapshot(ctx)
	return append(errs, err, tree.Revoke(ctx, 1, ""), tree.Break(ctx, 1, ""))
}

func TestQueueIsFull(t *testing.T) {
	inBubble(t, &lock.Config{MaxWaiters: 2}, func(t *testing.T, tree *lock.Tree) {
		ctx, cancel := context.WithCancel(t.Context())
		holder := take(t, tree, "X at /a", by("holder"))
		list := start(func() (*lock.Held, error) { return tree.LockAll(ctx, reqs("X at /a/b", "X at /a/c"), by("list")) })
		second := wait(t.Context(), tree, "X at /a", &lock.Options{ID: "second"})
		unchanged(t, tree, func() {
			full := wait(ctx, tree, "X at /a/b", nil).failed(t)
			require.ErrorIs(t, full, lock.ErrQueueFull)
			require.NotErrorIs(t, full, lock.ErrConflict)
			require.Equal(t, []string{"X at /a held by holder", "X at /a/b awaited by list", "X at /a awaited as second"}, names(t, full))
			_, err := tree.TryLock(ctx, req("X at /a/b"), nil)
			require.ErrorIs(t, err, lock.ErrConflict, "a try does not ask for a place")
		})
		// Who need not wait needs no place, nor who repeats what waits.
		unlock(t, take(t, tree, "X at /z", nil))
		again := wait(t.Context(), tree, "X at /a", &lock.Options{ID: "second"})
		again.waits(t)
		cancel()
		require.ErrorIs(t, list.failed(t), context.Canceled)
		third := wait(t.Context(), tree, "X at /a", nil) // there is a place again
		third.waits(t)
		unlock(t, holder)
		require.Same(t, second.granted(t), again.granted(t))
		unlock(t, second.held)
		unlock(t, third.granted(t))
	})
}

func TestDowngradeWakes(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		ctx := t.Context()
		h := take(t, tree, "X at /a", nil)
		reader := wait(ctx, tree, "S at /a/b", nil)
		writer := wait(ctx, tree, "IX at /a", nil)
		require.NoError(t, h.Downgrade(ctx, lock.SIX))
		reader.granted(t)
		writer.waits(t)
		require.NoError(t, h.Downgrade(ctx, lock.IX))
		unlock(t, writer.granted(t), h, reader.held)
	})
}

func TestDowngradeOfAList(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		ctx := t.Context()
		h, err := tree.TryLockAll(ctx, reqs("X at /a", "X at /b"), nil)
		require.NoError(t, err)
		both := start(func() (*lock.Held, error) { return tree.LockAll(ctx, reqs("S at /a", "S at /b"), nil) })
		both.waits(t)
		require.NoError(t, h.Downgrade(ctx, lock.S))
		unlock(t, both.granted(t), h)
	})
}

// Upgrades never wait, and do not overtake who does.
func TestUpgradeIsRefusedWhileSomebodyWaits(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		ctx := t.Context()
		a, b := take(t, tree, "S at /a", by("a")), take(t, tree, "S at /a", by("b"))
		for _, h := range []*lock.Held{a, b} { // neither waits for the other
			require.ErrorIs(t, h.Upgrade(ctx, lock.X), lock.ErrConflict)
		}
		unlock(t, b)
		writer := wait(ctx, tree, "IX at /a/b", by("writer"))
		unchanged(t, tree, func() {
			for _, m := range []lock.Mode{lock.X, lock.SIX} {
				err := a.Upgrade(ctx, m)
				require.ErrorIs(t, err, lock.ErrConflict)
				require.Equal(t, []string{"IX at /a/b awaited by writer"}, names(t, err))
			}
		})
		token := a.Token()
		require.NoError(t, a.Upgrade(ctx, lock.IS), "what raises nothing needs nothing")
		require.Equal(t, token, a.Token())
		writer.waits(t)
		unlock(t, a)
		unlock(t, writer.granted(t))
	})
}

// Repeated calls wait for one acquisition; those that give up leave it to the
// others, and the last takes it along.
func TestSeveralWaitForOneAcquisition(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		o := &lock.Options{ID: "deploy-1"}
		holder := take(t, tree, "X at /", nil)
		var calls []*pending
		var cancels []func()
		for range 4 {
			ctx, cancel := context.WithCancel(t.Context())
			cancels = append(cancels, cancel)
			calls = append(calls, wait(ctx, tree, "X at /a", o))
		}
		require.Equal(t, 1, snapshot(t, tree).Waiting)
		_, err := tree.TryLock(t.Context(), req("X at /a"), o)
		require.ErrorIs(t, err, lock.ErrConflict)
		require.Equal(t, []string{"X at / held"}, names(t, err), "not by itself")
		cancels[0]() // the first, too
		cancels[2]()
		require.ErrorIs(t, calls[0].failed(t), context.Canceled)
		require.ErrorIs(t, calls[2].failed(t), context.Canceled)
		unlock(t, holder)
		require.Same(t, calls[1].granted(t), calls[3].granted(t))
		cancels[1]() // a context bounds the call, not the grant
		require.NoError(t, calls[1].held.Check())
		unlock(t, calls[3].held)
		require.ErrorIs(t, calls[1].held.Check(), lock.ErrNotHeld, "one release ends it for all")
		cancels[3]()

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

// odd is a context that ends without waking anybody, or does worse.
type odd struct {
	context.Context
	err  func() error
	done func() <-chan struct{}
}

func (c odd) Err() error {
	if c.err != nil {
		return c.err()
	}
	return c.Context.Err()
}

func (c odd) Done() <-chan struct{} {
	if c.done != nil {
		return c.done()
	}
	return c.Context.Done()
}

// A grant that comes together with the end of the context goes back.
func TestGrantRacesWithTheEndOfTheContext(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "X at /a", by("holder"))
		var err error
		p := wait(odd{Context: t.Context(), err: func() error { return err }}, tree, "X at /a", by("late"))
		behind := wait(t.Context(), tree, "X at /a", by("behind"))
		err = context.Canceled // nobody wakes up of it
		unlock(t, holder)      // of this it does
		refused := p.failed(t)
		require.ErrorIs(t, refused, context.Canceled)
		require.Empty(t, names(t, refused), "at that moment nobody was in the way, least of all who came later")
		unlock(t, behind.granted(t))

		// But not if another call has it too.
		holder, err = take(t, tree, "X at /a", nil), nil
		o := &lock.Options{ID: "both"}
		received := make(chan struct{})
		p = wait(odd{Context: t.Context(), err: func() error {
			if err != nil {
				<-received
			}
			return err
		}}, tree, "X at /a", o)
		other := wait(t.Context(), tree, "X at /a", o)
		err = context.Canceled
		unlock(t, holder)
		other.granted(t)
		close(received)
		require.ErrorIs(t, p.failed(t), context.Canceled)
		unlock(t, other.granted(t))

		// Nor if one came that did not wait.
		holder, err, received = take(t, tree, "X at /a", nil), nil, make(chan struct{})
		p = wait(odd{Context: t.Context(), err: func() error {
			if err != nil {
				<-received
			}
			return err
		}}, tree, "X at /a", o)
		err = context.Canceled
		unlock(t, holder)
		joined := take(t, tree, "X at /a", o)
		close(received)
		require.ErrorIs(t, p.failed(t), context.Canceled)
		require.NoError(t, joined.Check())
		require.Equal(t, 1, snapshot(t, tree).Held)
		unlock(t, joined)
	})
}

// The same race as it comes: whatever a call says is so.
func TestGrantsRaceWithCancels(t *testing.T) {
	tree := new(lock.Tree)
	won := 0
	for range 500 {
		holder := take(t, tree, "X at /", nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan *lock.Held)
		go func() {
			h, _ := tree.Lock(ctx, req("X at /a"), nil)
			done <- h
		}()
		for snapshot(t, tree).Waiting == 0 {
			require.Empty(t, lock.CheckTree(tree))
		}
		go cancel()
		unlock(t, holder)
		if h := <-done; h != nil {
			won++
			require.NoError(t, h.Check())
			unlock(t, h)
		}
		idle(t, tree)
		cancel()
	}
	t.Logf("granted %d of 500", won)
}

// No goroutine is left (see TestMain), no node, and no waiter.
func TestThousandCancelledWaits(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
		holder := take(t, tree, "S at /", nil)
		before := snapshot(t, tree)
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 1000)
		for i := range 1000 {
			text := []string{"X at /a", "IX at /", "X at /a/b/c", "X at /c/d/e/f"}[i%4]
			go func() {
				_, err := tree.Lock(ctx, req(text), nil)
				errs <- err
			}()
		}
		synctest.Wait()
		require.Equal(t, 1000, snapshot(t, tree).Waiting)
		require.Empty(t, lock.CheckTree(tree))
		cancel()
		for range 1000 {
			require.ErrorIs(t, <-errs, context.Canceled)
		}
		require.Equal(t, before, snapshot(t, tree))
		unlock(t, holder)
	})
}
