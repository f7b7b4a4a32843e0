package locktest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/lock"
)

func contextDemands() []demand {
	return []demand{
		{
			name: "G11_contexts_bound_waits/ended_is_refused", run: endedRefused,
			says: "A call with a context that has ended returns an error that matches its error and its cause, and has no effect.",
		},
		{
			name: "G11_contexts_bound_waits/cancelled_waits_return", run: cancelledReturn,
			says: "A wait whose context is cancelled returns a *ConflictError that matches context.Canceled and the cause.",
		},
		{
			name: "G11_contexts_bound_waits/deadlines_end_waits", run: deadlines,
			says: "A wait whose deadline passes returns a *ConflictError that matches context.DeadlineExceeded.",
		},
		{
			name: "G11_contexts_bound_waits/release_does_not_depend_on_them", run: releaseAnyway,
			says: "Unlock with a context that has ended releases.",
		},
		{
			name: "G11_contexts_bound_waits/a_grant_outlives_its_context", run: outlives,
			says: "The end of the context of a call does not end the grant that it returned.",
		},
		{
			name: "G11_contexts_bound_waits/many_waits_at_once", run: manyWaits,
			says: "Hundreds of waits that are cancelled at once all return, and the others keep their places.",
		},
		{
			name: "G11_contexts_bound_waits/cancelled_as_it_is_granted", run: cancelledAsGranted, crowd: true,
			says: "Where the grant and the end of the context meet, the call returns one of the two, and after an error nothing is held.",
		},
	}
}

func endedRefused(t *trial) {
	h := t.take("holder", at(lock.S, "/a"))
	defer t.unlock(h)
	before, token := t.snapshot(), h.Token()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGivenUp)
	free, taken := []lock.Request{at(lock.X, "/free")}, []lock.Request{at(lock.X, "/a")}
	list := []lock.Request{at(lock.X, "/free"), at(lock.X, "/b")}
	calls := map[string]func() error{
		"Holders":   func() error { _, err := t.l.Holders(ctx, lock.Root(), lock.At); return err },
		"Snapshot":  func() error { _, err := t.l.Snapshot(ctx); return err },
		"Revoke":    func() error { return t.l.Revoke(ctx, token, "") },
		"Break":     func() error { return t.l.Break(ctx, token, "") },
		"Upgrade":   func() error { return h.Upgrade(ctx, lock.X) },
		"Downgrade": func() error { return h.Downgrade(ctx, lock.IS) },
	}
	for what, rs := range map[string][]lock.Request{"free": free, "taken": taken, "a list": list} {
		calls["a try, "+what] = func() error { _, err := t.asks(ctx, false, rs, nil); return err }
		calls["a wait, "+what] = func() error { _, err := t.asks(ctx, true, rs, nil); return err }
	}
	for what, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) || !errors.Is(err, errGivenUp) {
			t.Errorf("%s with a context that has ended is to be its error and its cause: %v", what, err)
		}
		t.unchanged(what+" with a context that has ended", before)
		if err := h.Check(); err != nil || h.Token() != token {
			t.Fatalf("%s with a context that has ended, and a holder has token %d: %v", what, h.Token(), err)
		}
	}
}

func cancelledReturn(t *trial) {
	h := t.take("holder", at(lock.X, "/a"))
	for _, rs := range [][]lock.Request{{at(lock.X, "/a")}, {at(lock.S, "/a/b"), at(lock.X, "/free")}} {
		conflict := t.givenUp(t.waits("waiting", rs...))
		if len(conflict.Holders) != 1 || conflict.Holders[0].Owner != "holder" {
			t.Errorf("a wait that was cancelled names %v, not the holder", conflict.Holders)
		}
	}
	t.unlock(h)
	t.idle("all was unlocked")
}

