package lifecycle_test

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// A process has left without the outcome of its work. An operator looks at what a sweep
// would do, and which processes are there.
func ExampleStuck() {
	ctx := context.Background()
	store := lifecycle.NewMemoryStore()
	vm := fsm.Must[struct{}](fsm.Spec[string, string]{
		Name: "vm", Initial: "running", Actors: []fsm.Actor{"user", "worker"},
		States: []fsm.State[string]{{Name: "running"}, {Name: "rebooting", Kind: fsm.Transitional}},
		Rows: fsm.Rows(
			fsm.Move("running", "reboot", "rebooting").By("user"),
			fsm.Move("rebooting", "rebooted", "running").By("worker"),
			fsm.Return("rebooting", "late").After(time.Minute),
		),
	})
	owner, _ := lifecycle.Join(ctx, store, "host-1", 0)
	vms := lifecycle.Must(vm, store, &lifecycle.Config[string]{Owner: owner, WorkerActor: "worker", Done: []string{"rebooted"}})
	_, _ = vms.Add(ctx, "vm-1", "running", "user", struct{}{}, nil)
	operation, _ := vms.Do(ctx, "vm-1", "reboot", "user", lifecycle.Func(func(ctx context.Context) error { <-ctx.Done(); return nil }), nil)
	_ = owner.Leave(ctx)
	<-operation.Done()

	_, _ = lifecycle.Join(ctx, store, "host-2", 0)
	stuck, _ := lifecycle.Stuck(ctx, vms, 10)
	for _, s := range stuck {
		fmt.Printf("%s %s: %s, next %s\n", s.ID, s.From, s.Cause, s.Event)
	}
	owners, _ := lifecycle.Owners(ctx, vms)
	for _, o := range owners {
		fmt.Println(o.Name, o.Epoch, o.Alive)
	}
	// Output:
	// vm-1 rebooting: owner "host-1" of epoch 1 is dead, next late
	// host-2 1 true
}
