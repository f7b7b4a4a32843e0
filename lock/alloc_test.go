package lock_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// branchy returns a tree with a sibling held at every level above the path.
func branchy(t testing.TB, depth int) (*lock.Tree, lock.Path) {
	tree := new(lock.Tree)
	for d := range depth {
		_, err := tree.Try(lock.MustParse(strings.Repeat("/s", d)+"/other"), lock.X)
		require.NoError(t, err)
	}
	return tree, lock.MustParse(strings.Repeat("/s", depth))
}

// crowded returns a tree with n locks beside a path.
func crowded(t testing.TB, n, depth int) (*lock.Tree, lock.Path) {
	tree := new(lock.Tree)
	for i := range n {
		_, err := tree.Try(lock.MustParse(fmt.Sprintf("/%d/%d/x/y", i%30, i)), lock.X)
		require.NoError(t, err)
	}
	if depth == 1 {
		return tree, lock.MustParse("/s")
	}
	return tree, lock.MustParse("/1" + strings.Repeat("/s", depth-1)) // beside many
}

// TestAllocations sets upper bounds. A pair of Try and Unlock does not allocate. The
// other bounds are what the code needs at present.
func TestAllocations(t *testing.T) {
	ctx := context.Background()
	measure := func(name string, most float64, call func()) {
		t.Helper()
		call() // makes the spare nodes and claims
		got := testing.AllocsPerRun(100, call)
		require.LessOrEqual(t, got, most, name)
		t.Logf("%s: %v", name, got)
	}
	pair := func(tree *lock.Tree, p lock.Path) func() {
		return func() {
			h, err := tree.Try(p, lock.X)
			if err != nil || !h.Unlock() {
				t.Fatal(err)
			}
		}
	}
	for _, depth := range []int{1, 4, 16, 32} {
		tree, p := crowded(t, 0, depth)
		measure(fmt.Sprintf("Try and Unlock, empty, depth %d", depth), 0, pair(tree, p))
		tree, p = crowded(t, 1000, depth)
		measure(fmt.Sprintf("Try and Unlock, 1000 held, depth %d", depth), 0, pair(tree, p))
		measure("Counts", 0, func() { // it reads no holder
			if n := tree.Counts(); n.Held < 1000 || len(n.Holders) > 0 {
				t.Fatal(n)
			}
		})
		tree, p = branchy(t, depth)
		measure(fmt.Sprintf("Try and Unlock, branchy, depth %d", depth), 0, pair(tree, p))
	}

	tree := new(lock.Tree)
	one := take(t, tree, "X at /a/b/c", by("ann"))
	refused := func(text string) func() {
		r := req(text)
		return func() {
			if h, _ := tree.TryLock(ctx, r, nil); h != nil {
				t.Fatal("granted")
			}
		}
	}
	measure("Try refused", 0, func() {
		if _, err := tree.Try(lock.Root(), lock.S); err == nil {
			t.Fatal("granted")
		}
	})
	measure("TryLock refused, one holder below", 8, refused("X at /"))
	measure("TryLock refused, one holder above", 8, refused("X at /a/b/c/d"))
	take(t, tree, "S at /a/d", by("bob"))
	take(t, tree, "S at /a/e", by("cyd"))
	measure("TryLock refused, three holders", 10, refused("X at /"))
	granted := req("X at /z/y/x")
	measure("TryLock and Unlock", 9, func() {
		h, err := tree.TryLock(ctx, granted, nil)
		if err != nil || h.Unlock(ctx) != nil {
			t.Fatal(err)
		}
	})
	measure("Lock and Unlock, with options", 9, func() {
		h, err := tree.Lock(ctx, granted, &lock.Options{Owner: "ann", Reason: "deploy"})
		if err != nil || h.Unlock(ctx) != nil {
			t.Fatal(err)
		}
	})
	measure("Check", 0, func() { _ = one.Check() })
	measure("Token", 0, func() { _ = one.Token() })

	var l lock.Intention
	for _, m := range []lock.Mode{lock.IX, lock.X} {
		measure("Intention, "+m.String(), 0, func() {
			u, err := l.TryLock(m)
			if err != nil || !u.Unlock() {
				t.Fatal(err)
			}
		})
		u := intentionOf(t, &l, m)
		measure("Intention refused, "+m.String()+" held", 0, func() {
			if u, _ := l.TryLock(lock.X); u != nil {
				t.Fatal("granted")
			}
		})
		u.Unlock()
	}
	var f lock.Fence
	measure("Fence", 0, func() { _ = f.Admit(7) })
}