func deadlines(t *trial) {
	h := t.take("holder", at(lock.X, "/a"))
	// Short for a call that does I/O: it may then end before it waits.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	c := t.begin(ctx, t.l, []lock.Request{at(lock.X, "/a/b")}, by("waiting"))
	if t.bubble {
		time.Sleep(20 * time.Millisecond)
	}
	if fault := t.back(c); fault != "" {
		t.Fatalf("after its deadline: %s", fault)
	}
	if !errors.Is(c.err, context.DeadlineExceeded) || c.held != nil {
		t.Fatalf("a wait whose deadline has passed: %v", c.err)
	}
	if t.bubble { // it has waited: it knows for whom
		t.conflict("a wait whose deadline has passed", c.held, c.err, context.DeadlineExceeded)
	}
	t.unlock(h)
	t.unlock(t.take("next", at(lock.X, "/")))
	t.idle("all was unlocked")
}

func releaseAnyway(t *trial) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, rs := range [][]lock.Request{{at(lock.X, "/a")}, {at(lock.X, "/a"), at(lock.S, "/b")}} {
		h := t.take("holder", rs...)
		waiting := t.waits("next", at(lock.X, "/a/b"))
		// An engine may say that it could not wait for the answer.
		if err := h.Unlock(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Unlock with a context that has ended: %v", err)
		}
		t.unlock(t.granted(waiting))
		t.idle("Unlock with a context that has ended")
	}
}

func outlives(t *trial) {
	ctx, cancel := context.WithCancel(t.Context())
	a, err := t.l.TryLock(ctx, at(lock.X, "/a"), by("a"))
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	c, err := t.l.TryLock(ctx, at(lock.X, "/c"), by("c"))
	if err != nil {
		t.Fatalf("TryLock: %v", err)
	}
	waiting := t.begin(ctx, t.l, []lock.Request{at(lock.X, "/a/b")}, by("b"))
	if fault := t.queued(ctx, t.l, waiting); fault != "" {
		t.Fatal(fault)
	}
	t.unlock(a)
	b := t.granted(waiting)
	cancel()
	t.nothingMore()
	for _, h := range []*lock.Held{b, c} {
		if err := h.Check(); err != nil {
			t.Errorf("after the end of the context of its call a grant says: %v", err)
		}
		t.refused("stranger", at(lock.IS, h.Requests()[0].Path.String()))
		t.unlock(h)
	}
	t.idle("all was unlocked")
}

func manyWaits(t *trial) {
	h := t.take("holder", at(lock.X, "/a"))
	var stay, leaving []*call
	for i := range 200 {
		c := t.waits(fmt.Sprint("waiting ", i), at(lock.X, "/a"))
		if i%20 == 0 {
			stay = append(stay, c)
		} else {
			leaving = append(leaving, c)
		}
	}
	for _, c := range leaving {
		c.cancel(errGivenUp)
	}
	for _, c := range leaving {
		if fault := t.back(c); fault != "" {
			t.Fatalf("after its context was cancelled: %s", fault)
		}
		t.conflict("a cancelled wait", c.held, c.err, errGivenUp)
	}
	t.stillWaits(stay...)
	for i, c := range stay {
		t.unlock(h)
		h = t.granted(c)
		t.stillWaits(stay[i+1:]...)
	}
	t.unlock(h)
	t.idle("all was unlocked")
}

// meet does two things in one order, in the other, or at once: a goroutine that
// waits for both sees at times the one, at times the other, and at times both.
func meet(round int, a, b func()) {
	switch round % 3 {
	case 0:
		a()
		b()
	case 1:
		b()
		a()
	default:
		together(2, func(i int) { []func(){a, b}[i]() })
	}
}

func cancelledAsGranted(t *trial) {
	for round := range t.attempts {
		h := t.take("holder", at(lock.X, "/a"))
		waiting, behind := t.waits("waiting", at(lock.X, "/a")), t.waits("behind", at(lock.S, "/a"))
		meet(round, func() { waiting.cancel(errGivenUp) }, func() { t.unlockAside(h) })
		if fault := t.back(waiting); fault != "" {
			t.Fatal(fault)
		}
		switch {
		case waiting.err == nil:
			t.sound(waiting.held, waiting.rs)
			t.stillWaits(behind)
			t.unlock(waiting.held)
		case !errors.Is(waiting.err, errGivenUp) || waiting.held != nil:
			t.Fatalf("a wait that was cancelled as it was granted: %v", waiting.err)
		}
		t.unlock(t.granted(behind))
		t.idle("all was unlocked")
		t.calls = nil
	}
}
