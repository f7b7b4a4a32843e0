package lock

import (
	"context"
	"time"
)

// claim is one acquisition that is present in a tree: it waits or is held. The
// tree's mutex guards everything in it except what never changes. A claim is the
// [GrantDriver] of its Grant.
//
// A claim is granted when no earlier present claim conflicts:
//
//	blocked = number of own entries that conflict with an entry of an earlier
//	          present claim
//	state == waiting  <=>  blocked > 0
//
// What comes later never blocks a claim, so an entry that is not blocked stays so.
type claim struct {
	tree    *Tree
	entries []entry
	state   state
	blocked int
	arrival uint64
	token   Token
	since   time.Duration // of its arrival, then of its grant; see Tree.clock
	older   *claim        // neighbours in the ring of the tree
	newer   *claim

	// The fields of a claim of Try. Such a claim is used again; every release ends
	// the handles of one generation.
	one        [1]entry // the memory of entries
	generation uint64
	cause      error // of its loss

	// The fields of all other claims.
	options  Options
	asked    []Request // normalized; an id stands for these
	grant    *Grant
	lose     func(*LostError) bool
	breaking *LostError    // why Break takes it: no acquisition joins the claim
	granted  chan struct{} // closed when it is granted

	calls    int  // that have not returned
	returned bool // a call has returned the Grant
}

type state uint8

const (
	gone state = iota
	waiting
	held
)

// link puts a claim into a ring before another one.
func (c *claim) link(next *claim) {
	c.older, c.newer = next.older, next
	c.older.newer, next.older = c, c
}

func (c *claim) unlink() {
	c.older.newer, c.newer.older = c.newer, c.older
	c.older, c.newer = nil, nil
}

// requests returns the requests in their current modes, or in those at the release. The tree
// is locked.
func (c *claim) requests() []Request {
	rs := make([]Request, len(c.entries))
	for i := range c.entries {
		rs[i] = c.entries[i].Request
	}
	return rs
}

// covers reports whether the claim holds at least the modes of rs, which are at
// the same nodes. A downgrade may have left less. The tree is locked.
func (c *claim) covers(rs []Request) bool {
	for i, r := range rs {
		if !c.entries[i].Mode.Covers(r.Mode) {
			return false
		}
	}
	return true
}

// Requests implements [GrantDriver].
func (c *claim) Requests() []Request {
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	return c.requests()
}

// Token implements [GrantDriver].
func (c *claim) Token() Token {
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	return c.token
}

// Check implements [GrantDriver]. In one process the tree calls lose at every
// loss.
func (c *claim) Check() error { return nil }

// Unlock implements [GrantDriver].
func (c *claim) Unlock(ctx context.Context) error {
	t := c.tree
	t.mu.Lock()
	if c.state != held {
		t.mu.Unlock()
		return nil
	}
	after := t.release(c)
	t.mu.Unlock()
	after.run(ctx)
	return nil
}

// lockForConversion locks the tree if the claim is held. After an error it is not locked.
func (c *claim) lockForConversion(ctx context.Context) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	c.tree.mu.Lock()
	if c.state == held && c.breaking == nil {
		return nil
	}
	why := c.breaking
	c.tree.mu.Unlock()
	// Bad schedule without lose: Break has marked the claim and not yet notified the
	// holder, and the Grant cannot see that ErrNotHeld stands for a loss.
	if why != nil {
		c.lose(why)
	}
	return ErrNotHeld
}

// Upgrade implements [GrantDriver].
func (c *claim) Upgrade(ctx context.Context, m Mode) error {
	if err := c.lockForConversion(ctx); err != nil {
		return err
	}
	t := c.tree
	raised := c.raisedBy(m)
	for _, r := range raised {
		for e := range t.trie.visit(r.Path.key(), conflicting[r.Mode]) {
			if e.claim != c {
				return t.refuse(ctx, raised, &c.options, ErrConflict, c) // unlocks
			}
		}
	}
	if len(raised) == 0 {
		t.mu.Unlock()
		return nil
	}
	for i := range c.entries {
		c.convert(i, Join(c.entries[i].Mode, m))
	}
	// No other claim conflicts with the new modes, so no claim waits for this one
	// and no count of blockers changes. To the resource it is a new grant: a
	// compatible grant of the old mode may have a greater token.
	before := c.token
	t.token++
	c.token, c.since = t.token, t.clock()
	e := t.grantedEvent(c, 0, before)
	t.mu.Unlock()
	if e != nil {
		e(ctx)
	}
	return nil
}

// raisedBy returns the requests that a join with m raises, in their new modes.
func (c *claim) raisedBy(m Mode) (raised []Request) {
	for _, r := range c.requests() {
		if to := Join(r.Mode, m); to != r.Mode {
			raised = append(raised, Request{r.Path, to})
		}
	}
	return raised
}

// convert changes the mode of one entry. The tree is locked.
func (c *claim) convert(i int, to Mode) {
	e := &c.entries[i]
	e.node.unmark(e)
	e.node.mark(e, to)
}

// Downgrade implements [GrantDriver].
func (c *claim) Downgrade(ctx context.Context, m Mode) error {
	if err := c.lockForConversion(ctx); err != nil {
		return err
	}
	t := c.tree
	before := c.requests()
	for _, r := range before {
		if !r.Mode.Covers(m) {
			t.mu.Unlock()
			return &InvalidError{"mode", m.String(), "is not weaker than " + r.String()}
		}
	}
	var after effects
	for i, r := range before {
		if r.Mode != m {
			c.convert(i, m)
			t.recheckBlocked(r.Path.key(), r.Mode, &after)
		}
	}
	t.grantReady(&after)
	t.mu.Unlock()
	after.run(ctx)
	return nil
}
