package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Holders implements [Locker].
func (t *Tree) Holders(ctx context.Context, p Path, s Scope) ([]Holder, error) {
	if !p.Valid() {
		return nil, invalidPath("", "is the zero Path")
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, Ended(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.holders(slices.Collect(t.trie.visit(p.key(), scoped(s)))), nil
}

// Snapshot implements [Locker]. It reads up to 1,024 acquisitions at one moment. It reads
// more acquisitions in pieces, each of one moment, so that other calls do not wait for it.
// The numbers are of the first moment. Acquisitions that began later are not listed.
// [Tree.Counts] returns the numbers alone.
func (t *Tree) Snapshot(ctx context.Context) (Snapshot, error) {
	if ctx.Err() != nil {
		return Snapshot{}, Ended(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.counts()
	s.Holders = t.list(func() {
		t.mu.Unlock() // other calls go on
		t.mu.Lock()
	})
	return s, nil
}

// piece is how many acquisitions a Snapshot reads before it lets other calls go on.
const piece = 1024

// list returns the holders of all claims, without those that arrive in a pause. It pauses
// after each piece. The tree is locked, but for the pauses.
func (t *Tree) list(pause func()) []Holder {
	holders := make([]Holder, 0, t.held+t.waiting)
	var entries []*entry
	latest, read := t.arrival, 0
	for c := t.all.newer; c != nil && c != &t.all && c.arrival <= latest; c = c.newer {
		for i := range c.entries {
			entries = append(entries, &c.entries[i])
		}
		if read++; read%piece == 0 {
			holders = append(holders, t.holders(entries)...)
			entries = nil
			bookmark := new(claim) // keeps the place, without entries
			bookmark.link(c.newer)
			pause()
			c = bookmark.older
			bookmark.unlink()
		}
	}
	return append(holders, t.holders(entries)...)
}

// Counts returns the numbers of a [Snapshot], without Holders. It costs the same at
// any number of holders.
func (t *Tree) Counts() Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts()
}

func (t *Tree) counts() Snapshot {
	return Snapshot{Held: t.held, Waiting: t.waiting, Nodes: t.trie.nodes, LastToken: t.token}
}

// Revoke implements [Locker]. The error is [ErrInvalid] for the token of a
// [Handle]: its holder cannot be notified.
func (t *Tree) Revoke(ctx context.Context, token Token, reason string) error {
	if err := checkOperator(ctx, reason); err != nil {
		return err
	}
	t.mu.Lock()
	c := t.claimOf(token)
	t.mu.Unlock()
	switch {
	case c == nil:
		return notHeld(token)
	case c.grant == nil:
		return &InvalidError{"token", fmt.Sprint(token), "is of a Handle, which cannot be revoked: break it"}
	}
	if !c.lose(&LostError{Token: token, Reason: reason, Err: ErrRevoked}) && !errors.Is(c.grant.Check(), ErrRevoked) {
		return notHeld(token) // released or broken meanwhile
	}
	return nil
}

// Break implements [Locker].
func (t *Tree) Break(ctx context.Context, token Token, reason string) error {
	if err := checkOperator(ctx, reason); err != nil {
		return err
	}
	why := &LostError{Token: token, Reason: reason, Err: ErrLost}
	t.mu.Lock()
	c := t.claimOf(token)
	if c == nil {
		t.mu.Unlock()
		return notHeld(token)
	}
	if c.grant == nil {
		c.cause = why
	} else {
		// The claim stays in the trie until its holder has been notified. An
		// acquisition that repeats its id meanwhile does not get the lost grant: it
		// waits behind the claim or is refused.
		if c.breaking == nil {
			c.breaking = why
		}
		t.mu.Unlock()
		// A conversion may have notified the holder for this call.
		if !c.lose(why) && c.grant.loss() != error(why) {
			return notHeld(token) // released, or broken by another call, meanwhile
		}
		t.mu.Lock()
		if c.state != held { // the notified holder unlocked first
			t.mu.Unlock()
			return nil
		}
	}
	after := t.release(c)
	t.mu.Unlock()
	after.run(ctx)
	return nil
}

func checkOperator(ctx context.Context, reason string) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	return checkText("reason", reason)
}

func notHeld(token Token) error { return fmt.Errorf("%w: token %d", ErrNotHeld, token) }

// claimOf returns the claim that holds the token, and nil if none does. The tree
// is locked.
func (t *Tree) claimOf(token Token) *claim {
	for e := range t.trie.visit("", scoped(At|Below)) {
		if e.claim.state == held && e.claim.token == token {
			return e.claim
		}
	}
	return nil
}
