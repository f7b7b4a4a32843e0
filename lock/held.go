package lock

import (
	"context"
	"errors"
	"maps"
	"sync"
)

// Held is a grant. It is safe for concurrent use by any goroutine, and must not
// be copied. A Held that nobody unlocks holds for ever: there is no finalizer.
//
// A grant ends by [Held.Unlock], or is lost: broken by an operator, or, on an
// engine, by the end of the holder's session.
type Held struct {
	grant Grant

	mu sync.Mutex
	// Why the grant ended or is about to: nil while nobody has a reason. A
	// reason only gets worse: nil -> revoked -> lost or released.
	fault   error
	over    bool          // released or lost
	lost    chan struct{} // closed when revoked or lost; made at the first call of Lost
	cancels map[*context.CancelCauseFunc]struct{}
}

// Grant is the driver's side of a [Held]: what an engine implements, and nobody
// else needs. Its methods are called without any lock held, from any goroutine.
//
// An engine that cannot know whether a conversion was written, because the
// answer is lost, has lost the grant: it calls lose before it returns.
type Grant interface {
	// Requests returns what is held, in the form of [Normalize].
	Requests() []Request
	Token() Token
	// Check returns an error if the grant cannot be vouched for any more. It
	// does no I/O.
	Check() error
	// Unlock releases the grant. It is idempotent, and releases nothing but
	// this grant. The context does not decide whether it is released.
	Unlock(ctx context.Context) error
	// Upgrade raises every request to its join with m, or none; Downgrade
	// lowers every request to m, or none. A grant that is released by then is
	// ErrNotHeld.
	Upgrade(ctx context.Context, m Mode) error
	Downgrade(ctx context.Context, m Mode) error
}

// NewHeld makes the handle of a driver's grant. The driver calls lose, once or
// more, with a [LostError] when the grant is revoked or lost; lose returns
// false if the holder has released it, or lost it, before. When lose returns,
// the holder has been told: only then may the driver grant a request that
// conflicts.
func NewHeld(g Grant) (h *Held, lose func(*LostError) bool) {
	h = &Held{grant: g}
	return h, h.lose
}

// Token returns the fencing token of the grant. It stays readable after the
// end. An upgrade is a new grant and has a new token.
func (h *Held) Token() Token { return h.grant.Token() }

// Grant returns the driver's side: how the code of an engine gets from a handle
// to what it keeps for it, such as the key that a transaction compares.
func (h *Held) Grant() Grant { return h.grant }

// Requests returns what is held, or was: in the order of [Path.Compare],
// requests for one node joined.
func (h *Held) Requests() []Request { return h.grant.Requests() }

// Covers reports whether the grant allows what a request for p in mode m would:
// whether one of its requests does, at the same node or, for S and X (and the
// reading half of SIX), above it. A released or lost grant covers nothing. It is
// how a function that is called with a grant makes sure that it is enough;
// locking once more would wait for itself.
func (h *Held) Covers(p Path, m Mode) bool {
	if h.Check() != nil || !p.Valid() || !m.Valid() {
		return false
	}
	for _, r := range h.Requests() {
		if r.Path == p && r.Mode.Covers(m) {
			return true
		}
		if r.Path.Covers(p) && r.Path != p && inherited[r.Mode&7].bit()&covered[m&7] != 0 {
			return true
		}
	}
	return false
}

// inherited is the mode that a lock grants on everything below its node, and
// covered the set of those that are enough for a mode there.
var (
	inherited = perMode[Mode]{S: S, SIX: S, X: X}
	covered   = perMode[modeSet]{IS: 1<<S | 1<<X, IX: 1 << X, S: 1<<S | 1<<X, SIX: 1 << X, X: 1 << X}
)

// Check returns nil if the grant holds: call it before every effect that needs
// the lock. It does no I/O. What it says is true of the moment before it
// returned; an effect that comes later is protected by the token, see [Fence].
//
// Errors: [ErrNotHeld] after Unlock; [ErrLost] and [ErrRevoked] as a
// [LostError].
func (h *Held) Check() error {
	h.mu.Lock()
	fault := h.fault
	h.mu.Unlock()
	if fault != nil {
		return fault
	}
	return h.grant.Check()
}

