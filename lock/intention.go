package lock

import "sync/atomic"

// Intention is the lock of one node with two modes: any number of [IX] at once, or
// one [X]. It is the IntentionLock of the document "System Lifecycle" of Lattice.
// It never waits.
//
// The zero Intention is free. It is safe for concurrent use and must not be copied
// after its first use. A [Tree] has more modes, paths, waiting, and the list of
// conflicting holders.
type Intention struct {
	word atomic.Uint64 // exclusive, or the number of IX
}

const (
	exclusive     uint64 = 1 << 63
	maxIntentions        = exclusive - 1
)

// TryLock takes the lock in mode [IX] or [X]. The error is [ErrConflict] if the
// lock is held in a mode that is not compatible with m, and [ErrInvalid] for
// another mode. After an error nothing is held.
func (l *Intention) TryLock(m Mode) (*Unlocker, error) {
	// TryLock is small enough to be inlined: an Unlocker that does not escape its
	// caller costs no allocation.
	u := &Unlocker{lock: l, mode: m}
	return u.take()
}

func (u *Unlocker) take() (*Unlocker, error) {
	word := &u.lock.word
	switch u.mode {
	case X:
		if word.CompareAndSwap(0, exclusive) {
			return u, nil
		}
		return nil, ErrConflict
	case IX:
		for {
			// The limit keeps the count out of the bit of X. Otherwise the next
			// unlock of an IX would release an X that was never taken.
			held := word.Load()
			if held >= maxIntentions {
				return nil, ErrConflict
			}
			if word.CompareAndSwap(held, held+1) {
				return u, nil
			}
		}
	}
	return nil, &InvalidError{"mode", u.mode.String(), "is neither IX nor X: an Intention has no other"}
}

// Unlocker releases what one [Intention.TryLock] took. It is safe for concurrent
// use and must not be copied. The nil and the zero Unlocker hold nothing.
type Unlocker struct {
	lock     *Intention
	mode     Mode
	released atomic.Bool
}

// Unlock releases the lock at the first call and reports true then. Every further
// call does nothing and reports false.
func (u *Unlocker) Unlock() bool {
	// The swap has one winner. Without it, two calls could count down twice and
	// release the lock of another caller.
	if u == nil || u.lock == nil || u.released.Swap(true) {
		return false
	}
	if u.mode == X {
		u.lock.word.Store(0) // no other call changes the word while X is held
	} else {
		u.lock.word.Add(^uint64(0))
	}
	return true
}
