package lock

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// Grant is what the caller of a [Locker] holds. It is safe for concurrent use and
// must not be copied. A Grant that is never unlocked holds forever: there is no
// finalizer. A [Locker] makes it; the zero Grant is not usable.
//
// A grant ends by [Grant.Unlock], or it is lost: an operator broke it, or the
// holder's session in the lock driver's engine ended.
type Grant struct {
	driver GrantDriver
	lost   chan struct{} // closed when revoked or lost

	mu sync.Mutex
	// fault is why the grant ended or was revoked. It only gets worse:
	// nil -> revoked -> lost or released.
	fault   error
	over    bool // released or lost
	cancels map[context.Context]context.CancelCauseFunc
}

// GrantDriver is the part of a [Grant] that a lock driver implements. Its methods
// are called without any lock held, from any goroutine, and several at once. So an Upgrade
// may meet a Downgrade or the Unlock of its grant: Requests and Token then show what the engine
// has, in whatever order the answers arrive.
//
// The Grant keeps the end of the grant itself: after Unlock, and after a call of lose, its
// Check and conversions do not ask the driver, and its Unlock returns the loss. It asks for
// Requests and Token at any time, also after the end.
//
// A driver that cannot find out whether a conversion was written, also because the context
// has ended, has lost the grant: it calls lose, see [NewGrant], before it returns.
type GrantDriver interface {
	// Requests returns what is held, or was held at the end, in the form of [Normalize].
	Requests() []Request
	// Token returns the fencing token, also after the end.
	Token() Token
	// Check returns an error if the driver cannot guarantee the grant any more. It
	// does no I/O.
	Check() error
	// Unlock releases this grant and no other. It is idempotent: it returns nil for a
	// grant that has ended, or ErrLost if the session ended before the release. It releases
	// the grant even if the context has ended.
	Unlock(ctx context.Context) error
	// Upgrade raises every request to its join with m, or none. If it raises one, the
	// grant has a new, greater token. Downgrade lowers every request to m, or none, and
	// returns ErrInvalid if a request does not cover m. m is a valid mode. Both return
	// ErrNotHeld if the grant has ended.
	Upgrade(ctx context.Context, m Mode) error
	Downgrade(ctx context.Context, m Mode) error
}

// NewGrant returns the grant that a lock driver hands to its caller. The driver
// calls lose, once or more, with a [LostError] with the token of the grant when the grant is
// revoked or lost. Lose returns false if the grant was released or lost before, and for a
// second revocation. When lose returns, the holder has been notified: only then may the
// driver grant a request that conflicts.
func NewGrant(d GrantDriver) (g *Grant, lose func(*LostError) bool) {
	g = &Grant{driver: d, lost: make(chan struct{})}
	return g, g.lose
}

// Driver returns the driver's part. A store in the same engine uses it to reach
// the key or row that its transaction compares.
func (g *Grant) Driver() GrantDriver { return g.driver }

// Token returns the fencing token, also after the end of the grant. An upgrade that
// raises a request changes it.
func (g *Grant) Token() Token { return g.driver.Token() }

// Requests returns what is held, or was held at the end, in the form of
// [Normalize].
func (g *Grant) Requests() []Request { return g.driver.Requests() }

// Check returns nil if the grant holds. Call it before every effect that needs the
// lock. It does no I/O. Its answer was true at some moment during the call; the
// token protects a later effect, see [Fence].
//
// Errors: [ErrNotHeld] after Unlock; [ErrLost] and [ErrRevoked] as a [LostError].
func (g *Grant) Check() error {
	if fault := g.currentFault(); fault != nil {
		return fault
	}
	return g.driver.Check()
}

func (g *Grant) currentFault() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

// Lost returns a channel that is closed when the grant is revoked or lost.
// [Grant.Check] then returns the reason. Unlock does not close it.
func (g *Grant) Lost() <-chan struct{} { return g.lost }

