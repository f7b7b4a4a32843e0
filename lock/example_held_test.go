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
	err := lock.Do(context.Background(), &tree, r, nil, func(ctx context.Context, h *lock.Held) error {
		fmt.Println("deploying with token", h.Token())
		return nil
	})
	s, _ := tree.Snapshot(context.Background())
	fmt.Println(err, s.Held)
	// Output:
	// deploying with token 1
	// <nil> 0
}

func ExampleDoAll() {
	var tree lock.Tree
	rs := []lock.Request{{Path: lock.MustParse("/b"), Mode: lock.X}, {Path: lock.MustParse("/a"), Mode: lock.S}}
	err := lock.DoAll(context.Background(), &tree, rs, nil, func(ctx context.Context, h *lock.Held) error {
		fmt.Println(h.Requests())
		return nil
	})
	fmt.Println(err)
	// Output:
	// [S at /a X at /b]
	// <nil>
}

// An operator takes a lock away: the work that needs it learns of it first.
func ExampleHeld_Context() {
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

// Two readers want to write: neither waits for the other, and one has to go.
func ExampleHeld_Upgrade() {
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

// A function that is called with a lock makes sure that it is enough.
func ExampleHeld_Covers() {
	var tree lock.Tree
	h, _ := tree.TryLock(context.Background(), lock.Request{Path: lock.MustParse("/shop"), Mode: lock.X}, nil)
	fmt.Println(h.Covers(lock.MustParse("/shop/web"), lock.X), h.Covers(lock.Root(), lock.IS))
	// Output: true false
}

// Deploys announce what they do, a teardown is alone; an Unlocker may be called
// twice.
func ExampleIntention() {
	var system lock.Intention
	a, _ := system.TryLock(lock.IX)
	b, _ := system.TryLock(lock.IX)
	_, err := system.TryLock(lock.X)
	fmt.Println(err)
	fmt.Println(a.Unlock(), a.Unlock(), b.Unlock())
	teardown, err := system.TryLock(lock.X)
	fmt.Println(teardown.Mode(), err)
	// Output:
	// lock: conflict
	// true false true
	// X <nil>
}

// The store keeps the fence: what a holder writes after it lost its lock, and
// after the next has written, is refused.
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

	// A restart begins above every token that was granted before it, also to who
	// has written nothing so far: here by a number of the restart.
	restarted := lock.NewTree(&lock.Config{FirstToken: 2 << 32})
	after, _ := restarted.TryLock(ctx, r, nil)
	fmt.Println(after.Token(), fence.Admit(after.Token()))
	// Output:
	// <nil>
	// <nil>
	// lock: token 1 is stale: token 2 was here before
	// 8589934592 <nil>
}

// Who is there is told without asking for a lock.
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
