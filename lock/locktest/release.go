package locktest

import (
	"errors"
	"sync/atomic"

	"github.com/interlock-go/interlock/lock"
)

func releaseDemands() []demand {
	return []demand{
		{
			name: "G4_release/twice_frees_nobody_else", run: twice,
			says: "A second Unlock is no error and does nothing, also while somebody else holds the same by now: X, IX or a list.",
		},
		{
			name: "G4_release/frees_exactly_what_it_took", run: exactly,
			says: "Unlock frees its own grant and no other, also if that is of the same owner, at the same node or below it.",
		},
		{
			name: "G4_release/from_any_goroutine", run: anyGoroutine, crowd: true,
			says: "Any goroutine may unlock, several may at once, and it is released once.",
		},
		{
			name: "G4_release/stale_handles_do_nothing", run: stale,
			says: "A handle whose grant was released says ErrNotHeld, cannot be converted, and covers nothing; its token and requests stay readable.",
		},
	}
}

func twice(t *trial) {
	for _, m := range []lock.Mode{lock.X, lock.IX, lock.S} {
		for _, rs := range [][]lock.Request{{at(m, "/")}, {at(m, "/a/b")}, {at(m, "/a"), at(m, "/c")}} {
			first := t.take("first", rs...)
			t.unlock(first)
			second := t.take("second", rs...)
			third := second
			if m != lock.X {
				third = t.take("third", rs...)
			}
			before := t.snapshot()
			for range 3 {
				t.unlock(first)
			}
			t.unchanged("a second Unlock", before)
			t.refused("stranger", at(lock.X, "/"))
			t.refused("stranger", at(lock.X, rs[0].Path.String()))
			t.unlock(second)
			t.unlock(second)
			if m != lock.X {
				t.refused("stranger", at(lock.X, rs[0].Path.String()))
			}
			t.unlock(third)
			t.unlock(first)
			t.idle("all was unlocked")
		}
	}
}

func exactly(t *trial) {
	deploy := t.take("deploy", at(lock.X, "/a/b"))
	other := t.take("deploy", at(lock.X, "/a/c"))
	above := t.take("deploy", at(lock.IX, "/a"))
	beside := t.take("deploy", at(lock.IX, "/a"), at(lock.X, "/ab"))
	t.unlock(above)
	t.refused("teardown", at(lock.X, "/"))
	t.refused("other", at(lock.X, "/ab"))
	t.refused("other", at(lock.S, "/a/b"))
	t.unlock(other)
	t.refused("other", at(lock.S, "/a/b/x"))
	t.unlock(beside)
	t.refused("other", at(lock.X, "/a/b"))
	t.unlock(t.take("other", at(lock.X, "/ab"), at(lock.X, "/a/c")))
	t.unlock(deploy)
	t.unlock(t.take("teardown", at(lock.X, "/")))
	t.idle("all was unlocked")
}

func anyGoroutine(t *trial) {
	for range t.attempts {
		h := t.take("first", at(lock.X, "/a"))
		var next atomic.Pointer[lock.Held]
		together(8, func(i int) {
			if err := h.Unlock(t.Context()); err != nil {
				t.Errorf("Unlock from several goroutines: %v", err)
			}
			// It is free now, and stays with whoever takes it, though the
			// others may still be unlocking.
			held, err := t.l.TryLock(t.Context(), at(lock.X, "/a"), by("next"))
			switch {
			case err == nil && !next.CompareAndSwap(nil, held):
				t.Errorf("X at /a is granted twice while a released handle is unlocked")
			case err != nil && !errors.Is(err, lock.ErrConflict):
				t.Errorf("TryLock: %v", err)
			}
		})
		if next.Load() == nil {
			t.Fatal("it was unlocked, and nobody could take it")
		}
		t.refused("stranger", at(lock.X, "/a"))
		t.unlock(next.Load())
		t.idle("all was unlocked")
	}
}

func stale(t *trial) {
	h := t.take("holder", at(lock.X, "/a"))
	token := h.Token()
	if !h.Covers(lock.MustParse("/a/b"), lock.X) {
		t.Error("X at /a does not cover X at /a/b")
	}
	lost := h.Lost()
	t.unlock(h)
	second := t.take("second", at(lock.S, "/a"))
	for _, err := range []error{h.Check(), h.Upgrade(t.Context(), lock.X), h.Downgrade(t.Context(), lock.IS)} {
		if !errors.Is(err, lock.ErrNotHeld) {
			t.Errorf("a handle that was unlocked is to say ErrNotHeld: %v", err)
		}
	}
	if h.Covers(lock.MustParse("/a"), lock.IS) {
		t.Error("a handle that was unlocked covers its path")
	}
	if h.Token() != token || len(h.Requests()) != 1 || h.Requests()[0] != at(lock.X, "/a") {
		t.Errorf("a handle that was unlocked has token %d and requests %s, it had %d", h.Token(), h.Requests(), token)
	}
	select {
	case <-lost:
		t.Error("Unlock closes Lost")
	default:
	}
	t.unlock(t.take("third", at(lock.S, "/a")))
	t.refused("third", at(lock.X, "/a"))
	t.unlock(second)
	t.idle("all was unlocked")
}
