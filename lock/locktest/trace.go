package locktest

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

func traceDemands() []demand {
	return []demand{
		{
			name: "G2_no_trace/refused_tries_leave_nothing", run: refusedTries,
			says: "After a refused try, of one request or of a list, the locker holds what it held before, and what was free is free.",
		},
		{
			name: "G2_no_trace/cancelled_waits_leave_nothing", run: cancelledWaits,
			says: "After a wait was cancelled, what stood behind it is granted if nobody else is in the way, and nothing of it is left.",
		},
		{
			name: "G2_no_trace/panics_leave_nothing", run: panicking, needs: needSynctest,
			says: "A call that panics, because a method of its context does, leaves nothing behind and blocks nobody.",
		},
		{
			name: "G2_no_trace/refused_upgrades_leave_nothing", run: refusedUpgrades,
			says: "After a refused upgrade the grant holds what it held before, under the same token, and no more.",
		},
		{
			name: "G3_nothing_when_idle/many_paths", run: manyPaths,
			says: "After hundreds of paths were locked and unlocked, deep, beside and below each other, no node is kept.",
		},
		{
			name: "G3_nothing_when_idle/waits_and_losses", run: waitsAndLosses,
			says: "Nor is one kept after waits, cancelled and granted, lists, conversions and broken grants.",
		},
	}
}

func refusedTries(t *trial) {
	held := t.take("holder", at(lock.X, "/a/b"))
	before := t.snapshot()
	for _, rs := range [][]lock.Request{
		{at(lock.X, "/a/b")},
		{at(lock.S, "/")},
		{at(lock.IS, "/a/b/c/d")},
		{at(lock.X, "/free"), at(lock.S, "/a/b/c")},
		{at(lock.X, "/z"), at(lock.IX, "/a"), at(lock.S, "/a")},
	} {
		// The same owner as the holder: what a refusal rolls back must not be
		// found by name.
		t.refused("holder", rs...)
		t.unchanged(fmt.Sprintf("a refused try for %s", rs), before)
	}
	t.unlock(t.take("other", at(lock.X, "/free"), at(lock.X, "/z"), at(lock.X, "/a/c")))
	t.refused("other", at(lock.IS, "/a/b"))
	t.unlock(held)
	t.unlock(t.take("teardown", at(lock.X, "/")))
	t.idle("all was unlocked")
}

func cancelledWaits(t *trial) {
	reader := t.take("reader", at(lock.S, "/a"))
	before := t.snapshot()
	writer := t.waits("writer", at(lock.X, "/a"))
	behind := t.waits("behind", at(lock.S, "/a/b"))
	list := t.waits("list", at(lock.X, "/a/c"), at(lock.X, "/free"))
	t.refused("stranger", at(lock.S, "/free"))
	t.givenUp(list)
	t.unlock(t.take("stranger", at(lock.S, "/free")))
	t.givenUp(writer)
	t.unlock(t.granted(behind))
	t.unchanged("cancelled waits", before)
	t.unlock(t.take("another reader", at(lock.S, "/a")))
	t.unlock(reader)
	t.idle("all was unlocked")
}

// minefield is a context whose methods panic from a certain call on.
type minefield struct {
	context.Context
	left int // calls until it panics
}

const explosion = "locktest: a method of the context panics"

func (m *minefield) tread() {
	if m.left--; m.left < 0 {
		panic(explosion)
	}
}

func (m *minefield) Done() <-chan struct{} { m.tread(); return m.Context.Done() }
func (m *minefield) Err() error            { m.tread(); return m.Context.Err() }

