package lock

import "sync/atomic"

// Intention is the lock of one node that is taken either exclusively (X) or
// with the intention to take something below exclusively (IX): any number of IX
// at once, or one X. It is the IntentionLock of the document "System Lifecycle"
// of Lattice. It never waits.
//
// The zero Intention is free. It is safe for concurrent use, is one word, and
// must not be copied after its first use. Who needs more modes, waiting, paths
// or to know who is in the way uses a [Tree].
type Intention struct {
	word atomic.Uint64 // exclusive, or the number of IX
}

const (
	exclusive     uint64 = 1 << 63
	maxIntentions        = exclusive - 1
)

// TryLock takes the lock in mode [IX] or [X], or says why not: [ErrConflict] if
// somebody holds it in a mode that does not go with m, [ErrInvalid] for another
// mode. After an error nothing is held.
func (l *Intention) TryLock(m Mode) (*Unlocker, error) {
	// Small enough to be inlined: an Unlocker that its caller keeps to itself
	// costs no allocation.
	u := &Unlocker{lock: l, mode: m}
	return u.take()
}

// take returns the Unlocker itself, or none.
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
			// At the limit, one more would be the bit of X, and the next unlock
			// of an IX would end an X that nobody took.
			held := word.Load()
			if held >= maxIntentions {
				return nil, ErrConflict
			}
			if word.CompareAndSwap(held, held+1) {
				return u, nil
			}
		}
	}
	return nil, &InvalidError{What: "mode", Value: u.mode.String(), Reason: "is neither IX nor X: an Intention knows no other"}
}

// Unlocker gives back what one [Intention.TryLock] took. It may be used from
// any goroutine and must not be copied. Nil and the zero Unlocker hold nothing.
type Unlocker struct {
	lock  *Intention
	mode  Mode
	given atomic.Bool // back
}

// Mode returns the mode in which the lock was taken.
// Of one that holds nothing it is 0.
func (u *Unlocker) Mode() Mode {
	if u == nil {
		return 0
	}
	return u.mode
}

// Unlock gives the lock back, once: every further call does nothing, whoever
// holds the lock by then. It reports whether it was this call.
func (u *Unlocker) Unlock() bool {
	// The swap has one winner, so that two calls cannot count down twice and
	// end the grant of somebody else.
	if u == nil || u.lock == nil || u.given.Swap(true) {
		return false
	}
	if u.mode == X {
		u.lock.word.Store(0) // no other call changes the word while X is held
	} else {
		u.lock.word.Add(^uint64(0))
	}
	return true
}
