package lock

import "sync/atomic"

// Fence protects a resource from late writers: it refuses every token that is
// lower than one that it has admitted. It needs no clock and no message to the old
// holder.
//
// Every locked resource needs a Fence of its own. Tokens grow among grants that
// conflict. A token does not order grants of different resources: with one Fence
// for /a and /b, the holder of /b admits token 2, and the holder of /a, which has
// token 1 and has lost nothing, is refused. Locks above or below the resource
// conflict with each other and share its Fence. Holders that share the lock, as in
// mode S or IX, do not conflict: an earlier one of them is refused, too.
//
// The zero Fence admits every token but 0. It is safe for concurrent use and must
// not be copied after its first use. Make the write and its Admit one step: under
// the mutex of the resource, or in one database transaction, where the fence is a
// column and the condition is "column <= token".
type Fence struct {
	highest atomic.Uint64
}

// Admit accepts a token that is at least the highest one so far. It refuses any
// other token, and 0, with [ErrStaleToken].
//
// A new holder calls Admit before it reads what it is about to change. From then
// on the fence refuses the writes of earlier holders.
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