// Context returns a context for the work that needs the lock. It ends with parent,
// and when the grant is revoked, lost or released. Its cause is then the error of
// [Grant.Check]. Call cancel when the work is done.
func (g *Grant) Context(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	g.mu.Lock()
	fault := g.fault
	if fault == nil {
		if g.cancels == nil {
			g.cancels = map[context.Context]context.CancelCauseFunc{}
		}
		g.cancels[ctx] = end
	}
	g.mu.Unlock()
	if fault != nil {
		end(fault)
	}
	return ctx, func() {
		g.mu.Lock()
		delete(g.cancels, ctx)
		g.mu.Unlock()
		end(context.Canceled)
	}
}

// Unlock releases exactly this grant and lets waiting requests in. Only the first
// call has an effect; it may come from any goroutine. A context that has ended
// does not prevent the release.
//
// The error is [ErrLost] if the grant was lost before. A driver may return an error
// of its engine: call Unlock again then.
func (g *Grant) Unlock(ctx context.Context) error {
	g.end(ErrNotHeld, true)
	err := g.driver.Unlock(ctx)
	if fault := g.currentFault(); fault != ErrNotHeld {
		return fault
	}
	return err
}

// Upgrade raises the mode of every request to its [Join] with m, all or none. It never
// waits. It is refused like a [Locker].TryLock of the requests that it raises, and so also if
// another request waits for one of these. An upgrade that raises none keeps the token and is
// not refused. Two holders that both upgrade are both refused
// until one of them unlocks.
//
// Errors: [ErrConflict] as a [ConflictError], [ErrInvalid], those of Check, and the
// error of the context. After an error the grant is unchanged, unless it is lost.
func (g *Grant) Upgrade(ctx context.Context, m Mode) error {
	return g.convert(ctx, m, g.driver.Upgrade)
}

// Downgrade lowers the mode of every request to m and lets waiting requests in. It
// keeps the token.
//
// Errors: [ErrInvalid] if the mode of some request does not cover m, those of
// Check, and the error of the context. After an error the grant is unchanged, unless it is
// lost.
func (g *Grant) Downgrade(ctx context.Context, m Mode) error {
	return g.convert(ctx, m, g.driver.Downgrade)
}

func (g *Grant) convert(ctx context.Context, m Mode, do func(context.Context, Mode) error) error {
	if !m.valid() {
		return invalidMode(m)
	}
	if err := g.Check(); err != nil {
		return err
	}
	err := do(ctx, m)
	if errors.Is(err, ErrNotHeld) {
		// The grant ended after the Check. The driver does not distinguish a release
		// from a loss; the Grant does.
		if fault := g.Check(); fault != nil {
			return fault
		}
	}
	return err
}

func (g *Grant) lose(why *LostError) bool {
	return g.end(why, why.Err != ErrRevoked)
}

// end records why the grant ended or was revoked and notifies the holder. It
// reports whether this call did so first. A call that comes second does not return
// before the holder has been notified either.
func (g *Grant) end(why error, over bool) (first bool) {
	g.mu.Lock()
	if first = !g.over && (over || g.fault == nil); first {
		// Close under the mutex. Bad schedule without it: a revocation sets the
		// fault and sleeps; a Break finds the fault, grants the lock to another
		// caller; and only then the revocation closes the channel.
		if revokedOrLost(why) && !revokedOrLost(g.fault) {
			close(g.lost)
		}
		g.fault, g.over = why, over
	}
	why = g.fault
	cancels := maps.Clone(g.cancels)
	g.mu.Unlock()

	// Cancel without the mutex: it runs code of contexts, which may call methods of
	// this Grant. Forget the functions only afterwards, so that a second call, as in
	// the schedule above, cancels them too.
	for _, cancel := range cancels {
		cancel(why)
	}
	g.mu.Lock()
	g.cancels = nil // Context has added none: there is a fault
	g.mu.Unlock()
	return first
}

func revokedOrLost(fault error) bool {
	_, loss := fault.(*LostError)
	return loss
}

// loss returns why the grant was lost, and nil if it was not.
func (g *Grant) loss() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over && revokedOrLost(g.fault) {
		return g.fault
	}
	return nil
}