func panicking(t *trial) {
	held := t.take("holder", at(lock.X, "/a"))
	before := t.snapshot()
	for _, rs := range [][]lock.Request{{at(lock.X, "/a/b")}, {at(lock.X, "/free")}, {at(lock.S, "/free"), at(lock.X, "/")}} {
		for left := range 8 {
			for _, ask := range []func(context.Context, lock.Locker, []lock.Request, *lock.Options) (*lock.Held, error){tryFor, waitFor} {
				// What does not panic is a wait, or granted, or refused.
				c := t.run("panicking", func(ctx context.Context) {
					if h, err := ask(&minefield{ctx, left}, t.l, rs, by("panicking")); err == nil {
						_ = h.Unlock(ctx)
					}
				})
				t.nothingMore() // it has gone as far as it can
				c.cancel(errGivenUp)
				if fault := t.back(c); fault != "" {
					t.Fatal(fault)
				}
				if c.panics != nil && c.panics != explosion {
					t.Fatalf("%s: panic: %v", rs, c.panics)
				}
				t.unchanged(fmt.Sprintf("a panic in the context of a call for %s, after %d calls of its methods", rs, left), before)
			}
		}
	}
	t.unlock(t.take("other", at(lock.X, "/free")))
	t.unlock(held)
	t.unlock(t.take("teardown", at(lock.X, "/")))
	t.idle("all was unlocked")
}

func refusedUpgrades(t *trial) {
	a, b := t.take("a", at(lock.S, "/p"), at(lock.IS, "/q")), t.take("b", at(lock.S, "/p"))
	before, token := t.snapshot(), a.Token()
	for range 3 {
		err := a.Upgrade(t.Context(), lock.X)
		t.conflict("an upgrade to X beside another reader", nil, err, lock.ErrConflict)
		t.unchanged("a refused upgrade", before)
		if a.Check() != nil || a.Token() != token {
			t.Fatalf("after a refused upgrade: Check %v, token %d, which was %d", a.Check(), a.Token(), token)
		}
	}
	t.unlock(t.take("c", at(lock.S, "/p"), at(lock.X, "/q/r")))
	t.unlock(a)
	t.unlock(t.take("d", at(lock.X, "/q")))
	t.unlock(b)
	t.idle("all was unlocked")
}

func manyPaths(t *trial) {
	var held []*lock.Held
	for i := range 40 {
		held = append(held,
			t.take("leaf", at(lock.X, fmt.Sprintf("/p%d/q/r", i))),
			t.take("branch", at(lock.IX, fmt.Sprintf("/p%d/q", i))),
			t.take("fork", at(lock.S, fmt.Sprintf("/p%d/s", i))),
			t.take("root", at(lock.IS, "/")),
		)
	}
	deep := "/d" + strings.Repeat("/d", lock.MaxDepth-1)
	held = append(held, t.take("deep", at(lock.X, deep)), t.take("half", at(lock.IX, deep[:lock.MaxDepth])))
	if s := t.snapshot(); s.Nodes == 0 {
		t.Fatalf("%d grants are held, in %d nodes", s.Held, s.Nodes)
	}
	for i := range held { // from both ends, so that forks lose either branch first
		if i%2 == 1 {
			i = len(held) - i
		}
		t.unlock(held[i])
	}
	t.idle("all was unlocked")
}

func waitsAndLosses(t *trial) {
	for range 3 {
		a := t.take("a", at(lock.X, "/a/b"), at(lock.X, "/c"))
		b := t.waits("b", at(lock.S, "/a"), at(lock.X, "/c/d"))
		c := t.waits("c", at(lock.X, "/"))
		d := t.waits("d", at(lock.X, "/e/f/g"))
		t.givenUp(c)
		e := t.granted(d)
		if err := t.l.Break(t.Context(), a.Token(), "an operator"); err != nil {
			t.Fatalf("Break: %v", err)
		}
		f := t.granted(b)
		if err := f.Downgrade(t.Context(), lock.IS); err != nil {
			t.Fatalf("Downgrade: %v", err)
		}
		if err := e.Upgrade(t.Context(), lock.X); err != nil {
			t.Fatalf("Upgrade: %v", err)
		}
		t.unlock(e)
		t.unlock(f)
		t.idle("all was unlocked, broken or cancelled")
	}
}
