package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// refuse makes a refusal, unlocks the tree and tells the observer.
func (t *Tree) refuse(rs []Request, o *Options, why error, own *claim) error {
	err := t.refusal(&t.trie.root, rs, o, why, own)
	t.mu.Unlock()
	t.tellRefused(err, o)
	return err
}

// refuseAt is refuse for a single request that conflicts with nothing above n.
func (t *Tree) refuseAt(n *node, rs []Request, o *Options) error {
	var err *ConflictError
	if e := n.only(rs[0]); e != nil { // by far most of them
		err = &ConflictError{Err: ErrConflict}
		err.request[0] = rs[0]
		err.Requests = err.request[:]
		t.describe(&err.holder[0], e, o.Owner)
		err.Holders = err.holder[:]
	} else {
		err = t.refusal(n, rs, o, ErrConflict, nil)
	}
	t.mu.Unlock()
	t.tellRefused(err, o)
	return err
}

// only returns the entry at n that conflicts with a request for n, if it is the
// only one there and nothing below conflicts. At n something does.
func (n *node) only(r Request) *entry {
	if n.first == nil || n.first.next != nil || len(n.key) != len(r.Path.key()) || n.conflictsBelow(conflicting[r.Mode&7]) {
		return nil
	}
	return n.first
}

// refusal names who is in the way of the requests, from n on. If they have a
// claim of their own, it is not in its own way, nor is what came after it, unless
// it holds and asks for more. For an id in use, the claim is who is in the way.
// The tree is locked.
func (t *Tree) refusal(n *node, rs []Request, o *Options, why error, own *claim) *ConflictError {
	err := &ConflictError{Err: why}
	if len(rs) == 1 {
		err.request[0] = rs[0]
		err.Requests = err.request[:]
	} else {
		err.Requests = slices.Clone(rs)
	}

	limit := t.config.MaxHolders
	if limit == 0 {
		limit = defaultMaxHolders
	}
	var room [defaultMaxHolders]*entry
	found := room[:0]
	// Only an upgrade and a try know a claim of their own with ErrConflict, and
	// of a try it waits. A wait that is given up can have been granted, and even
	// released by another call, meanwhile: what came later is not in its way.
	upgrade := why == ErrConflict && own != nil && own.state == held
	collect := func(e *entry) bool {
		if own != nil && why != ErrIDInUse && (e.claim == own || !upgrade && e.claim.arrival > own.arrival) {
			return true
		}
		if len(rs) > 1 && slices.Contains(found, e) {
			return true // another of the requests has met it before
		}
		if len(found) == limit {
			err.More = true
			return false
		}
		found = append(found, e)
		return true
	}
	if why == ErrIDInUse {
		for i := range own.entries {
			if !collect(&own.entries[i]) {
				break
			}
		}
	} else {
		for _, r := range rs {
			if !n.visit(r.Path.key(), r.Mode, collect) {
				break
			}
		}
	}
	if len(found) == 1 {
		t.describe(&err.holder[0], found[0], o.Owner)
		err.Holders = err.holder[:]
		return err
	}
	err.Holders = t.holders(found, o.Owner)
	return err
}

// sortEntries sorts by arrival, and the entries of one claim by path.
func sortEntries(entries []*entry) {
	slices.SortFunc(entries, func(a, b *entry) int {
		switch {
		case a.claim.arrival < b.claim.arrival:
			return -1
		case a.claim.arrival > b.claim.arrival:
			return 1
		}
		return pathOf(a.node.key).Compare(pathOf(b.node.key))
	})
}

// describe describes an entry to the owner of another request.
func (t *Tree) describe(h *Holder, e *entry, owner string) {
	c := e.claim
	h.Path, h.Mode = pathOf(e.node.key), e.mode
	h.ID, h.Owner, h.Reason = c.options.ID, c.options.Owner, c.options.Reason
	h.Token, h.Since, h.Waiting = c.token, t.base.Add(c.since), c.state == waiting
	h.Mine = owner != "" && owner == c.options.Owner
}

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
	var found []*entry
	t.trie.walk(p.key(), func(at Scope, e *entry) {
		if at&s != 0 {
			found = append(found, e)
		}
	})
	return t.holders(found, ""), nil
}

func (t *Tree) holders(entries []*entry, owner string) []Holder {
	sortEntries(entries)
	holders := make([]Holder, len(entries))
	for i, e := range entries {
		t.describe(&holders[i], e, owner)
	}
	return holders
}

// Snapshot implements [Locker].
func (t *Tree) Snapshot(ctx context.Context) (Snapshot, error) {
	if ctx.Err() != nil {
		return Snapshot{}, Ended(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*entry
	t.trie.walk("", func(_ Scope, e *entry) { all = append(all, e) })
	return Snapshot{
		Holders: t.holders(all, ""), Held: t.held, Waiting: t.waiting,
		Nodes: t.trie.nodes, LastToken: t.token,
	}, nil
}

// Revoke implements [Locker]. The holder of a [Hold] cannot be told: that is
// [ErrInvalid].
func (t *Tree) Revoke(ctx context.Context, token Token, reason string) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	if err := checkText("reason", reason); err != nil {
		return err
	}
	t.mu.Lock()
	c := t.claimOf(token)
	t.mu.Unlock()
	switch {
	case c == nil:
		return notHeld(token)
	case c.held == nil:
		return &InvalidError{What: "token", Value: token.String(), Reason: "is of a Hold, whose holder cannot be told: break it"}
	}
	if c.lose(&LostError{Token: token, Reason: reason, Err: ErrRevoked}) {
		if o := t.config.Observer; o != nil && o.Revoked != nil {
			o.Revoked(Revoked{c.options, token, reason})
		}
		return nil
	}
	if !errors.Is(c.held.Check(), ErrRevoked) {
		return notHeld(token) // released or broken meanwhile; one that was revoked before is as asked
	}
	return nil
}

func notHeld(token Token) error { return fmt.Errorf("%w: token %d", ErrNotHeld, token) }

// Break implements [Locker].
func (t *Tree) Break(ctx context.Context, token Token, reason string) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	if err := checkText("reason", reason); err != nil {
		return err
	}
	why := &LostError{Token: token, Reason: reason, Err: ErrLost}
	t.mu.Lock()
	c := t.claimOf(token)
	if c == nil {
		t.mu.Unlock()
		return notHeld(token)
	}
	if c.held == nil {
		c.cause = why
	} else {
		// The claim stays in everybody's way until its holder has been told.
		// Who repeats its id meanwhile does not get a grant that is lost, but
		// waits behind it or is refused.
		c.leaving = true
		t.mu.Unlock()
		if !c.lose(why) {
			return notHeld(token) // released, or broken by another, meanwhile
		}
		t.mu.Lock()
		if c.state != held { // the holder, being told, was faster
			t.mu.Unlock()
			return nil
		}
	}
	done := t.release(c)
	t.mu.Unlock()
	t.finish(done)
	return nil
}

// claimOf returns the claim that holds by this token. The tree is locked.
func (t *Tree) claimOf(token Token) (c *claim) {
	if token == 0 || token > t.token {
		return nil
	}
	t.trie.walk("", func(_ Scope, e *entry) {
		if e.claim.state == held && e.claim.token == token {
			c = e.claim
		}
	})
	return c
}
