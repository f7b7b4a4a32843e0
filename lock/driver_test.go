package lock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// fakeDriver is a GrantDriver that the test controls.
type fakeDriver struct {
	check, unlock, convert error
	unlocked               int
	ctx                    error // of the context of the last Unlock
	upgraded, downgraded   lock.Mode
	during                 func() // of a conversion
}

func (d *fakeDriver) Requests() []lock.Request { return reqs("S at /a") }
func (d *fakeDriver) Token() lock.Token        { return 7 }
func (d *fakeDriver) Check() error             { return d.check }

func (d *fakeDriver) Unlock(ctx context.Context) error {
	d.unlocked++
	d.ctx = ctx.Err()
	return d.unlock
}

func (d *fakeDriver) Upgrade(_ context.Context, m lock.Mode) error {
	d.upgraded = m
	if d.during != nil {
		d.during()
	}
	return d.convert
}

func (d *fakeDriver) Downgrade(ctx context.Context, m lock.Mode) error {
	defer func(before lock.Mode) { d.upgraded = before }(d.upgraded)
	d.downgraded = m
	return d.Upgrade(ctx, m)
}

// single is a Locker that returns one grant.
type single struct {
	lock.Locker
	grant *lock.Grant
}

func (s single) Lock(context.Context, lock.Request, *lock.Options) (*lock.Grant, error) {
	return s.grant, nil
}

// A Grant returns what its driver returns.
func TestGrantOfADriver(t *testing.T) {
	ctx := context.Background()
	expired, unreachable := errors.New("expired"), errors.New("unreachable")
	g := &fakeDriver{}
	h, lose := lock.NewGrant(g)
	require.EqualValues(t, 7, h.Token())
	require.NoError(t, h.Upgrade(ctx, lock.X))
	require.NoError(t, h.Downgrade(ctx, lock.IS))
	require.Equal(t, [2]lock.Mode{lock.X, lock.IS}, [2]lock.Mode{g.upgraded, g.downgraded})

	g.check = expired // the driver has not called lose
	require.Equal(t, expired, h.Check())
	require.Equal(t, expired, h.Upgrade(ctx, lock.X))
	g.check = nil

	g.unlock = unreachable
	require.Equal(t, unreachable, h.Unlock(ctx))
	g.unlock = nil
	require.NoError(t, h.Unlock(ctx), "Unlock calls the driver again")
	require.Equal(t, 2, g.unlocked)
	require.False(t, lose(&lock.LostError{Token: 7, Err: lock.ErrLost}))
	require.Equal(t, lock.ErrNotHeld, h.Check())

	h, lose = lock.NewGrant(g)
	require.True(t, lose(&lock.LostError{Token: 7, Err: lock.ErrRevoked}))
	require.False(t, lose(&lock.LostError{Token: 7, Err: lock.ErrRevoked}))
	require.True(t, lose(&lock.LostError{Token: 7, Err: lock.ErrLost}))
	require.False(t, lose(&lock.LostError{Token: 7, Err: lock.ErrLost}))
	g.unlock = unreachable
	require.ErrorIs(t, h.Unlock(ctx), lock.ErrLost, "the loss comes before the error of the engine")
}

// G11: Do releases with a live context and returns the driver's error.
func TestDoReleasesWithAContextThatLives(t *testing.T) {
	unreachable := errors.New("unreachable")
	g := &fakeDriver{unlock: unreachable}
	h, _ := lock.NewGrant(g)
	ctx, cancel := context.WithCancel(t.Context())
	err := lock.Do(ctx, single{grant: h}, req("S at /a"), nil, func(context.Context, *lock.Grant) error {
		cancel()
		return ctx.Err()
	})
	require.Equal(t, 1, g.unlocked)
	require.NoError(t, g.ctx)
	require.ErrorIs(t, err, unreachable)
	require.ErrorIs(t, err, context.Canceled)
}

// A conversion returns the loss or ErrNotHeld if the grant ends during the conversion.
func TestConversionMeetsTheEnd(t *testing.T) {
	ctx := t.Context()
	for name, convert := range map[string]func(*lock.Grant) error{
		"upgrade":   func(h *lock.Grant) error { return h.Upgrade(ctx, lock.X) },
		"downgrade": func(h *lock.Grant) error { return h.Downgrade(ctx, lock.IS) },
	} {
		t.Run(name, func(t *testing.T) {
			g := &fakeDriver{convert: lock.ErrNotHeld}
			h, lose := lock.NewGrant(g)
			g.during = func() { lose(&lock.LostError{Token: 7, Err: lock.ErrLost}) }
			require.Equal(t, lock.ErrLost, sentinel(t, convert(h)))

			h, _ = lock.NewGrant(g)
			g.during = func() { _ = h.Unlock(ctx) }
			require.Equal(t, lock.ErrNotHeld, sentinel(t, convert(h)))

			h, _ = lock.NewGrant(g)
			g.during = nil
			require.Equal(t, lock.ErrNotHeld, sentinel(t, convert(h)), "the driver's error, if the Grant has no fault")
		})
	}
}

// A driver may wrap ErrNotHeld.
func TestWrappedNotHeld(t *testing.T) {
	d := &fakeDriver{convert: errors.Join(errors.New("engine: no key"), lock.ErrNotHeld)}
	g, lose := lock.NewGrant(d)
	require.Same(t, d, g.Driver())
	d.during = func() { lose(&lock.LostError{Token: 7, Err: lock.ErrLost}) }
	require.ErrorIs(t, g.Upgrade(t.Context(), lock.X), lock.ErrLost)
}
