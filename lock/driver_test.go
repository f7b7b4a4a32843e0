package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// grant is a driver's grant, in a test's hands.
type grant struct {
	check, unlock, convert error
	unlocked               int
	ctx                    error // of the context of the last Unlock
	upgraded, downgraded   lock.Mode
	during                 func() // of a conversion
}

func (g *grant) Requests() []lock.Request { return reqs("S at /a") }
func (g *grant) Token() lock.Token        { return 7 }
func (g *grant) Check() error             { return g.check }

func (g *grant) Unlock(ctx context.Context) error {
	g.unlocked++
	g.ctx = ctx.Err()
	return g.unlock
}

func (g *grant) Upgrade(_ context.Context, m lock.Mode) error {
	g.upgraded = m
	if g.during != nil {
		g.during()
	}
	return g.convert
}

func (g *grant) Downgrade(ctx context.Context, m lock.Mode) error {
	defer func(before lock.Mode) { g.upgraded = before }(g.upgraded)
	g.downgraded = m
	return g.Upgrade(ctx, m)
}

// engine is a Locker that grants one thing.
type engine struct {
	lock.Locker
	held *lock.Held
}

func (e engine) Lock(context.Context, lock.Request, *lock.Options) (*lock.Held, error) {
	return e.held, nil
}

// What a driver says is what its handle says.
func TestHeldOfADriver(t *testing.T) {
	ctx := context.Background()
	expired, unreachable := errors.New("expired"), errors.New("unreachable")
	g := &grant{}
	h, lose := lock.NewHeld(g)
	require.EqualValues(t, 7, h.Token())
	require.NoError(t, h.Upgrade(ctx, lock.X))
	require.NoError(t, h.Downgrade(ctx, lock.IS))
	require.Equal(t, [2]lock.Mode{lock.X, lock.IS}, [2]lock.Mode{g.upgraded, g.downgraded})
	require.True(t, h.Covers(lock.MustParse("/a/b"), lock.S))

	g.check = expired // before anybody has noticed
	require.Equal(t, expired, h.Check())
	require.Equal(t, expired, h.Upgrade(ctx, lock.X))
	require.False(t, h.Covers(lock.MustParse("/a/b"), lock.S))
	g.check = nil

	g.unlock = unreachable
	require.Equal(t, unreachable, h.Unlock(ctx))
	g.unlock = nil
	require.NoError(t, h.Unlock(ctx), "it is tried again")
	require.Equal(t, 2, g.unlocked)
	require.False(t, lose(&lock.LostError{Token: 7, Err: lock.ErrLost}))
	require.Equal(t, lock.ErrNotHeld, h.Check())

	h, lose = lock.NewHeld(g)
	require.True(t, lose(&lock.LostError{Token: 7, Err: lock.ErrRevoked}))
	require.False(t, lose(&lock.LostError{Token: 7, Err: lock.ErrRevoked}))
	require.True(t, lose(&lock.LostError{Token: 7, Err: lock.ErrLost}))
	require.False(t, lose(&lock.LostError{Token: 7, Err: lock.ErrLost}))
	g.unlock = unreachable
	require.ErrorIs(t, h.Unlock(ctx), lock.ErrLost, "the worse of the two")
}

// G11: Do releases when the caller has gone, and says what the driver says.
func TestDoReleasesWithAContextThatLives(t *testing.T) {
	unreachable := errors.New("unreachable")
	g := &grant{unlock: unreachable}
	h, _ := lock.NewHeld(g)
	ctx, cancel := context.WithCancel(t.Context())
	err := lock.Do(ctx, engine{held: h}, req("S at /a"), nil, func(context.Context, *lock.Held) error {
		cancel()
		return ctx.Err()
	})
	require.Equal(t, 1, g.unlocked)
	require.NoError(t, g.ctx)
	require.ErrorIs(t, err, unreachable)
	require.ErrorIs(t, err, context.Canceled)
}

// A grant that ends while it is converted: the handle says how.
func TestConversionMeetsTheEnd(t *testing.T) {
	ctx := t.Context()
	for _, convert := range []func(*lock.Held) error{
		func(h *lock.Held) error { return h.Upgrade(ctx, lock.X) },
		func(h *lock.Held) error { return h.Downgrade(ctx, lock.IS) },
	} {
		g := &grant{convert: lock.ErrNotHeld}
		h, lose := lock.NewHeld(g)
		g.during = func() { lose(&lock.LostError{Token: 7, Err: lock.ErrLost}) }
		require.Equal(t, lock.ErrLost, sentinel(t, convert(h)))

		h, _ = lock.NewHeld(g)
		g.during = func() { _ = h.Unlock(ctx) }
		require.Equal(t, lock.ErrNotHeld, sentinel(t, convert(h)))

		h, _ = lock.NewHeld(g)
		g.during = nil
		require.Equal(t, lock.ErrNotHeld, sentinel(t, convert(h)), "the driver's word, if nobody knows better")
	}
}
