package locktest

import (
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/lock"
)

func tokenDemands() []demand {
	return []demand{
		{
			name: "G7_tokens_grow/from_grant_to_grant", run: tokensGrow,
			says: "Of two grants that conflict the later has the greater token: after a release, a wait, a loss, and across nodes above and below.",
		},
		{
			name: "G7_tokens_grow/upgrades_are_new_grants", run: upgradeTokens,
			says: "An upgrade has a new token, above its own and those of all that was granted meanwhile; a downgrade keeps its token.",
		},
		{
			name: "G7_tokens_grow/among_concurrent_callers", run: concurrentTokens, crowd: true,
			says: "Where many goroutines wait for one node, each has a greater token than the one before.",
		},
		{
			name: "G7_tokens_grow/from_the_first_token", run: firstToken, needs: needFirstToken,
			setup: func(c *lock.Config) { c.FirstToken = 1 << 40 },
			says:  "No token is below FirstToken, so that the tokens go on after a restart.",
		},
	}
}

func tokensGrow(t *trial) {
	var last lock.Token
	next := func(h *lock.Held) *lock.Held {
		if h.Token() <= last {
			t.Fatalf("%s has token %d after a conflicting grant with token %d", h.Requests(), h.Token(), last)
		}
		last = h.Token()
		return h
	}
	for _, rs := range [][]lock.Request{
		{at(lock.X, "/a/b")},
		{at(lock.S, "/a")},
		{at(lock.X, "/")},
		{at(lock.X, "/a/b/c")},
		{at(lock.X, "/a/b"), at(lock.X, "/c")},
		{at(lock.IX, "/c")},
		{at(lock.X, "/")},
	} {
		h := next(t.take("first", rs...))
		c := t.waits("second", at(lock.X, "/"))
		t.unlock(h)
		h = next(t.granted(c))
		c = t.waits("third", rs...)
		if err := t.l.Break(t.Context(), h.Token(), "an operator"); err != nil {
			t.Fatalf("Break: %v", err)
		}
		t.unlock(next(t.granted(c)))
		t.idle("all was unlocked")
	}
}

func upgradeTokens(t *trial) {
	a, b := t.take("a", at(lock.S, "/p")), t.take("b", at(lock.S, "/p"))
	first, second := a.Token(), b.Token()
	t.unlock(b)
	if err := a.Upgrade(t.Context(), lock.X); err != nil {
		t.Fatalf("Upgrade with nobody in the way: %v", err)
	}
	raised := a.Token()
	if raised <= first || raised <= second {
		t.Fatalf("after an upgrade the token is %d, where it was %d, and a grant that it conflicts with had %d", raised, first, second)
	}
	if err := a.Downgrade(t.Context(), lock.IS); err != nil {
		t.Fatalf("Downgrade: %v", err)
	}
	if a.Token() != raised {
		t.Errorf("a downgrade changes the token from %d to %d", raised, a.Token())
	}
	if c := t.take("c", at(lock.IX, "/p")); c.Token() == raised {
		t.Errorf("two grants have token %d", raised)
	}
}

func concurrentTokens(t *trial) {
	var last atomic.Uint64
	ctx := t.bounded()
	together(8, func(i int) {
		for range t.attempts {
			h, err := t.l.Lock(ctx, at(lock.X, "/a"), by(fmt.Sprint("goroutine ", i)))
			if err != nil {
				t.Errorf("Lock: %v", err)
				return
			}
			if before := last.Swap(uint64(h.Token())); before >= uint64(h.Token()) {
				t.Errorf("token %d is granted after %d", h.Token(), before)
			}
			if err := h.Unlock(t.Context()); err != nil {
				t.Errorf("Unlock: %v", err)
			}
		}
	})
}

func firstToken(t *trial) {
	before := t.snapshot().LastToken
	a := t.take("a", at(lock.X, "/a"))
	b := t.take("b", at(lock.X, "/b"))
	if a.Token() < 1<<40 || b.Token() < 1<<40 || a.Token() == b.Token() {
		t.Errorf("where the first token is %d, tokens %d and %d are granted", lock.Token(1<<40), a.Token(), b.Token())
	}
	if before >= a.Token() || t.snapshot().LastToken < max(a.Token(), b.Token()) {
		t.Errorf("the last token was %d and is %d, tokens %d and %d are granted", before, t.snapshot().LastToken, a.Token(), b.Token())
	}
}
