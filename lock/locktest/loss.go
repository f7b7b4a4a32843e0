package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/lock"
)

func lossDemands() []demand {
	return []demand{
		{
			name: "G8_loss_is_told_first/before_anybody_else_is_granted", run: toldFirst,
			says: "When somebody gets what was broken, its holder has been told: Check fails with ErrLost, Lost is closed, and the context has ended.",
		},
		{
			name: "G8_loss_is_told_first/among_concurrent_callers", run: toldFirstConcurrently, crowd: true,
			says: "So it is where waiters and tries race with Break.",
		},
		{
			name: "G8_loss_is_told_first/a_lost_grant_is_over", run: lostIsOver,
			says: "A broken grant says ErrLost with token and reason from then on; Unlock says so too and frees nobody else; it cannot be converted or taken away again.",
		},
		{
			name: "G8_loss_is_told_first/revoked_is_not_broken", run: revoked,
			says: "Revoke asks: Check says ErrRevoked, Lost is closed and contexts end, but it is held until it is unlocked, which is no error then.",
		},
		{
			name: "G8_loss_is_told_first/only_what_is_held", run: onlyHeld,
			says: "Break and Revoke of a token that nobody holds, or holds no more, is ErrNotHeld and takes nothing away.",
		},
		{
			name: "G9_late_writes_are_refused/by_a_fence", run: fenced,
			says: "What a holder writes after it lost its grant is refused by a Fence that the next holder has passed, and what the next writes is not, upgrades included.",
		},
	}
}

// mustKnow says what the holder of a broken grant has not been told.
func mustKnow(h *lock.Held, work context.Context) string {
	if err := h.Check(); !errors.Is(err, lock.ErrLost) {
		return fmt.Sprintf("Check is to be ErrLost: %v", err)
	}
	select {
	case <-h.Lost():
	default:
		return "Lost is not closed"
	}
	if err := context.Cause(work); !errors.Is(err, lock.ErrLost) {
		return fmt.Sprintf("the cause of the context is to be ErrLost: %v", err)
	}
	return ""
}

func toldFirst(t *trial) {
	for range t.attempts {
		h := t.take("holder", at(lock.X, "/a"))
		lost := h.Lost()
		work, cancel := h.Context(t.Context())
		defer cancel()
		var said string
		// It looks in the goroutine that is granted: nothing may come between.
		next := t.run("next", func(ctx context.Context) {
			next, err := t.l.Lock(ctx, at(lock.X, "/"), by("next"))
			if err != nil {
				said = fmt.Sprintf("the waiter of a broken grant: %v", err)
				return
			}
			said = mustKnow(h, work)
			select {
			case <-lost:
			default:
				said += "Lost, asked for before, is not closed"
			}
			_ = next.Unlock(ctx)
		})
		if fault := t.queued(t.Context(), t.l, next); fault != "" {
			t.Fatal(fault)
		}
		if err := t.l.Break(t.Context(), h.Token(), "an operator"); err != nil {
			t.Fatalf("Break: %v", err)
		}
		if fault := t.back(next); fault != "" {
			t.Fatal(fault)
		}
		if said != "" {
			t.Fatalf("when the next has the grant: %s", said)
		}
	}
}

func toldFirstConcurrently(t *trial) {
	var mu sync.Mutex
	var said string
	ctx := t.bounded()
	for range t.attempts {
		h := t.take("holder", at(lock.X, "/a"))
		work, cancel := h.Context(t.Context())
		check := func() {
			mu.Lock()
			defer mu.Unlock()
			if said == "" {
				said = mustKnow(h, work)
			}
		}
		together(4, func(i int) {
			var next *lock.Held
			var err error
			switch i {
			case 0:
				if err := t.l.Break(t.Context(), h.Token(), "an operator"); err != nil {
					t.Errorf("Break: %v", err)
				}
				return
			case 1, 2:
				next, err = t.l.Lock(ctx, at(lock.X, "/"), by("next"))
			default:
				for next == nil && (err == nil || errors.Is(err, lock.ErrConflict)) {
					next, err = t.l.TryLock(ctx, at(lock.IS, "/a/b"), by("try"))
				}
			}
			if err != nil {
				t.Errorf("who comes after a broken grant: %v", err)
				return
			}
			check()
			_ = next.Unlock(t.Context())
		})
		cancel()
		if said != "" {
			t.Fatalf("when the next has the grant: %s", said)
		}
	}
	t.idle("all was broken or unlocked")
}

// toldOf demands that an error says what became of a grant.
func (t *trial) toldOf(what string, err error, token lock.Token, reason string, sentinel error) {
	t.Helper()
	lost, ok := errors.AsType[*lock.LostError](err)
	if !ok || !errors.Is(err, sentinel) || lost.Token != token || lost.Reason != reason {
		t.Errorf("%s is to be a *LostError that matches %q, of token %d, for %q: %v", what, sentinel, token, reason, err)
	}
}