// Lost returns a channel that is closed when the grant is revoked or lost;
// [Held.Check] then says which. Unlock does not close it.
func (h *Held) Lost() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost == nil {
		h.lost = make(chan struct{})
		if _, lost := h.fault.(*LostError); lost {
			close(h.lost)
		}
	}
	return h.lost
}

// Context returns a context for the work that needs the lock: it ends with
// parent, and when the grant is revoked, lost or released, with the error of
// [Held.Check] as its cause. Call cancel when the work is done.
func (h *Held) Context(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(parent)
	h.mu.Lock()
	fault := h.fault
	if fault == nil {
		if h.cancels == nil {
			h.cancels = map[*context.CancelCauseFunc]struct{}{}
		}
		h.cancels[&end] = struct{}{}
	}
	h.mu.Unlock()
	if fault != nil {
		end(fault)
	}
	return ctx, func() {
		h.mu.Lock()
		delete(h.cancels, &end)
		h.mu.Unlock()
		end(context.Canceled)
	}
}

// Unlock gives the grant back, exactly what it took, and grants what waited for
// it. Only the first call does anything; it may come from any goroutine. A
// context that has ended does not keep it from being released.
//
// The error is [ErrLost] if the grant was lost before, and on an engine an
// error of its own: call it again then.
func (h *Held) Unlock(ctx context.Context) error {
	h.end(ErrNotHeld, true)
	err := h.grant.Unlock(ctx)
	h.mu.Lock()
	fault := h.fault
	h.mu.Unlock()
	if fault != ErrNotHeld {
		return fault
	}
	return err
}

func (h *Held) unlock() { _ = h.Unlock(context.Background()) }

// Upgrade raises the mode of every request to its [Join] with m, at once or not
// at all: it never waits. It is judged like a [Locker].TryLock of the raised
// requests, so it is refused also by who waits for this grant. Two holders that
// both want to upgrade are both refused, until one of them unlocks.
//
// Errors: [ErrConflict] as a [ConflictError], [ErrInvalid], those of Check and
// of the context. After an error the grant is as it was.
func (h *Held) Upgrade(ctx context.Context, m Mode) error {
	return h.convert(ctx, m, h.grant.Upgrade)
}

// Downgrade lowers the mode of every request to m and grants what waited for
// that. It keeps the token.
//
// Errors: [ErrInvalid] if m is not covered by the mode of every request, those
// of Check and of the context. After an error the grant is as it was.
func (h *Held) Downgrade(ctx context.Context, m Mode) error {
	return h.convert(ctx, m, h.grant.Downgrade)
}

func (h *Held) convert(ctx context.Context, m Mode, do func(context.Context, Mode) error) error {
	if !m.Valid() {
		return invalidMode(m)
	}
	if err := h.Check(); err != nil {
		return err
	}
	err := do(ctx, m)
	if errors.Is(err, ErrNotHeld) {
		// It has ended since. How, the driver does not say: lost is not released.
		if fault := h.Check(); fault != nil {
			return fault
		}
	}
	return err
}

func (h *Held) lose(why *LostError) bool {
	return h.end(why, why.Err != ErrRevoked)
}

// end tells the holder why, and reports whether it was the first to say that it
// is over. A revocation is told once and is not the end. Whoever comes second
// says nothing new, but does not return before the holder has been told either.
func (h *Held) end(why error, over bool) (first bool) {
	h.mu.Lock()
	if first = !h.over && (over || h.fault == nil); first {
		_, told := h.fault.(*LostError)
		h.fault, h.over = why, over
		// Under the lock. Bad schedule without it: a revocation sets the fault
		// and sleeps, a Break finds that the holder was told, grants the lock to
		// another, and only then the revocation closes the channel.
		if _, loss := why.(*LostError); loss && !told && h.lost != nil {
			close(h.lost)
		}
	}
	why = h.fault
	cancels := maps.Clone(h.cancels)
	h.mu.Unlock()
	if len(cancels) == 0 {
		return first
	}

	// Not under the lock: cancelling runs code of contexts, which may ask this
	// Held for its state. And they are forgotten only then, so that who comes
	// second, as in the schedule above, ends them too.
	for cancel := range cancels {
		(*cancel)(why)
	}
	h.mu.Lock()
	h.cancels = nil // none has come: there is a fault
	h.mu.Unlock()
	return first
}

// loss returns why the grant was lost, nil if it was not.
func (h *Held) loss() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if why, lost := h.fault.(*LostError); lost && h.over {
		return why
	}
	return nil
}
