package lock

import (
	"context"
	"errors"
)

// Do waits for a request, calls f with it, and unlocks it, however f ends: by
// returning, a panic, which goes on, or Goexit. The context of f ends when the
// grant is lost, see [Held.Context].
//
// The error is that of [Locker].Lock, and f was not called; or that of f, joined
// with what has become of the grant meanwhile: [ErrLost]; [ErrNotHeld] if it was
// released, which f must not do, and which another holder of its id can do; and,
// if f failed, [ErrRevoked].
func Do(ctx context.Context, l Locker, r Request, o *Options, f func(context.Context, *Held) error) error {
	h, err := l.Lock(ctx, r, o)
	if err != nil {
		return err
	}
	return h.do(ctx, f)
}

// DoAll is Do for several requests at once, see [Locker].LockAll.
func DoAll(ctx context.Context, l Locker, rs []Request, o *Options, f func(context.Context, *Held) error) error {
	h, err := l.LockAll(ctx, rs, o)
	if err != nil {
		return err
	}
	return h.do(ctx, f)
}

func (h *Held) do(ctx context.Context, f func(context.Context, *Held) error) (err error) {
	// Before anything that calls a method of the context, which may panic.
	defer func() {
		end := h.Check()
		if err == nil && errors.Is(end, ErrRevoked) {
			end = nil // f was asked to stop, and has ended well
		}
		// Released also if the caller's context has ended.
		if unlock := h.Unlock(context.WithoutCancel(ctx)); end == nil {
			end = unlock
		}
		if end != nil && !errors.Is(err, end) {
			err = errors.Join(err, end)
		}
	}()
	work, cancel := h.Context(ctx)
	defer cancel()
	return f(work, h)
}
