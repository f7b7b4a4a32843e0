package locktest

import (
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

func listDemands() []demand {
	return []demand{
		{
			name: "G10_lists_are_atomic/all_or_none", run: allOrNone,
			says: "A list is granted as a whole or not at all, counts once, and is released at once; while it waits it holds nothing.",
		},
		{
			name: "G10_lists_are_atomic/in_any_order", run: listOrder,
			says: "The order of a list and what it has twice make no difference; members never conflict with each other, and those for one node are joined.",
		},
		{
			name: "G10_lists_are_atomic/lists_do_not_deadlock", run: noDeadlock, crowd: true,
			says: "Goroutines that wait for overlapping lists in different orders all get them, one after the other.",
		},
	}
}

func allOrNone(t *trial) {
	holder := t.take("holder", at(lock.X, "/b"))
	conflict := t.refused("list", at(lock.X, "/a"), at(lock.X, "/b"))
	t.names("a list is refused", conflict.Holders, conflict.More, t.shown(holder, by("holder"), at(lock.X, "/b")))
	t.unlock(t.take("other", at(lock.X, "/a")))

	list := t.waits("list", at(lock.X, "/a"), at(lock.X, "/b"))
	s := t.snapshot()
	t.names("a waiting list", s.Holders, false, t.shown(holder, by("holder"), at(lock.X, "/b")),
		t.shown(nil, by("list"), at(lock.X, "/a")), t.shown(nil, by("list"), at(lock.X, "/b")))
	if s.Held != 1 || s.Waiting != 1 {
		t.Errorf("beside a grant a list of two waits: %d are held and %d wait", s.Held, s.Waiting)
	}
	t.unlock(holder)
	h := t.granted(list)
	if s := t.snapshot(); s.Held != 1 || s.Waiting != 0 || len(s.Holders) != 2 {
		t.Errorf("a list of two is held: %d are held, %d wait: %v", s.Held, s.Waiting, s.Holders)
	}
	t.refused("stranger", at(lock.S, "/a"))
	t.refused("stranger", at(lock.S, "/b/c"))
	t.unlock(h)
	t.unlock(t.take("stranger", at(lock.X, "/a"), at(lock.X, "/b")))
	t.idle("all was unlocked")
}

func listOrder(t *trial) {
	list := []lock.Request{
		at(lock.IX, "/c"), at(lock.X, "/a/b"), at(lock.S, "/a"), at(lock.X, "/a/b"), at(lock.S, "/c"), at(lock.IS, "/a/b"), at(lock.X, "/ab"),
	}
	want := []lock.Request{at(lock.S, "/a"), at(lock.X, "/a/b"), at(lock.X, "/ab"), at(lock.SIX, "/c")}
	for range list {
		list = append(list[1:], list[0])
		given := slices.Clone(list)
		h, err := t.l.TryLockAll(t.Context(), given, &lock.Options{ID: "list", Owner: "list"})
		if err != nil {
			t.Fatalf("a list whose members would conflict: %v", err)
		}
		if got := h.Requests(); !slices.Equal(got, want) {
			t.Errorf("%s is held as %s, not %s", list, got, want)
		}
		if !slices.Equal(given, list) {
			t.Errorf("the caller's list is changed to %s", given)
		}
		backwards := slices.Clone(list)
		slices.Reverse(backwards)
		again, err := t.asks(t.Context(), true, backwards, &lock.Options{ID: "list", Owner: "list"})
		if err != nil || again.Token() != h.Token() {
			t.Fatalf("the same list in another order, under the same id: %v", err)
		}
		t.unlock(t.take("reader", at(lock.IS, "/a/c"), at(lock.IS, "/c")))
		t.refused("reader", at(lock.S, "/c"))
		t.unlock(h)
		t.idle("the list was unlocked")
	}
	for _, one := range [][]lock.Request{{at(lock.X, "/a")}, {at(lock.X, "/a"), at(lock.S, "/a")}} {
		h, err := t.l.TryLockAll(t.Context(), one, &lock.Options{ID: "one"})
		if err != nil {
			t.Fatalf("a list of one: %v", err)
		}
		again, err := t.l.TryLock(t.Context(), one[0], &lock.Options{ID: "one"})
		if err != nil || again.Token() != h.Token() {
			t.Fatalf("a list of one, repeated as a request: %v", err)
		}
		t.unlock(again)
	}
	t.idle("all was unlocked")
}

func noDeadlock(t *trial) {
	b := table{known: newRules(), held: map[*lock.Held][]lock.Request{}}
	ctx := t.bounded()
	together(8, func(i int) {
		rs := []lock.Request{at(lock.X, "/a"), at(lock.X, "/b"), at(lock.X, "/c/d")}
		rs = append(rs[i%3:], rs[:i%3]...)
		if i%2 == 1 {
			slices.Reverse(rs)
		}
		rs = rs[:2]
		for range t.attempts {
			h, err := t.l.LockAll(ctx, rs, by(fmt.Sprint("goroutine ", i)))
			if err != nil {
				t.Errorf("LockAll: %v", err)
				return
			}
			b.enter(h, rs)
			b.leave(h)
			if err := h.Unlock(t.Context()); err != nil {
				t.Errorf("Unlock: %v", err)
			}
		}
	})
	if b.fault != "" {
		t.Fatal(b.fault)
	}
	t.idle("all was unlocked")
}

func idDemands() []demand {
	return []demand{
		{
			name: "IDs/repeated_is_the_same_grant", run: repeated,
			says: "The same id with the same requests is the same grant with the same token, by a try, a wait or a list; the first release ends it for all handles, and the id is free again.",
		},
		{
			name: "IDs/other_requests_are_refused", run: otherRequests,
			says: "The same id with other requests is ErrIDInUse, with the names of what has it, and changes nothing, also where the requests would be free.",
		},
		{
			name: "IDs/a_waiting_id", run: waitingID,
			says: "An id that waits is refused to a try, with the names of who is in its way; it has its place still.",
		},
		{
			name: "IDs/one_call_of_several_is_cancelled", run: oneCancelled, crowd: true,
			says: "Where several calls wait under one id, the end of the context of one does not end the wait, or the grant, of another.",
		},
		{
			name: "IDs/of_concurrent_callers", run: concurrentIDs, crowd: true,
			says: "Of goroutines that repeat one id all get the one grant.",
		},
	}
}

func repeated(t *trial) {
	o := &lock.Options{ID: "deploy-42", Owner: "deploy"}
	for _, rs := range [][]lock.Request{{at(lock.X, "/a")}, {at(lock.X, "/a"), at(lock.S, "/b")}} {
		first := t.takeAs(o, rs...)
		before := t.snapshot()
		second := t.takeAs(o, rs...)
		third := t.granted(t.begin(t.Context(), t.l, rs, o))
		for _, h := range []*lock.Held{second, third} {
			if h.Token() != first.Token() {
				t.Fatalf("an id repeated: token %d, which was %d", h.Token(), first.Token())
			}
		}
		t.unchanged("a repeated id", before)
		t.unlock(second)
		t.idle("the first release")
		for _, h := range []*lock.Held{first, second, third} {
			if err := h.Check(); !errors.Is(err, lock.ErrNotHeld) {
				t.Errorf("after the first release a handle says: %v", err)
			}
		}
		fourth := t.takeAs(o, at(lock.X, "/elsewhere"))
		t.unlock(first)
		t.unlock(third)
		t.refused("stranger", at(lock.S, "/elsewhere"))
		t.unlock(fourth)
		t.idle("all was unlocked")
	}
	a, b := t.takeAs(&lock.Options{ID: "a"}, at(lock.S, "/a")), t.takeAs(&lock.Options{ID: "b"}, at(lock.S, "/a"))
	if a.Token() == b.Token() {
		t.Error("two ids have one grant")
	}
	c, d := t.take("c", at(lock.S, "/c")), t.take("c", at(lock.S, "/c"))
	if c.Token() == d.Token() {
		t.Error("no id is taken for one")
	}
}

func otherRequests(t *trial) {
	o := &lock.Options{ID: "deploy-42", Owner: "deploy"}
	h := t.takeAs(o, at(lock.X, "/a"), at(lock.X, "/b"))
	before := t.snapshot()
	for _, rs := range [][]lock.Request{
		{at(lock.X, "/c")}, {at(lock.X, "/a")}, {at(lock.X, "/a"), at(lock.S, "/b")}, {at(lock.X, "/a"), at(lock.X, "/b"), at(lock.X, "/c")}, {at(lock.X, "/a/b")},
	} {
		for _, wait := range []bool{false, true} {
			got, err := t.asks(t.Context(), wait, rs, o)
			conflict := t.conflict(fmt.Sprintf("%s under an id in use", rs), got, err, lock.ErrIDInUse)
			t.names("an id in use", conflict.Holders, conflict.More,
				sameOwner(t.shown(h, o, at(lock.X, "/a"))), sameOwner(t.shown(h, o, at(lock.X, "/b"))))
			t.unchanged("an id in use", before)
		}
	}
	t.unlock(h)
	t.unlock(t.takeAs(o, at(lock.X, "/c")))
	t.idle("all was unlocked")
}

func sameOwner(h lock.Holder) lock.Holder {
	h.Mine = true
	return h
}

func waitingID(t *trial) {
	holder := t.take("holder", at(lock.X, "/a"))
	o := &lock.Options{ID: "deploy-42", Owner: "deploy"}
	waiting := t.waitsAs(o, at(lock.X, "/a/b"))
	behind := t.waits("behind", at(lock.X, "/a/b/c"))
	before := t.snapshot()
	conflict := t.refusedAs(o, at(lock.X, "/a/b"))
	t.names("a try with an id that waits", conflict.Holders, conflict.More, t.shown(holder, by("holder"), at(lock.X, "/a")))
	h, err := t.l.TryLock(t.Context(), at(lock.X, "/free"), o)
	t.conflict("other requests under an id that waits", h, err, lock.ErrIDInUse)
	t.unchanged("tries with an id that waits", before)
	t.unlock(holder)
	h = t.granted(waiting)
	t.stillWaits(behind)
	if again := t.takeAs(o, at(lock.X, "/a/b")); again.Token() != h.Token() {
		t.Errorf("an id that has waited, repeated: token %d, which was %d", again.Token(), h.Token())
	}
	t.unlock(h)
	t.unlock(t.granted(behind))
	t.idle("all was unlocked")
}

func oneCancelled(t *trial) {
	rs := []lock.Request{at(lock.X, "/a")}
	for round := range t.attempts {
		h := t.take("holder", rs...)
		o := &lock.Options{ID: "deploy", Owner: "deploy"}
		leaving := []*call{t.waitsAs(o, rs...)}
		// Nothing tells whether these have joined the first; the one that stays
		// is to be granted in either case.
		stays := t.begin(t.Context(), t.l, rs, o)
		for range 3 {
			leaving = append(leaving, t.begin(t.Context(), t.l, rs, o))
		}
		for range 10 {
			runtime.Gosched()
		}
		meet(round, func() {
			for _, c := range leaving {
				c.cancel(errGivenUp)
			}
		}, func() { t.unlockAside(h) })
		for _, c := range leaving {
			if fault := t.back(c); fault != "" {
				t.Fatal(fault)
			}
		}
		held := t.granted(stays)
		t.refused("stranger", rs...)
		for _, c := range leaving {
			if c.err == nil && c.held.Token() != held.Token() {
				t.Fatalf("one id has tokens %d and %d", c.held.Token(), held.Token())
			}
		}
		t.unlock(held)
		t.idle("all was unlocked")
		t.calls = nil
	}
}

func concurrentIDs(t *trial) {
	ctx := t.bounded()
	for i := range t.attempts {
		o := &lock.Options{ID: fmt.Sprint("deploy-", i)}
		var got [8]*lock.Held
		together(len(got), func(i int) {
			ask := waitFor
			if i%2 == 0 {
				ask = tryFor
			}
			var err error
			if got[i], err = ask(ctx, t.l, []lock.Request{at(lock.X, "/a")}, o); err != nil {
				t.Errorf("an id repeated at once, with nobody in the way: %v", err)
			}
		})
		if t.Failed() {
			return
		}
		for _, h := range got {
			if h.Token() != got[0].Token() {
				t.Fatalf("one id has tokens %d and %d", h.Token(), got[0].Token())
			}
		}
		t.unlock(got[0])
		t.idle("the first release")
	}
}
