package locktest

import (
	"fmt"

	"github.com/interlock-go/interlock/lock"
)

func orderDemands() []demand {
	return []demand{
		{
			name: "G5_order_of_arrival/waiters_are_granted_in_order", run: inOrder,
			says: "Waiters that conflict are granted one after the other, in the order of their arrival.",
		},
		{
			name: "G5_order_of_arrival/nobody_is_overtaken", run: notOvertaken,
			says: "A try, a wait and an upgrade that conflict with somebody who waits do not go before him, though they conflict with no holder.",
		},
		{
			name: "G5_order_of_arrival/waiters_block_only_what_conflicts", run: besideAQueue,
			says: "What conflicts with nobody is granted at once, however long the queue.",
		},
		{
			name: "G5_order_of_arrival/one_release_grants_all_that_may", run: grantsAll,
			says: "A release grants every waiter that nobody earlier is in the way of, and no other.",
		},
		{
			name: "G5_order_of_arrival/nobody_starves", run: nobodyStarves,
			says: "Readers that come and overlap for ever do not keep a writer waiting.",
		},
	}
}

func inOrder(t *trial) {
	h := t.take("0", at(lock.X, "/p"))
	paths := []string{"/p", "/", "/p/q", "/", "/p", "/p/q"} // each conflicts with the one before it
	var calls []*call
	for i, path := range paths {
		calls = append(calls, t.waits(fmt.Sprint(i+1), at(lock.X, path)))
	}
	for i, c := range calls {
		t.stillWaits(calls[i:]...)
		t.unlock(h)
		h = t.granted(c)
	}
	t.unlock(h)
	t.idle("all was unlocked")
}

func notOvertaken(t *trial) {
	holder := t.take("deploy", at(lock.X, "/a"))
	reader := t.take("reader", at(lock.S, "/r"))
	teardown := t.waits("teardown", at(lock.X, "/"))
	for _, r := range []lock.Request{at(lock.X, "/b"), at(lock.IS, "/b/c"), at(lock.IS, "/")} {
		conflict := t.refused("stranger", r)
		if len(conflict.Holders) != 1 || conflict.Holders[0].Owner != "teardown" || !conflict.Holders[0].Waiting {
			t.Fatalf("%s is to be refused for the teardown that waits: %v", r, conflict)
		}
	}
	t.refused("stranger", at(lock.X, "/b"), at(lock.X, "/c"))
	t.conflict("an upgrade past somebody who waits", nil, reader.Upgrade(t.Context(), lock.X), lock.ErrConflict)
	later := t.waits("later", at(lock.S, "/b"))
	t.unlock(reader)
	t.stillWaits(teardown, later)
	t.unlock(holder)
	h := t.granted(teardown)
	t.stillWaits(later)
	t.unlock(h)
	t.unlock(t.granted(later))
	t.idle("all was unlocked")
}

func besideAQueue(t *trial) {
	holder := t.take("holder", at(lock.X, "/a/b"))
	queue := []*call{
		t.waits("1", at(lock.X, "/a/b")), t.waits("2", at(lock.S, "/a/b/c")), t.waits("3", at(lock.X, "/a")),
	}
	t.unlock(t.take("beside", at(lock.X, "/ab")))
	t.unlock(t.take("intends", at(lock.IX, "/")))
	beside := t.begin(t.Context(), t.l, []lock.Request{at(lock.X, "/c"), at(lock.IS, "/")}, by("4"))
	t.unlock(t.granted(beside))
	t.stillWaits(queue...)
	t.unlock(holder)
	for _, c := range queue {
		t.unlock(t.granted(c))
	}
	t.idle("all was unlocked")
}

func grantsAll(t *trial) {
	all := t.take("all", at(lock.X, "/"))
	a, b := t.waits("a", at(lock.X, "/a")), t.waits("b", at(lock.S, "/b"))
	below := t.waits("below a", at(lock.X, "/a/c"))
	alsoB := t.waits("also b", at(lock.S, "/b/d"))
	list := t.waits("list", at(lock.X, "/e"), at(lock.X, "/b/d"))
	behind := t.waits("behind the list", at(lock.X, "/e"))
	c := t.waits("c", at(lock.IX, "/c"), at(lock.IS, "/b"))
	t.unlock(all)
	heldA, heldB, heldAlsoB, heldC := t.granted(a), t.granted(b), t.granted(alsoB), t.granted(c)
	t.stillWaits(below, list, behind)
	t.unlock(heldAlsoB)
	t.stillWaits(list, behind)
	t.unlock(heldB)
	heldList := t.granted(list)
	t.stillWaits(below, behind)
	t.unlock(heldA)
	t.unlock(t.granted(below))
	t.unlock(heldList)
	t.unlock(t.granted(behind))
	t.unlock(heldC)
	t.idle("all was unlocked")
}

func nobodyStarves(t *trial) {
	reader := t.take("reader 0", at(lock.S, "/a"))
	writer := t.waits("writer", at(lock.X, "/a"))
	var later []*call
	for i := range 10 { // each would overlap the one before it
		later = append(later, t.waits(fmt.Sprint("reader ", i+1), at(lock.S, "/a")))
		t.refused("stranger", at(lock.IS, "/a"))
	}
	t.unlock(reader)
	h := t.granted(writer)
	t.stillWaits(later...)
	t.unlock(h)
	for _, c := range later {
		t.granted(c) // all at once
	}
	for _, c := range later {
		t.unlock(c.held)
	}
	t.idle("all was unlocked")
}
