package locktest

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lock"
)

func nameDemands() []demand {
	return []demand{
		{
			name: "G6_conflicts_have_names/all_with_details", run: allNamed,
			says: "A refusal names everyone in the way, in the order of arrival, with path, mode, id, owner, reason, token, since when, and whether it waits; and nobody else.",
		},
		{
			name: "G6_conflicts_have_names/mine", run: mine,
			says: "A holder in the way is marked as the caller's own if both have the same owner, and one that is not empty.",
		},
		{
			name: "G6_conflicts_have_names/waits_given_up", run: waitsGivenUp,
			says: "A wait that was given up names who was in the way then: what came before it, not what came after.",
		},
		{
			name: "G6_conflicts_have_names/upgrades", run: upgradesNamed,
			says: "A refused upgrade names everyone in the way, and not itself.",
		},
		{
			name: "G6_conflicts_have_names/up_to_a_limit", run: upToALimit, needs: needMaxHolders,
			setup: func(c *lock.Config) { c.MaxHolders = 3 },
			says:  "Beyond MaxHolders, a refusal names as many as that and says that there are more.",
		},
		{
			name: "G6_conflicts_have_names/holders_and_snapshot", run: asked,
			says: "Holders tells who holds or waits above, at and below a path, and Snapshot all of them, in the order of arrival, without asking for anything.",
		},
	}
}

func (t *trial) names(what string, got []lock.Holder, more bool, want ...lock.Holder) {
	t.Helper()
	if fault := differ(got, want, more); fault != "" {
		t.Fatalf("%s: %s", what, fault)
	}
}

func (t *trial) shown(h *lock.Held, o *lock.Options, r lock.Request) lock.Holder {
	c := claim{options: *o}
	if h == nil {
		c.waiting = true
	} else {
		c.token = h.Token()
	}
	return c.holder(r)
}

func allNamed(t *trial) {
	optionsOf := func(i int) *lock.Options {
		return &lock.Options{ID: fmt.Sprint("id ", i), Owner: fmt.Sprint("owner ", i), Reason: fmt.Sprint("reason ", i)}
	}
	rs := []lock.Request{at(lock.X, "/a/b/c"), at(lock.IX, "/a"), at(lock.S, "/z"), at(lock.IS, "/a/b"), at(lock.X, "/a/y")}
	var all []lock.Holder
	var held []*lock.Held
	for i, r := range rs {
		h := t.takeAs(optionsOf(i), r)
		held = append(held, h)
		all = append(all, t.shown(h, optionsOf(i), r))
	}
	waiting := t.waitsAs(optionsOf(5), at(lock.S, "/a/b"))
	all = append(all, t.shown(nil, optionsOf(5), at(lock.S, "/a/b")))

	for _, try := range []struct {
		rs  []lock.Request
		who []int
	}{
		{[]lock.Request{at(lock.X, "/")}, []int{0, 1, 2, 3, 4, 5}},
		{[]lock.Request{at(lock.S, "/a")}, []int{0, 1, 4}},
		{[]lock.Request{at(lock.X, "/a/b")}, []int{0, 3, 5}},
		{[]lock.Request{at(lock.IS, "/a/b/c/d")}, []int{0}},
		{[]lock.Request{at(lock.X, "/z/z")}, []int{2}},
		{[]lock.Request{at(lock.X, "/a/b/x"), at(lock.IX, "/z"), at(lock.S, "/free")}, []int{2, 5}},
		{[]lock.Request{at(lock.X, "/z"), at(lock.S, "/a/y"), at(lock.X, "/")}, []int{0, 1, 2, 3, 4, 5}},
	} {
		var want []lock.Holder
		for _, i := range try.who {
			want = append(want, all[i])
		}
		conflict := t.refused("stranger", try.rs...)
		t.names(fmt.Sprintf("%s is refused", try.rs), conflict.Holders, conflict.More, want...)
		if !slices.Equal(conflict.Requests, canonical(try.rs)) {
			t.Errorf("the refusal of %s is about %s", try.rs, conflict.Requests)
		}
	}
	for _, h := range held {
		t.unlock(h)
	}
	t.unlock(t.granted(waiting))
	t.idle("all was unlocked")
}

func mine(t *trial) {
	for _, owner := range []string{"deploy", ""} {
		for _, other := range []string{"deploy", "", "teardown"} {
			h := t.take(owner, at(lock.X, "/a"))
			conflict := t.refused(other, at(lock.S, "/a"))
			if want := owner == other && owner != ""; conflict.Holders[0].Mine != want {
				t.Errorf("%q is refused for %q as its own: %t", other, owner, !want)
			}
			t.unlock(h)
		}
	}
}

