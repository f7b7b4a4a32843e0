package etcdstore_test

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/etcdstore"
)

var door = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "door", Initial: "open", Actors: []fsm.Actor{"user"},
	States: []fsm.State[string]{{Name: "open"}, {Name: "closed"}},
	Rows:   fsm.Rows(fsm.Move("open", "close", "closed").By("user"), fsm.Move("closed", "open", "open").By("user")),
})

// run closes a door, delivers messages, trims the history, and wakes for the changes of
// other processes until ctx ends.
func run(ctx context.Context, endpoints []string) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
	if err != nil {
		return err
	}
	defer client.Close()
	store, err := etcdstore.Open(ctx, client, &etcdstore.Config{Prefix: "fleet/"})
	if err != nil {
		return err
	}
	defer store.Close()
	doors := lifecycle.Must(door, store, nil)
	rec, err := doors.Fire(ctx, "front", "close", "user", &lifecycle.Change[struct{}]{
		Messages: []lifecycle.Message{{Topic: "closed", Key: "front"}},
	})
	if err != nil {
		return err
	}
	fmt.Println(rec.State)
	list, err := store.Messages(ctx, 100)
	if err != nil {
		return err
	}
	for _, m := range list {
		fmt.Println("delivered", m.Topic, m.Key)
		if err := store.Discard(ctx, m.Number); err != nil {
			return err
		}
	}
	if _, err := store.Trim(ctx, 30*24*time.Hour, 100); err != nil {
		return err
	}
	return store.Listen(ctx, func(changed lifecycle.Key) { lifecycle.Wake(changed, doors) })
}

// Without etcd, the store is unavailable at once.
func Example() {
	err := run(context.Background(), []string{"127.0.0.1:1"}) // no server listens there
	fmt.Println(err)
	// Output: etcdstore: lifecycle: store is unavailable: no connection to etcd
}

// The configuration is checked before anything is sent.
func ExampleOpen() {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = etcdstore.Open(context.Background(), client, &etcdstore.Config{MaxTxnOps: 8})
	fmt.Println(err)
	// Output: lifecycle: invalid request: open store: MaxTxnOps 8 is below 32
}
