package lock_test

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/interlock-go/interlock/lock"
)

// Two deploys at disjoint paths hold at once. A lock of both is refused.
func Example() {
	var tree lock.Tree
	ctx := context.Background()
	web, api := lock.MustParse("/shop/web"), lock.MustParse("/shop/api")
	a, _ := tree.TryLock(ctx, lock.Request{Path: web, Mode: lock.X}, nil)
	b, _ := tree.TryLock(ctx, lock.Request{Path: api, Mode: lock.X}, nil)
	_, err := tree.TryLock(ctx, lock.Request{Path: lock.Root(), Mode: lock.X}, nil)
	fmt.Println(a.Requests(), b.Requests(), errors.Is(err, lock.ErrConflict))
	fmt.Println(a.Unlock(ctx), b.Unlock(ctx))
	// Output:
	// [X at /shop/web] [X at /shop/api] true
	// <nil> <nil>
}

// A Lock waits until the earlier grants are released.
func ExampleTree() {
	var tree lock.Tree
	ctx := context.Background()
	deploy, _ := tree.Lock(ctx, lock.Request{Path: lock.MustParse("/web"), Mode: lock.X}, nil)
	var group errgroup.Group
	group.Go(func() error {
		teardown, err := tree.Lock(ctx, lock.Request{Path: lock.Root(), Mode: lock.X}, nil)
		if err != nil {
			return err
		}
		return teardown.Unlock(ctx)
	})
	fmt.Println("deployed:", deploy.Unlock(ctx))
	fmt.Println("torn down:", group.Wait())
	// Output:
	// deployed: <nil>
	// torn down: <nil>
}

// A list is one request: two lists cannot deadlock, whatever their order.
func ExampleTree_LockAll() {
	var tree lock.Tree
	ctx := context.Background()
	disk, vm := lock.MustParse("/disks/d1"), lock.MustParse("/vms/v1")
	attach := []lock.Request{{Path: vm, Mode: lock.S}, {Path: disk, Mode: lock.X}}
	h, err := tree.LockAll(ctx, attach, nil)
	fmt.Println(h.Requests(), err)
	_, err = tree.TryLock(ctx, lock.Request{Path: disk, Mode: lock.S}, nil)
	fmt.Println(errors.Is(err, lock.ErrConflict), h.Unlock(ctx))
	// Output:
	// [X at /disks/d1 S at /vms/v1] <nil>
	// true <nil>
}

// Try seldom allocates. Its refusal does not list the holders.
func ExampleTree_Try() {
	var tree lock.Tree
	h, err := tree.Try(lock.MustParse("/a/b"), lock.X)
	fmt.Println(h.Token(), err)
	_, err = tree.Try(lock.MustParse("/a"), lock.S)
	fmt.Println(err)
	fmt.Println(h.Unlock(), h.Unlock(), h.Token())
	// Output:
	// 1 <nil>
	// lock: conflict
	// true false 0
}

// A refusal lists the holders that conflict.
func ExampleConflictError() {
	var tree lock.Tree
	ctx := context.Background()
	_, err := tree.TryLock(ctx, lock.Request{Path: lock.MustParse("/shop/web"), Mode: lock.X},
		&lock.Options{ID: "deploy-7", Owner: "ann", Reason: "version 1.4"})
	if err != nil {
		fmt.Println(err)
	}
	_, err = tree.TryLock(ctx, lock.Request{Path: lock.MustParse("/shop"), Mode: lock.X}, &lock.Options{Owner: "bob"})
	if conflict, ok := errors.AsType[*lock.ConflictError](err); ok {
		for _, h := range conflict.Holders {
			fmt.Printf("%v at %v, %s: %s (%s), token %v\n", h.Mode, h.Path, h.ID, h.Owner, h.Reason, h.Token)
		}
	}
	// Output:
	// X at /shop/web, deploy-7: ann (version 1.4), token 1
}

// A caller that lost an answer repeats its call with the same id.
func ExampleOptions() {
	var tree lock.Tree
	ctx := context.Background()
	deploy := lock.Request{Path: lock.MustParse("/shop/web"), Mode: lock.X}
	id := &lock.Options{ID: "deploy-7"}
	first, _ := tree.TryLock(ctx, deploy, id)
	again, err := tree.TryLock(ctx, deploy, id)
	fmt.Println(first == again, again.Token(), err)
	_, err = tree.TryLock(ctx, lock.Request{Path: lock.MustParse("/shop/api"), Mode: lock.X}, id)
	fmt.Println(errors.Is(err, lock.ErrIDInUse))
	fmt.Println(again.Unlock(ctx), first.Check())
	// Output:
	// true 1 <nil>
	// true
	// <nil> lock: not held
}

func ExampleParse() {
	for _, s := range []string{"/shop/web", "shop", "/shop/", "/shop/../web"} {
		p, err := lock.Parse(s)
		fmt.Println(p, p.Valid(), err)
	}
	web, _ := lock.Root().Child("web")
	fmt.Println(web, web.Covers(lock.MustParse("/web/1")), web.Covers(lock.MustParse("/web-2")))
	// Output:
	// /shop/web true <nil>
	//  false lock: path "shop" does not begin with a slash
	//  false lock: path "/shop/" has a segment 2 that is empty
	//  false lock: path "/shop/../web" has a segment 2 that is ".."
	// /web true false
}
