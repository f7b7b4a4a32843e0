package locks

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/internal/ratio"
	"github.com/interlock-go/interlock/lock"
)

// A pair is what it is in the goals: one uncontended Lock and Unlock of a
// sync.Mutex.
func mutexPairs(pairs int) func(int) {
	var mu sync.Mutex
	held := 0
	return func(n int) {
		for range n * pairs {
			mu.Lock()
			held++
			mu.Unlock()
		}
	}
}

func rwMutexPairs(n int) {
	var mu sync.RWMutex
	seen, value := 0, 1
	for range n {
		mu.RLock()
		seen += value
		mu.RUnlock()
	}
	if seen != n {
		panic("the lock did not let a reader in")
	}
}

// path of a depth, whose segments are as long as names usually are.
func path(depth int) lock.Path {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, "/segment-%02d", i)
	}
	return lock.MustParse(b.String())
}

func child(p lock.Path, format string, args ...any) lock.Path {
	c, err := p.Child(fmt.Sprintf(format, args...))
	if err != nil {
		panic(err)
	}
	return c
}

func hold(t *lock.Tree, p lock.Path) {
	if _, err := t.Try(p, lock.X); err != nil {
		panic(err)
	}
}

// beside holds so many siblings of the path.
func beside(t *lock.Tree, p lock.Path, siblings int) *lock.Tree {
	parent, _ := p.Parent()
	for i := range siblings {
		hold(t, child(parent, "held-%04d", i))
	}
	return t
}

// forked holds a sibling of every node on the way, so that no edge is longer
// than a segment.
func forked(t *lock.Tree, p lock.Path) *lock.Tree {
	for q := p; q != lock.Root(); q, _ = q.Parent() {
		beside(t, q, 1)
	}
	return t
}

func lockX(t *lock.Tree, p lock.Path) func(int) {
	return func(n int) {
		for range n {
			h, err := t.Try(p, lock.X)
			if err != nil || !h.Unlock() {
				panic("the path is held")
			}
		}
	}
}

func refused(t *lock.Tree, p lock.Path) func(int) {
	return func(n int) {
		for range n {
			if _, err := t.Try(p, lock.X); err != lock.ErrConflict {
				panic("the path is free")
			}
		}
	}
}

// named is a refusal that lists the holders.
func named(t *lock.Tree, p lock.Path) func(int) {
	ctx := context.Background()
	return func(n int) {
		for range n {
			_, err := t.TryLock(ctx, lock.Request{Path: p, Mode: lock.X}, nil)
			if e, ok := err.(*lock.ConflictError); !ok || len(e.Holders) == 0 {
				panic("the refusal lists no holder")
			}
		}
	}
}

// owned returns a tree whose grant of the path has an id, an owner and a reason.
func owned(t *lock.Tree, p lock.Path) *lock.Tree {
	_, err := t.TryLock(context.Background(), lock.Request{Path: p, Mode: lock.X},
		&lock.Options{Owner: "deploy-7", Reason: "version 12", ID: "deploy-7/1"})
	if err != nil {
		panic(err)
	}
	return t
}

// systems is a tree that many systems share, each with a lock below its first
// segment.
func systems(n int) *lock.Tree {
	t := new(lock.Tree)
	for i := range n {
		hold(t, child(child(lock.Root(), "system-%04d", i), "deployed"))
	}
	return t
}

func BenchmarkRatios(*testing.B) {
	var pairs []ratio.Pair
	add := func(name string, goal float64, base, subject func(int)) {
		pairs = append(pairs, ratio.Pair{Name: "lock/" + name, Goal: goal, Base: base, Subject: subject})
	}
	for _, depth := range []int{1, 2, 4, 8, 16} {
		p := path(depth)
		add(fmt.Sprintf("X-empty-depth-%d", depth), 5, mutexPairs(2), lockX(new(lock.Tree), p))
		add(fmt.Sprintf("X-1000-held-depth-%d", depth), 10, mutexPairs(2), lockX(beside(new(lock.Tree), p, 1000), p))
		add(fmt.Sprintf("X-branching-depth-%d", depth), 16, mutexPairs(2), lockX(forked(new(lock.Tree), p), p))
	}
	p := path(4)
	add("X-to-RWMutex", 10, rwMutexPairs, lockX(new(lock.Tree), p))
	add("growth-depth-1-to-16", 1.1, lockX(new(lock.Tree), path(1)), lockX(new(lock.Tree), path(16)))
	add("refused", 3, mutexPairs(1), refused(beside(new(lock.Tree), child(p, "x"), 1), p))
	add("refused-with-names", 40, mutexPairs(1), named(owned(new(lock.Tree), p), p))

	figures := ratio.Measure(pairs, nil)

	// Apart, because what allocates is slower beside a large heap.
	pairs = nil
	in := child(child(lock.Root(), "system-0007"), "deploy")
	many := make([]lock.Tree, 10_000)
	add("growth-10-to-10000-trees", 1.1, lockX(new(lock.Tree), in), lockX(&many[5000], in))
	add("growth-10-to-10000-systems-in-a-tree", 1.5, lockX(systems(10), in), lockX(systems(10_000), in))
	figures = append(figures, ratio.Measure(pairs, nil)...)

	figure := func(name string, value, goal float64) {
		figures = append(figures, ratio.Figure{Name: "lock/" + name, Value: value, Goal: goal})
	}
	allocations := func(f func(int)) float64 { return testing.AllocsPerRun(1000, func() { f(1) }) }
	figure("X-allocations", allocations(lockX(forked(new(lock.Tree), path(16)), path(16))), 0)
	figure("refused-with-names-allocations", allocations(named(owned(new(lock.Tree), p), p)), 8)
	figure("refused-with-3-names-allocations", allocations(named(beside(new(lock.Tree), child(p, "x"), 3), p)), 10)
	figure("idle-nodes", idleNodes(), 0)

	ratio.Print(os.Stdout, figures)
	ratio.PrintMachine(os.Stdout)
}

// idleNodes is what a tree keeps after many locks have come and gone.
func idleNodes() float64 {
	var t lock.Tree
	var holds []lock.Handle
	for i := range 10_000 {
		h, err := t.Try(child(path(1+i%8), "leaf-%d", i), lock.X)
		if err != nil {
			panic(err)
		}
		holds = append(holds, h)
	}
	for _, h := range holds {
		h.Unlock()
	}
	s, err := t.Snapshot(context.Background())
	if err != nil {
		panic(err)
	}
	return float64(s.Nodes)
}
