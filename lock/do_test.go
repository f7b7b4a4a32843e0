package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

type work = func(context.Context, *lock.Held) error

// dos are Do and DoAll.
var dos = map[string]func(context.Context, lock.Locker, work) error{
	"Do": func(ctx context.Context, l lock.Locker, f work) error { return lock.Do(ctx, l, req("X at /a"), nil, f) },
	"DoAll": func(ctx context.Context, l lock.Locker, f work) error {
		return lock.DoAll(ctx, l, reqs("X at /a"), nil, f)
	},
}

func TestDo(t *testing.T) {
	ctx := context.Background()
	for name, do := range dos {
		t.Run(name, func(t *testing.T) {
			var tree lock.Tree
			failure := errors.New("failure")
			var kept *lock.Held
			var inside context.Context
			for _, want := range []error{nil, failure} {
				err := do(ctx, &tree, func(c context.Context, h *lock.Held) error {
					kept, inside = h, c
					require.NoError(t, h.Check())
					require.NoError(t, c.Err())
					require.Equal(t, reqs("X at /a"), h.Requests())
					return want
				})
				require.Equal(t, want, err, "as it is")
				require.ErrorIs(t, kept.Check(), lock.ErrNotHeld)
				require.Error(t, inside.Err())
				idle(t, &tree)
			}
			err := do(ctx, &tree, func(_ context.Context, h *lock.Held) error { return h.Unlock(ctx) })
			require.ErrorIs(t, err, lock.ErrNotHeld, "the rest of the function ran without the lock")
			require.PanicsWithValue(t, "out", func() {
				_ = do(ctx, &tree, func(context.Context, *lock.Held) error { panic("out") })
			})
			idle(t, &tree)
			for _, way := range waysOut {
				got := ends(func() {
					_ = do(ctx, &tree, func(context.Context, *lock.Held) error { way.do(); return nil })
				})
				require.Equal(t, way.want, got)
				idle(t, &tree)
			}
		})
	}
}

func TestDoAndTheEndOfContexts(t *testing.T) {
	for name, do := range dos {
		t.Run(name, func(t *testing.T) {
			var tree lock.Tree
			ctx, cancel := context.WithCancelCause(t.Context())
			gone := errors.New("the client has gone")
			err := do(ctx, &tree, func(c context.Context, h *lock.Held) error {
				cancel(gone)
				require.Equal(t, gone, context.Cause(c))
				require.NoError(t, h.Check(), "the grant does not end with the context")
				return c.Err()
			})
			require.Equal(t, context.Canceled, err)
			idle(t, &tree)

			err = do(ctx, &tree, func(context.Context, *lock.Held) error { t.Error("called"); return nil })
			require.ErrorIs(t, err, gone)
			holder := take(t, &tree, "X at /", nil)
			bounded, cancelBounded := context.WithCancel(t.Context())
			cancelBounded()
			require.ErrorIs(t, do(bounded, &tree, nil), context.Canceled)
			unlock(t, holder)
			idle(t, &tree)
		})
	}
}

func TestDoAndLoss(t *testing.T) {
	ctx := context.Background()
	for name, do := range dos {
		t.Run(name, func(t *testing.T) {
			var tree lock.Tree
			failure := errors.New("failure")
			for _, want := range []error{nil, failure} {
				err := do(ctx, &tree, func(c context.Context, h *lock.Held) error {
					require.NoError(t, tree.Break(ctx, h.Token(), "operator"))
					<-c.Done()
					require.ErrorIs(t, context.Cause(c), lock.ErrLost)
					return want
				})
				require.ErrorIs(t, err, lock.ErrLost)
				if want != nil {
					require.ErrorIs(t, err, want)
				}
			}
			err := do(ctx, &tree, func(c context.Context, h *lock.Held) error {
				require.NoError(t, tree.Revoke(ctx, h.Token(), "please"))
				<-c.Done()
				return context.Cause(c)
			})
			require.ErrorIs(t, err, lock.ErrRevoked, "it says so if it likes; it has held to the end")
			require.NotErrorIs(t, err, lock.ErrLost)
			idle(t, &tree)
		})
	}
}

// A context that panics when one is derived from it, or when that one ends: the
// lock is free all the same.
func TestDoWithAContextThatPanics(t *testing.T) {
	for name, do := range dos {
		for out, way := range waysOut {
			t.Run(name+" "+out, func(t *testing.T) {
				called := 0
				for n := 1; n <= 2; n++ {
					var tree lock.Tree
					ctx := asked{context.Background(), outAt(n, way.do)}
					got := ends(func() { _ = do(ctx, &tree, func(context.Context, *lock.Held) error { called++; return nil }) })
					require.Equal(t, way.want, got)
					idle(t, &tree)
				}
				require.Equal(t, 1, called)
			})
		}
	}
}

// asked is a context that package context asks what it is.
type asked struct {
	context.Context
	ask func()
}

func (c asked) Done() <-chan struct{} { return make(chan struct{}) }
func (c asked) Value(key any) any     { c.ask(); return c.Context.Value(key) }
