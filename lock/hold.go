package lock

// Hold is a grant of [Tree.Try]: a value of two words, for code that locks and
// unlocks too often for an allocation each. It has no owner, cannot be
// revoked, only broken, and its holder is not told.
//
// The zero Hold holds nothing. A Hold may be copied and used from any
// goroutine; all copies are the same grant.
type Hold struct {
	claim      *claim
	generation uint64
}

// Try grants the request at once or refuses it, like [Tree.TryLock], without an
// allocation and without saying who is in the way.
//
// Errors: [ErrConflict], [ErrInvalid]. After an error nothing is held.
func (t *Tree) Try(p Path, m Mode) (Hold, error) {
	if !p.Valid() || !m.Valid() {
		return Hold{}, Request{p, m}.Validate()
	}
	key := p.key()
	t.mu.Lock()
	at, conflict := t.trie.find(key, m)
	if conflict {
		t.mu.Unlock()
		if t.config.Observer != nil {
			t.tellRefusedTry(Request{p, m})
		}
		return Hold{}, ErrConflict
	}
	c := t.spareClaim()
	t.arrival++
	c.arrival, c.since = t.arrival, t.clock()
	t.trie.insert(at, key, &c.one[0], m)
	t.grant(c)
	h := Hold{c, c.generation}
	if t.config.Observer == nil {
		t.mu.Unlock()
		return h, nil
	}
	event := t.granted(c, 0)
	t.mu.Unlock()
	t.deliver(event, h)
	return h, nil
}

// Unlock gives the grant back, once: every further call, by whichever copy,
// does nothing. It reports whether it was this call; false also if the grant
// was broken.
func (h Hold) Unlock() bool {
	if h.claim == nil {
		return false
	}
	t := h.claim.tree
	t.mu.Lock()
	// A claim that is used again has another generation: the stale handle does
	// not free its lock.
	if h.claim.generation != h.generation {
		t.mu.Unlock()
		return false
	}
	done := t.release(h.claim)
	t.mu.Unlock()
	if done.released != nil || len(done.ready) > 0 {
		t.finish(done)
	}
	return true
}

// Held reports whether the grant still holds.
func (h Hold) Held() bool { return h.Token() != 0 }

// Token returns the fencing token of the grant, and 0 when it has ended.
func (h Hold) Token() Token {
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

func (h Hold) unlock() { h.Unlock() }

func (t *Tree) spareClaim() *claim {
	c := t.spare
	if c == nil {
		c = &claim{tree: t}
		c.one[0].claim = c
		c.entries = c.one[:]
		return c
	}
	t.spare, t.spares, c.spare = c.spare, t.spares-1, nil
	return c
}

// recycle ends the handles of a released claim of Try and keeps it for another.
func (t *Tree) recycle(c *claim) {
	c.generation++
	c.cause = nil
	if t.spares < maxSpare {
		c.spare, t.spare, t.spares = t.spare, c, t.spares+1
	}
}
