package lock

import "sync/atomic"

// Fence stands before a resource and refuses tokens that are older than one
// that it has seen. No clock and no message to the old holder is needed: after
// the new holder has passed, the old one cannot.
//
// The zero Fence lets every token pass. It is safe for concurrent use and must
// not be copied after its first use. Let a write and its Admit be one step: under
// the mutex of the resource, or in one transaction of a database, where the
// fence is a column and the condition is "column <= token".
type Fence struct {
	highest atomic.Uint64
}

// Admit lets a token pass that is at least the highest so far, and refuses any
// other with [ErrStaleToken]. Token 0, which no grant has, never passes.
//
// A new holder passes once before it reads what it will change: from then on
// nothing older comes in between.
func (f *Fence) Admit(t Token) error {
	for {
		highest := f.highest.Load()
		if t == 0 || uint64(t) < highest {
			return &StaleTokenError{Token: t, Highest: Token(highest)}
		}
		if uint64(t) == highest || f.highest.CompareAndSwap(highest, uint64(t)) {
			return nil
		}
	}
}

// Highest returns the highest token that has passed, 0 if none has. It is not
// the highest that was granted: see [Config].FirstToken.
func (f *Fence) Highest() Token { return Token(f.highest.Load()) }
