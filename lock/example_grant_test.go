package lock_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lock"
)

// Do unlocks however the work ends, and ends its context when the lock is lost.
func ExampleDo() {
	var tree lock.Tree
	r := lock.Request{Path: lock.MustParse("/shop/web"), Mode: lock.X}
	err := lock.Do(context.Background(), &tree, r, nil, func(ctx context.Context, h *lock.Grant) error {
		fmt.Println("deploying with token", h.Token())
		return nil
	})
	s, _ := tree.Snapshot(context.Background())
	fmt.Println(err, s.Held)
	// Output:
	// deploying with token 1
	// <nil> 0
}

// Break ends the contexts of the grant before it grants the lock to another caller.
func ExampleGrant_Context() {
	var tree lock.Tree
	ctx := context.Background()
	h, _ := tree.TryLock(ctx, lock.Request{Path: lock.MustParse("/shop"), Mode: lock.X}, nil)
	work, cancel := h.Context(ctx)
	defer cancel()
	if err := tree.Break(ctx, h.Token(), "the node is gone"); err != nil {
		fmt.Println(err)
	}
	<-work.Done()
	fmt.Println(context.Cause(work))
	fmt.Println(errors.Is(h.Check(), lock.ErrLost))
	// Output:
	// lock: lost: token 1: the node is gone
	// true
}

// Two readers upgrade: both are refused until one of them unlocks.
func ExampleGrant_Upgrade() {
	var tree lock.Tree
	ctx := context.Background()
	read := lock.Request{Path: lock.MustParse("/config"), Mode: lock.S}
	a, _ := tree.TryLock(ctx, read, nil)
	b, _ := tree.TryLock(ctx, read, nil)
	fmt.Println(errors.Is(a.Upgrade(ctx, lock.X), lock.ErrConflict), errors.Is(b.Upgrade(ctx, lock.X), lock.ErrConflict))
	fmt.Println(b.Unlock(ctx), a.Upgrade(ctx, lock.X), a.Requests())
	// Output:
	// true true
	// <nil> <nil> [X at /config]
}

// Deploys share the lock in mode IX; a teardown holds it alone in mode X.
func ExampleIntention() {
	var system lock.Intention
	a, _ := system.TryLock(lock.IX)
	b, _ := system.TryLock(lock.IX)
	_, err := system.TryLock(lock.X)
	fmt.Println(err)
	fmt.Println(a.Unlock(), a.Unlock(), b.Unlock())
	teardown, err := system.TryLock(lock.X)
	fmt.Println(teardown.Unlock(), err)
	// Output:
	// lock: conflict
	// true false true
	// true <nil>
}

// The store keeps the fence. It refuses the write of a holder that lost its lock
// after the next holder has written.
func ExampleFence() {
	var tree lock.Tree
	var fence lock.Fence
	ctx := context.Background()
	r := lock.Request{Path: lock.MustParse("/shop"), Mode: lock.X}
	old, _ := tree.TryLock(ctx, r, nil)
	fmt.Println(tree.Break(ctx, old.Token(), "no answer"))
	next, _ := tree.TryLock(ctx, r, nil)
	fmt.Println(fence.Admit(next.Token()))
	fmt.Println(fence.Admit(old.Token()))

	// A restarted service starts above all earlier tokens: it counts its restarts in
	// the upper bits.
	restarted := lock.Must(&lock.Config{FirstToken: 2 << 32})
	after, _ := restarted.TryLock(ctx, r, nil)
	fmt.Println(after.Token(), fence.Admit(after.Token()))
	// Output:
	// <nil>
	// <nil>
	// lock: token 1 is stale: the fence has admitted token 2
	// 8589934592 <nil>
}

// Holders lists requests without a lock.
func ExampleTree_Holders() {
	var tree lock.Tree
	ctx := context.Background()
	_, _ = tree.TryLock(ctx, lock.Request{Path: lock.MustParse("/shop"), Mode: lock.IX}, &lock.Options{Owner: "ann"})
	holders, err := tree.Holders(ctx, lock.MustParse("/shop/web"), lock.Above|lock.At)
	for _, h := range holders {
		fmt.Println(h.Mode, h.Path, h.Owner, h.Token)
	}
	fmt.Println(err)
	// Output:
	// IX /shop ann 1
	// <nil>
}