func waitsGivenUp(t *trial) {
	first := t.take("first", at(lock.X, "/a"))
	second := t.waits("second", at(lock.X, "/a/b"))
	third := t.waits("third", at(lock.X, "/a/b"))
	fourth := t.waits("fourth", at(lock.X, "/"))
	conflict := t.givenUp(third)
	t.names("a wait that was given up", conflict.Holders, conflict.More,
		t.shown(first, by("first"), at(lock.X, "/a")), t.shown(nil, by("second"), at(lock.X, "/a/b")))
	t.unlock(first)
	held := t.granted(second)
	conflict = t.givenUp(fourth)
	t.names("a wait that was given up later", conflict.Holders, conflict.More, t.shown(held, by("second"), at(lock.X, "/a/b")))
	t.unlock(held)
	t.idle("all was unlocked")
}

func upgradesNamed(t *trial) {
	self := t.take("self", at(lock.S, "/a"), at(lock.IS, "/b"))
	reader := t.take("reader", at(lock.IS, "/a/c"))
	waiting := t.waits("writer", at(lock.X, "/a"))
	conflict := t.conflict("an upgrade to X", nil, self.Upgrade(t.Context(), lock.X), lock.ErrConflict)
	t.names("a refused upgrade", conflict.Holders, conflict.More,
		t.shown(reader, by("reader"), at(lock.IS, "/a/c")), t.shown(nil, by("writer"), at(lock.X, "/a")))
	if want := []lock.Request{at(lock.X, "/a"), at(lock.X, "/b")}; !slices.Equal(conflict.Requests, want) {
		t.Errorf("the refused upgrade is about %s, not %s", conflict.Requests, want)
	}
	t.unlock(reader)
	t.unlock(self)
	t.unlock(t.granted(waiting))
}

func upToALimit(t *trial) {
	var held []*lock.Held
	for i := range 5 {
		held = append(held, t.take(fmt.Sprint(i), at(lock.X, fmt.Sprint("/p", i))))
		conflict := t.refused("teardown", at(lock.X, "/"))
		if n := len(conflict.Holders); n != min(i+1, 3) || conflict.More != (i >= 3) {
			t.Fatalf("of %d holders in the way %d are named, more: %t", i+1, n, conflict.More)
		}
	}
	for _, h := range held {
		t.unlock(h)
	}
}

func asked(t *trial) {
	rs := []lock.Request{at(lock.X, "/a/b/c"), at(lock.IX, "/"), at(lock.IS, "/a"), at(lock.IX, "/a/b"), at(lock.S, "/ab")}
	var all []lock.Holder
	for i, r := range rs {
		o := by(fmt.Sprint(i))
		h := t.takeAs(o, r)
		defer t.unlock(h)
		all = append(all, t.shown(h, o, r))
	}
	t.waits("waiting", at(lock.X, "/a/b"))
	all = append(all, t.shown(nil, by("waiting"), at(lock.X, "/a/b")))
	before := t.snapshot()
	t.names("Snapshot", before.Holders, false, all...)
	if before.Held != 5 || before.Waiting != 1 || before.LastToken < all[4].Token {
		t.Errorf("5 are held and 1 waits, the last token is %d: %d, %d and %d", all[4].Token, before.Held, before.Waiting, before.LastToken)
	}
	for scope, who := range map[lock.Scope][]int{
		lock.Above: {1, 2}, lock.At: {3, 5}, lock.Below: {0},
		lock.Above | lock.At: {1, 2, 3, 5}, lock.At | lock.Below: {0, 3, 5}, lock.Above | lock.At | lock.Below: {0, 1, 2, 3, 5},
	} {
		got, err := t.l.Holders(t.Context(), lock.MustParse("/a/b"), scope)
		if err != nil {
			t.Fatalf("Holders: %v", err)
		}
		var want []lock.Holder
		for _, i := range who {
			want = append(want, all[i])
		}
		t.names(fmt.Sprintf("Holders %s /a/b", scope), got, false, want...)
	}
	if got, err := t.l.Holders(t.Context(), lock.MustParse("/nobody"), lock.At|lock.Below); err != nil || len(got) > 0 {
		t.Errorf("Holders where nobody is: %v, %v", got, err)
	}
	t.unchanged("asking", before)
}
