package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The demands of this file end a context, a grant or a conversion while another call runs.

// moments returns Attempts times, up to the time that a call takes, at least a millisecond.
func (e *env) moments() (after []time.Duration) {
	took := time.Hour
	for range 3 { // the machine may be busy
		start := time.Now()
		e.unlock(e.take("first", at(lock.X, "/a")))
		took = min(took, time.Since(start)/2)
	}
	took = max(took, time.Millisecond) // shorter times may all end before the call has begun
	for i := range e.h.Attempts {
		after = append(after, took*time.Duration(i)/time.Duration(e.h.Attempts))
	}
	return after
}

// interrupted makes a call and cancels its context after some time.
func (e *env) interrupted(after time.Duration, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(e.Context())
	defer cancel(errCancelled)
	defer time.AfterFunc(after, func() { cancel(errCancelled) }).Stop()
	return do(ctx)
}

func cancelledInFlight(e *env) {
	for _, after := range e.moments() {
		for _, op := range []string{"try", "lock"} {
			var g *lock.Grant
			err := e.interrupted(after, func(ctx context.Context) (err error) {
				g, err = acquire(ctx, e.l, op, []lock.Request{at(lock.X, "/a")}, by("cancelled"))
				return err
			})
			if err == nil {
				err = e.interrupted(after, g.Unlock)
			}
			if err != nil {
				require.ErrorIs(e, err, errCancelled, "a %s or an Unlock, cancelled in flight", op)
			}
			e.idle() // also after an Unlock with an error
		}
	}
}

func conversionsInFlight(e *env) {
	for _, after := range e.moments() {
		for _, m := range []lock.Mode{lock.X, lock.IS} {
			g := e.take("holder", at(lock.S, "/a"))
			requests, token := g.Requests(), g.Token()
			convert := g.Upgrade
			if m == lock.IS {
				convert = g.Downgrade
			}
			err := e.interrupted(after, func(ctx context.Context) error { return convert(ctx, m) })
			if err != nil && !errors.Is(g.Check(), lock.ErrLost) {
				require.ErrorIs(e, err, errCancelled, "a conversion to %s, cancelled in flight", m)
				require.Equal(e, requests, g.Requests(), "the requests after a conversion that was cancelled in flight")
				require.Equal(e, token, g.Token(), "the token after a conversion that was cancelled in flight")
			}
			e.agrees(g)
			if err := g.Unlock(e.Context()); err != nil {
				require.ErrorIs(e, err, lock.ErrLost, "Unlock after a conversion that was cancelled in flight")
			}
			e.idle()
		}
	}
}

// agrees requires that the locker lists what a grant of one request shows, unless it is lost. It
// polls: the answer to a conversion may come before the view of the locker.
func (e *env) agrees(g *lock.Grant) {
	e.Helper()
	require.NoError(e, e.eventually(func() error {
		s, err := e.l.Snapshot(e.Context())
		if err != nil || g.Check() != nil {
			return err
		}
		if len(s.Holders) != 1 || s.Holders[0].Token != g.Token() || s.Holders[0].Mode != g.Requests()[0].Mode {
			return fmt.Errorf("the snapshot lists %v, the grant is %s with token %d", s.Holders, g.Requests(), g.Token())
		}
		return nil
	}))
}

func concurrentConversions(e *env) {
	for round, after := range e.moments() {
		released := round%2 == 0
		g := e.take("holder", at(lock.S, "/a"))
		require.NoError(e, together(5, func(i int) (err error) {
			switch {
			case i == 0 && released:
				time.Sleep(after)
				return g.Unlock(e.Context())
			case i < 3:
				err = g.Upgrade(e.Context(), []lock.Mode{lock.S, lock.SIX, lock.X}[i])
			default:
				err = g.Downgrade(e.Context(), []lock.Mode{lock.IS, lock.S}[i-3])
			}
			if errors.Is(err, lock.ErrInvalid) || released && errors.Is(err, lock.ErrNotHeld) {
				return nil // another conversion or the Unlock came first
			}
			return err
		}), "conversions of one grant at once")
		if !released {
			e.agrees(g)
			e.unlock(g)
		}
		e.idle()
	}
}
