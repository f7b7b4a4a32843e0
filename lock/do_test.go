package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

var errWork = errors.New("the work failed")

// Do returns what f returned and what happened to the grant, and always unlocks.
func TestDo(t *testing.T) {
	r := req("X at /a")
	for name, c := range map[string]struct {
		f    func(ctx context.Context, tree *lock.Tree, g *lock.Grant) error
		want []error // all that the error matches
		not  []error
		text string // "": any
	}{
		"success": {f: func(ctx context.Context, _ *lock.Tree, g *lock.Grant) error {
			return errors.Join(ctx.Err(), g.Check())
		}},
		"failure": {
			f:    func(context.Context, *lock.Tree, *lock.Grant) error { return errWork },
			want: []error{errWork}, not: []error{lock.ErrNotHeld},
		},
		"unlocked by f": {
			f:    func(ctx context.Context, _ *lock.Tree, g *lock.Grant) error { return g.Unlock(ctx) },
			want: []error{lock.ErrNotHeld},
		},
		"unlocked by a Do with the same id": {
			f: func(ctx context.Context, tree *lock.Tree, _ *lock.Grant) error {
				return lock.Do(ctx, tree, r, &lock.Options{ID: "one"}, func(context.Context, *lock.Grant) error { return nil })
			},
			want: []error{lock.ErrNotHeld},
		},
		"broken, then success": {
			f: func(ctx context.Context, tree *lock.Tree, g *lock.Grant) error {
				return tree.Break(ctx, g.Token(), "operator")
			},
			want: []error{lock.ErrLost},
		},
		"broken, then failure": {
			f: func(ctx context.Context, tree *lock.Tree, g *lock.Grant) error {
				_ = tree.Break(context.WithoutCancel(ctx), g.Token(), "operator")
				<-ctx.Done()
				return errors.Join(errWork, context.Cause(ctx))
			},
			want: []error{lock.ErrLost, errWork},
		},
		"broken, then the loss itself, which the error has once": {
			f: func(ctx context.Context, tree *lock.Tree, g *lock.Grant) error {
				_ = tree.Break(context.WithoutCancel(ctx), g.Token(), "operator")
				return g.Check()
			},
			want: []error{lock.ErrLost}, text: "lock: lost: token 1: operator",
		},
		"revoked, then success": {f: func(ctx context.Context, tree *lock.Tree, g *lock.Grant) error {
			return tree.Revoke(context.WithoutCancel(ctx), g.Token(), "please")
		}},
		"revoked, then failure": {
			f: func(ctx context.Context, tree *lock.Tree, g *lock.Grant) error {
				_ = tree.Revoke(context.WithoutCancel(ctx), g.Token(), "please")
				return ctx.Err()
			},
			want: []error{context.Canceled, lock.ErrRevoked}, not: []error{lock.ErrLost},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var tree lock.Tree
			var inside *lock.Grant
			var work context.Context
			err := lock.Do(t.Context(), &tree, r, &lock.Options{ID: "one"}, func(ctx context.Context, g *lock.Grant) error {
				inside, work = g, ctx
				return c.f(ctx, &tree, g)
			})
			require.Equal(t, len(c.want) > 0, err != nil, "%v", err)
			for _, want := range c.want {
				require.ErrorIs(t, err, want)
			}
			for _, not := range c.not {
				require.NotErrorIs(t, err, not)
			}
			if c.text != "" {
				require.EqualError(t, err, c.text)
			}
			require.Error(t, inside.Check())
			require.Error(t, work.Err())
			idle(t, &tree)
		})
	}
}

// Do unlocks if f panics or ends its goroutine.
func TestDoUnlocksAfterAPanic(t *testing.T) {
	var tree lock.Tree
	for _, way := range waysOut {
		got := ends(func() {
			_ = lock.Do(context.Background(), &tree, req("X at /a"), nil, func(context.Context, *lock.Grant) error {
				way.do()
				return nil
			})
		})
		require.Equal(t, way.want, got)
		idle(t, &tree)
	}
}

// The caller's context ends the work, not the grant. Do does not call f if Lock
// fails.
func TestDoAndTheEndOfTheContext(t *testing.T) {
	var tree lock.Tree
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the client has gone")
	err := lock.Do(ctx, &tree, req("X at /a"), nil, func(c context.Context, g *lock.Grant) error {
		cancel(gone)
		require.Equal(t, gone, context.Cause(c))
		require.NoError(t, g.Check())
		return c.Err()
	})
	require.Equal(t, context.Canceled, err)
	err = lock.Do(ctx, &tree, req("X at /a"), nil, nil)
	require.ErrorIs(t, err, gone)
	idle(t, &tree)
}

// Do releases the lock if a method of the context panics while Do derives a context or
// while the derived context ends.
func TestDoWithAContextThatPanics(t *testing.T) {
	for out, way := range waysOut {
		t.Run(out, func(t *testing.T) {
			called := 0
			for n := 1; n <= 2; n++ {
				var tree lock.Tree
				ctx := inspected{context.Background(), outAt(n, way.do)}
				got := ends(func() {
					_ = lock.Do(ctx, &tree, req("X at /a"), nil, func(context.Context, *lock.Grant) error { called++; return nil })
				})
				require.Equal(t, way.want, got)
				idle(t, &tree)
			}
			require.Equal(t, 1, called)
		})
	}
}

// inspected is a context with a type of its own, so that package context calls its methods.
type inspected struct {
	context.Context
	value func()
}

func (c inspected) Done() <-chan struct{} { return make(chan struct{}) }
func (c inspected) Value(key any) any     { c.value(); return c.Context.Value(key) }
