package lock

import (
	"context"
	"slices"
	"time"
)

// claim is one acquisition that is present in a tree: it waits or it is held.
// Everything in it is guarded by the tree's mutex, except what never changes.
//
// The order of requests is that of arrival. A claim is granted when no earlier
// one that is present conflicts:
//
//	blockers = number of pairs (entry of an earlier present claim, own entry)
//	           that conflict
//	state == waiting  <=>  blockers > 0
//
// Every pair is counted once, when the later claim arrives, and taken off once,
// when the earlier goes or is lowered below the conflict.
type claim struct {
	tree     *Tree
	entries  []entry
	one      [1]entry // where the entries of a single request are
	state    state
	leaving  bool // Break is at work: nobody joins it any more
	blockers int
	arrival  uint64
	token    Token
	since    time.Duration // of its arrival, then of its grant; see Tree.clock

	// Of claims made by Try, which are used again; every release ends the
	// handles of one generation.
	generation uint64
	spare      *claim
	cause      error // of its loss

	// Of all others.
	options Options
	asked   []Request // normalized, as first asked for: what an id stands for
	ask     [1]Request
	last    []Request // what it held when it was released
	held    *Held
	lose    func(*LostError) bool
	granted chan struct{} // closed when it is granted; nil if it never waited
	waiters int           // calls that wait for it
	handles int           // calls that returned its Held
}

type state uint8

const (
	gone state = iota
	waiting
	held
)

// Requests implements [Grant].
func (c *claim) Requests() []Request {
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	if c.state == gone {
		return slices.Clone(c.last)
	}
	return c.present()
}

// present returns the requests as they are. The tree is locked.
func (c *claim) present() []Request {
	rs := make([]Request, len(c.entries))
	for i := range c.entries {
		rs[i] = c.entries[i].request()
	}
	return rs
}

func (e *entry) request() Request { return Request{pathOf(e.node.key), e.mode} }

// Token implements [Grant].
func (c *claim) Token() Token {
	c.tree.mu.Lock()
	defer c.tree.mu.Unlock()
	return c.token
}

// Check implements [Grant]. In one process the handle itself is told of every
// loss.
func (c *claim) Check() error { return nil }

// Unlock implements [Grant].
func (c *claim) Unlock(context.Context) error {
	t := c.tree
	t.mu.Lock()
	if c.state != held {
		t.mu.Unlock()
		return nil
	}
	done := t.release(c)
	t.mu.Unlock()
	t.finish(done)
	return nil
}

// covers reports whether the claim holds what is asked for, at the same nodes: a
// downgrade may have left less. The tree is locked.
func (c *claim) covers(rs []Request) bool {
	for i, r := range rs {
		if !c.entries[i].mode.Covers(r.Mode) {
			return false
		}
	}
	return true
}

// Upgrade implements [Grant].
func (c *claim) Upgrade(ctx context.Context, m Mode) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	t := c.tree
	t.mu.Lock()
	// Bad schedule without leaving: Check, Break tells the holder that the grant
	// is lost, and here it gets a new token.
	if c.state != held || c.leaving {
		t.mu.Unlock()
		return ErrNotHeld
	}
	raised := c.raisedBy(m)
	for _, r := range raised {
		free := t.trie.root.visit(r.Path.key(), r.Mode, func(o *entry) bool { return o.claim == c })
		if !free {
			return t.refuse(raised, &c.options, ErrConflict, c) // unlocks
		}
	}
	if len(raised) == 0 {
		t.mu.Unlock()
		return nil
	}
	for i := range c.entries {
		e := &c.entries[i]
		if to := Join(e.mode, m); to != e.mode {
			e.node.unmark(e)
			e.node.mark(e, to)
		}
	}
	// Nobody conflicts with the new modes, so no claim waits for this one and
	// no count of blockers changes. To the resource it is a new grant: one that
	// was compatible with the old mode may have a greater token.
	c.token = t.nextToken()
	c.since = t.clock()
	event := t.granted(c, 0)
	t.mu.Unlock()
	if event != nil {
		t.config.Observer.Granted(*event)
	}
	return nil
}

// raisedBy returns the requests that a join with m raises, as they are then.
func (c *claim) raisedBy(m Mode) (raised []Request) {
	for i := range c.entries {
		r := c.entries[i].request()
		if to := Join(r.Mode, m); to != r.Mode {
			raised = append(raised, Request{r.Path, to})
		}
	}
	return raised
}

// Downgrade implements [Grant].
func (c *claim) Downgrade(ctx context.Context, m Mode) error {
	if ctx.Err() != nil {
		return Ended(ctx)
	}
	t := c.tree
	t.mu.Lock()
	if c.state != held || c.leaving {
		t.mu.Unlock()
		return ErrNotHeld
	}
	for i := range c.entries {
		if e := &c.entries[i]; !e.mode.Covers(m) {
			at := e.request()
			t.mu.Unlock()
			return &InvalidError{"mode", m.String(), "is not weaker than " + at.String()}
		}
	}
	var done finished
	for i := range c.entries {
		e := &c.entries[i]
		from := e.mode
		if from == m {
			continue
		}
		key := e.node.key
		e.node.unmark(e)
		e.node.mark(e, m)
		if t.waiting > 0 {
			done.ready = t.unblock(c, key, from, m, done.ready)
		}
	}
	t.grantReady(&done)
	t.mu.Unlock()
	t.finish(done)
	return nil
}
