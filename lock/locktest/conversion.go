package locktest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/interlock-go/interlock/lock"
)

func conversionDemands() []demand {
	return []demand{
		{
			name: "Conversions/upgrades_never_wait", run: neverWait,
			says: "Of two holders that both upgrade neither waits: both are refused until one of them unlocks.",
		},
		{
			name: "Conversions/up_to_the_join", run: upToTheJoin,
			says: "An upgrade raises every request to its join with the mode, all or none; what is covered already is left as it is.",
		},
		{
			name: "Conversions/down_lets_waiters_in", run: downLetsIn,
			says: "A downgrade grants who waited for it, in the order of arrival, and nobody whom the lower mode, or somebody earlier, is still in the way of.",
		},
		{
			name: "Conversions/of_concurrent_holders", run: concurrentUpgrades, crowd: true,
			says: "Of holders that upgrade at once, some to S and some to IX, only those succeed whose new modes go together, and the first does.",
		},
	}
}

func neverWait(t *trial) {
	a, b := t.take("a", at(lock.S, "/p")), t.take("b", at(lock.S, "/p"))
	for range 2 {
		for _, h := range []*lock.Held{a, b} {
			var err error
			c := t.run("", func(ctx context.Context) { err = h.Upgrade(ctx, lock.X) })
			if fault := t.back(c); fault != "" {
				t.Fatalf("an upgrade waits: %s", fault)
			}
			t.conflict("an upgrade beside another reader", nil, err, lock.ErrConflict)
		}
	}
	t.unlock(a)
	if err := b.Upgrade(t.Context(), lock.X); err != nil {
		t.Fatalf("an upgrade with nobody in the way: %v", err)
	}
	t.refused("stranger", at(lock.IS, "/p"))
	t.unlock(b)
	t.idle("all was unlocked")
}

func upToTheJoin(t *trial) {
	for _, from := range lock.Modes {
		for _, to := range lock.Modes {
			h := t.take("holder", at(from, "/a"))
			if err := h.Upgrade(t.Context(), to); err != nil {
				t.Fatalf("an upgrade of %s to %s with nobody in the way: %v", from, to, err)
			}
			t.sound(h, []lock.Request{at(joined(from, to), "/a")})
			for _, m := range lock.Modes {
				if goTogether(joined(from, to), m) {
					t.unlock(t.take("other", at(m, "/a")))
				} else {
					t.refused("other", at(m, "/a"))
				}
			}
			t.unlock(h)
		}
	}
	list := t.take("list", at(lock.IX, "/a"), at(lock.S, "/b"))
	reader := t.take("reader", at(lock.IS, "/b"))
	t.conflict("an upgrade of a list to X", nil, list.Upgrade(t.Context(), lock.X), lock.ErrConflict)
	t.sound(list, []lock.Request{at(lock.IX, "/a"), at(lock.S, "/b")})
	if err := list.Upgrade(t.Context(), lock.S); err != nil {
		t.Fatalf("an upgrade of a list to S: %v", err)
	}
	t.sound(list, []lock.Request{at(lock.SIX, "/a"), at(lock.S, "/b")})
	t.unlock(reader)
	t.unlock(list)
	t.idle("all was unlocked")
}

func downLetsIn(t *trial) {
	h := t.take("holder", at(lock.X, "/a"), at(lock.X, "/b"))
	first := t.waits("first", at(lock.S, "/a"))
	writer := t.waits("writer", at(lock.X, "/b/c"))
	second := t.waits("second", at(lock.S, "/a/x"), at(lock.IS, "/b"))
	behind := t.waits("behind", at(lock.S, "/b"))
	if err := h.Downgrade(t.Context(), lock.S); err != nil {
		t.Fatalf("Downgrade: %v", err)
	}
	t.sound(h, []lock.Request{at(lock.S, "/a"), at(lock.S, "/b")})
	a, b := t.granted(first), t.granted(second)
	if a.Token() >= b.Token() {
		t.Errorf("the first of two waiters has token %d, the second %d", a.Token(), b.Token())
	}
	t.stillWaits(writer, behind)
	if err := h.Downgrade(t.Context(), lock.IS); err != nil {
		t.Fatalf("Downgrade: %v", err)
	}
	w := t.granted(writer)
	t.stillWaits(behind)
	t.refused("stranger", at(lock.X, "/a"))
	t.unlock(w)
	t.unlock(t.granted(behind))
	t.unlock(b)
	t.unlock(a)
	t.unlock(h)
	t.idle("all was unlocked")
}

func concurrentUpgrades(t *trial) {
	for range t.attempts {
		b := table{known: newRules(), held: map[*lock.Held][]lock.Request{}}
		var holders [6]*lock.Held
		for i := range holders {
			holders[i] = t.take("holder", at(lock.IS, "/a"))
		}
		var raised atomic.Int32
		together(len(holders), func(i int) {
			h, to := holders[i], at([]lock.Mode{lock.S, lock.IX}[i%2], "/a")
			switch err := h.Upgrade(t.Context(), to.Mode); {
			case err == nil:
				raised.Add(1)
				b.enter(h, []lock.Request{to})
			case !errors.Is(err, lock.ErrConflict):
				t.Errorf("Upgrade: %v", err)
			}
		})
		if b.fault != "" {
			t.Fatalf("after upgrades %s", b.fault)
		}
		if raised.Load() == 0 {
			t.Fatal("nobody is in the way of the first who upgrades, but all are refused")
		}
		for _, h := range holders {
			t.unlock(h)
		}
		t.idle("all was unlocked")
	}
}
