package lock

import "context"

// Handle is a grant of [Tree.Try]: a value of two words for code that locks and
// unlocks too often for an allocation each. It has no owner. It cannot be revoked,
// only broken, and its holder is not notified.
//
// The zero Handle holds nothing. A Handle may be copied and used from any
// goroutine. All copies are the same grant.
type Handle struct {
	claim      *claim
	generation uint64
}

// Try grants the request at once or refuses it, like [Tree.TryLock]. A refusal does not
// list the holders. Without an [Observer], a Try of a path that was just unlocked does not
// allocate.
//
// Errors: [ErrConflict], [ErrInvalid]. After an error nothing is held.
func (t *Tree) Try(p Path, m Mode) (Handle, error) {
	if !p.Valid() || !m.valid() {
		return Handle{}, Request{p, m}.Validate()
	}
	key := p.key()
	t.mu.Lock()
	at, free := t.trie.find(key, conflicting[m])
	if !free {
		t.mu.Unlock()
		if t.config.Observer.Refused != nil {
			t.observeRefused(context.Background(), ErrConflict, []Request{{p, m}}, &Options{})
		}
		return Handle{}, ErrConflict
	}
	c := t.spareClaim()
	t.arrive(c)
	c.one[0].Request = Request{p, m}
	t.trie.insert(at, &c.one[0])
	t.grant(c)
	h := Handle{c, c.generation}
	e := t.grantedEvent(c, 0, 0)
	t.mu.Unlock()
	if e != nil {
		returned := false
		defer func() {
			if !returned { // the observer has panicked: the caller never gets the handle
				h.Unlock()
			}
		}()
		e(context.Background())
		returned = true
	}
	return h, nil
}

// Unlock releases the grant at the first call and reports true then. Every further
// call, by any copy, does nothing and reports false. So does a call after the grant
// was broken.
func (h Handle) Unlock() bool {
	if h.claim == nil {
		return false
	}
	t := h.claim.tree
	t.mu.Lock()
	// A claim that is used again has another generation, so a stale handle does
	// not release it.
	if h.claim.generation != h.generation {
		t.mu.Unlock()
		return false
	}
	after := t.release(h.claim)
	t.mu.Unlock()
	after.run(context.Background())
	return true
}

// Token returns the fencing token of the grant, and 0 after its end.
func (h Handle) Token() Token {
	if h.claim == nil {
		return 0
	}
	t := h.claim.tree
	t.mu.Lock()
	defer t.mu.Unlock()
	if h.claim.generation != h.generation {
		return 0
	}
	return h.claim.token
}

// spareClaim returns a claim for Try, a used one if there is one.
func (t *Tree) spareClaim() *claim {
	if last := len(t.spare) - 1; last >= 0 {
		c := t.spare[last]
		t.spare = t.spare[:last]
		return c
	}
	c := &claim{tree: t}
	c.one[0].claim = c
	c.entries = c.one[:]
	return c
}

// recycle ends the handles of a released claim of Try and keeps the claim for
// another Try.
func (t *Tree) recycle(c *claim) {
	c.generation++
	c.cause = nil
	if len(t.spare) < maxSpare {
		t.spare = append(t.spare, c)
	}
}
