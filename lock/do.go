package lock

import (
	"context"
	"errors"
)

// Do waits for a request, calls f with the grant, and unlocks it. It unlocks however f
// ends: by returning, by a panic, which continues, or by [runtime.Goexit]. The context of f
// ends when the grant is lost, see [Grant.Context].
//
// If [Locker].Lock fails, Do returns its error and does not call f. Otherwise Do
// returns the error of f, joined with what happened to the grant meanwhile:
// [ErrLost]; [ErrNotHeld] if the grant was released while f ran; and [ErrRevoked]
// if f failed as well.
func Do(ctx context.Context, l Locker, r Request, o *Options, f func(context.Context, *Grant) error) (err error) {
	g, err := l.Lock(ctx, r, o)
	if err != nil {
		return err
	}
	// The defer comes before any call of a method of the context: that can panic.
	defer func() {
		end := g.Check()
		if err == nil && errors.Is(end, ErrRevoked) {
			end = nil // f was asked to stop and succeeded
		}
		// The grant is released also if the caller's context has ended.
		if unlock := g.Unlock(context.WithoutCancel(ctx)); end == nil {
			end = unlock
		}
		if end != nil && !errors.Is(err, end) {
			err = errors.Join(err, end)
		}
	}()
	work, cancel := g.Context(ctx)
	defer cancel()
	return f(work, g)
}