func lostIsOver(t *trial) {
	h := t.take("holder", at(lock.X, "/a"), at(lock.S, "/b"))
	token := h.Token()
	waiting := t.waits("next", at(lock.X, "/a"))
	if err := t.l.Break(t.Context(), token, "out of reach"); err != nil {
		t.Fatalf("Break: %v", err)
	}
	next := t.granted(waiting)
	before := t.snapshot()
	for range 2 {
		for what, err := range map[string]error{
			"Check": h.Check(), "Unlock": h.Unlock(t.Context()),
			"Upgrade": h.Upgrade(t.Context(), lock.X), "Downgrade": h.Downgrade(t.Context(), lock.IS),
		} {
			t.toldOf(what+" of a broken grant", err, token, "out of reach", lock.ErrLost)
		}
		if h.Covers(lock.MustParse("/a"), lock.IS) || h.Token() != token {
			t.Errorf("a broken grant covers its path, or has token %d, which was %d", h.Token(), token)
		}
		for _, again := range []error{t.l.Break(t.Context(), token, ""), t.l.Revoke(t.Context(), token, "")} {
			if !errors.Is(again, lock.ErrNotHeld) {
				t.Errorf("taking away what was broken is to be ErrNotHeld: %v", again)
			}
		}
	}
	t.unchanged("calls of a broken grant", before)
	t.refused("stranger", at(lock.IS, "/a"))
	t.unlock(next)
	t.unlock(t.take("stranger", at(lock.X, "/")))
	t.idle("all was broken or unlocked")
}

func revoked(t *trial) {
	h := t.take("holder", at(lock.X, "/a"))
	lost := h.Lost()
	work, cancel := h.Context(t.Context())
	defer cancel()
	waiting := t.waits("next", at(lock.S, "/a/b"))
	for range 2 { // the second tells nobody anything new
		if err := t.l.Revoke(t.Context(), h.Token(), "please"); err != nil {
			t.Fatalf("Revoke: %v", err)
		}
	}
	t.toldOf("Check of a revoked grant", h.Check(), h.Token(), "please", lock.ErrRevoked)
	t.toldOf("the cause of the context of a revoked grant", context.Cause(work), h.Token(), "please", lock.ErrRevoked)
	select {
	case <-lost:
	default:
		t.Error("Revoke does not close Lost")
	}
	t.stillWaits(waiting)
	t.refused("stranger", at(lock.IS, "/a"))
	t.unlock(h)
	t.unlock(t.granted(waiting))
	if err := h.Check(); !errors.Is(err, lock.ErrNotHeld) {
		t.Errorf("Check of a grant that was revoked, then unlocked, is to be ErrNotHeld: %v", err)
	}

	h = t.take("holder", at(lock.X, "/a"))
	if err := errors.Join(t.l.Revoke(t.Context(), h.Token(), "please"), t.l.Break(t.Context(), h.Token(), "now")); err != nil {
		t.Fatalf("Revoke, then Break: %v", err)
	}
	t.toldOf("Check of a grant that was revoked, then broken,", h.Check(), h.Token(), "now", lock.ErrLost)
	t.idle("all was broken or unlocked")
}

func onlyHeld(t *trial) {
	a := t.take("a", at(lock.S, "/a"))
	raised := t.take("raised", at(lock.S, "/r"))
	gone := t.take("gone", at(lock.X, "/gone"))
	before := raised.Token()
	if err := raised.Upgrade(t.Context(), lock.X); err != nil {
		t.Fatalf("Upgrade: %v", err)
	}
	t.unlock(gone)
	waiting := t.waits("waiting", at(lock.X, "/a"))
	snapshot := t.snapshot()
	for what, token := range map[string]lock.Token{
		"0": 0, "a grant that was unlocked": gone.Token(), "a grant before its upgrade": before, "the future": snapshot.LastToken + 1000,
	} {
		for _, err := range []error{t.l.Break(t.Context(), token, ""), t.l.Revoke(t.Context(), token, "")} {
			if !errors.Is(err, lock.ErrNotHeld) {
				t.Errorf("taking away by the token of %s is to be ErrNotHeld: %v", what, err)
			}
		}
	}
	t.unchanged("taking away what nobody holds", snapshot)
	if err := errors.Join(a.Check(), raised.Check()); err != nil {
		t.Errorf("other grants were taken away: %v", err)
	}
	t.stillWaits(waiting)
	t.unlock(a)
	t.unlock(raised)
	t.unlock(t.granted(waiting))
}

func fenced(t *trial) {
	var fence lock.Fence
	write := func(who string, h *lock.Held, pass bool) {
		t.Helper()
		if err := fence.Admit(h.Token()); (err == nil) != pass || err != nil && !errors.Is(err, lock.ErrStaleToken) {
			t.Errorf("a write by %s, with token %d, is to pass: %t: %v", who, h.Token(), pass, err)
		}
	}
	for range 5 {
		first := t.take("first", at(lock.X, "/a"))
		write("the holder", first, true)
		waiting := t.waits("second", at(lock.X, "/a/b"))
		if err := t.l.Break(t.Context(), first.Token(), "out of reach"); err != nil {
			t.Fatalf("Break: %v", err)
		}
		second := t.granted(waiting)
		write("the next holder", second, true)
		write("the lost holder", first, false)
		t.unlock(second)

		a, b := t.take("a", at(lock.S, "/a")), t.take("b", at(lock.S, "/a"))
		write("the second reader", b, true)
		t.unlock(b)
		if err := a.Upgrade(t.Context(), lock.X); err != nil {
			t.Fatalf("Upgrade: %v", err)
		}
		write("the first reader after its upgrade", a, true)
		write("the second reader after it left", b, false)
		t.unlock(a)
	}
}
