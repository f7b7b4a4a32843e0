package etcdlock_test

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/etcdlock"
)

// A process opens one Locker and writes under its guard.
func ExampleOpen() {
	run := func(ctx context.Context, client *clientv3.Client) error {
		locker, err := etcdlock.Open(ctx, client, "locks/shop", nil)
		if err != nil {
			return err
		}
		defer locker.Close()
		web := lock.Request{Path: lock.MustParse("/web"), Mode: lock.X}
		return lock.Do(ctx, locker, web, &lock.Options{Owner: "deploy-7"}, func(ctx context.Context, g *lock.Grant) error {
			held := g.Driver().(etcdlock.Guard).GuardCompare()
			written, err := client.Txn(ctx).If(held).Then(clientv3.OpPut("shop/web", "version 12")).Commit()
			if err == nil && !written.Succeeded {
				err = lock.ErrLost
			}
			return err
		})
	}
	_ = run // needs etcd
	// Output:
}

// Settings are checked before etcd is used.
func ExampleConfig() {
	_, err := etcdlock.Open(context.Background(), nil, "locks", &etcdlock.Config{MaxWaiters: -1})
	fmt.Println(errors.Is(err, lock.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// lock: config "{TTL:0s MaxWaiters:-1 MaxHolders:0}" has a negative setting
}
