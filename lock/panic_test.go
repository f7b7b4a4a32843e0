package lock_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// ends calls f in a goroutine and returns its panic value, or nil.
func ends(f func()) (value any) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		f()
	}()
	return <-done
}

// waysOut are ways to end a function without a return.
var waysOut = map[string]struct {
	do   func()
	want any
}{
	"panic":  {func() { panic("out") }, "out"},
	"Goexit": {runtime.Goexit, nil},
}

// outAt returns a function that calls out at its nth call only.
func outAt(n int, out func()) func() {
	return func() {
		if n--; n == 0 {
			out()
		}
	}
}

// G2, G4: a call leaves no trace if a method of its context panics after the grant.
func TestContextsThatPanic(t *testing.T) {
	for name, way := range waysOut {
		for n := 1; n <= 6; n++ {
			t.Run(name, func(t *testing.T) {
				inBubble(t, nil, func(t *testing.T, tree *lock.Tree) {
					out := outAt(n, way.do)
					ended := false
					bad := bad{t.Context(), func() {
						if ended {
							out()
						}
					}, &ended}
					holder := take(t, tree, "X at /a", nil)
					var got any
					var err error
					returned := false
					go func() {
						got = ends(func() {
							_, err = tree.Lock(bad, req("X at /"), &lock.Options{ID: "id"})
							returned = true
						})
					}()
					synctest.Wait()
					behind := wait(t.Context(), tree, "IS at /b", nil)
					behind.waits(t)
					ended = true
					unlock(t, holder)
					unlock(t, behind.granted(t))
					if returned { // the call makes fewer than n calls of the context
						require.ErrorIs(t, err, context.Canceled)
					} else {
						require.Equal(t, way.want, got)
					}
					require.True(t, n > 1 || !returned, "the call never used the context")
				})
			})
		}
	}
}

// bad is a context that ends by itself. All its methods call out.
type bad struct {
	context.Context
	out   func()
	ended *bool
}

func (c bad) Err() error {
	if c.out(); *c.ended {
		return context.Canceled
	}
	return nil
}

func (c bad) Value(key any) any { c.out(); return c.Context.Value(key) }

// If an observer panics, a grant that its caller never gets is released, a wait
// ends, and everything else stays.
func TestObserversThatPanic(t *testing.T) {
	for name, way := range waysOut {
		t.Run(name, func(t *testing.T) {
			var o lock.Observer
			inBubble(t, &lock.Config{Observer: forward(&o)}, func(t *testing.T, tree *lock.Tree) {
				ctx := t.Context()
				quiet := func() { o = lock.Observer{} }

				o.Granted = func(context.Context, lock.Acquisition) { way.do() }
				for _, f := range []func(){
					func() { _, _ = tree.TryLock(ctx, req("X at /"), &lock.Options{ID: "id"}) },
					func() { _, _ = tree.Lock(ctx, req("X at /"), nil) },
					func() { _, _ = tree.LockAll(ctx, reqs("X at /a", "S at /b"), nil) },
					func() { _, _ = tree.Try(lock.Root(), lock.X) },
				} {
					require.Equal(t, way.want, ends(f))
					idle(t, tree)
				}
				quiet()
				h := take(t, tree, "S at /", nil)
				o.Granted = func(context.Context, lock.Acquisition) { way.do() }
				require.Equal(t, way.want, ends(func() { _ = h.Upgrade(ctx, lock.X) }))
				quiet()
				require.Equal(t, reqs("X at /"), h.Requests(), "the upgrade stays: its caller has the grant")

				o.Refused = func(context.Context, lock.Refused) { way.do() }
				unchanged(t, tree, func() {
					require.Equal(t, way.want, ends(func() { _, _ = tree.TryLock(ctx, req("X at /a"), nil) }))
					require.Equal(t, way.want, ends(func() { _, _ = tree.Try(lock.Root(), lock.X) }))
				})
				c, cancel := context.WithCancel(ctx)
				go ends(func() { _, _ = tree.Lock(c, req("X at /a"), nil) })
				synctest.Wait()
				cancel()
				synctest.Wait()
				require.Zero(t, snapshot(t, tree).Waiting)

				quiet()
				o.Waiting = func(context.Context, lock.Waiting) { way.do() }
				unchanged(t, tree, func() {
					require.Equal(t, way.want, ends(func() { _, _ = tree.Lock(ctx, req("X at /a"), &lock.Options{ID: "id"}) }))
				})

				quiet()
				a, b := wait(ctx, tree, "X at /a", nil), wait(ctx, tree, "X at /b", nil)
				o.Released = func(context.Context, lock.Released) { way.do() }
				o.Granted = func(context.Context, lock.Acquisition) { way.do() }
				require.Equal(t, way.want, ends(func() { _ = h.Unlock(ctx) }))
				a.granted(t) // the granted calls have woken up
				b.granted(t)
				require.Equal(t, way.want, ends(func() { _ = tree.Break(ctx, a.grant.Token(), "") }))
				require.ErrorIs(t, a.grant.Check(), lock.ErrLost)
				quiet()
				unlock(t, b.grant)
			})
		})
	}
}
