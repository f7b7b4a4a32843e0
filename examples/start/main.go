// Command start is the program of the README: one table, one store, one handler.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// VM is what the service keeps about a virtual machine besides its state.
type VM struct{ Address string }

var table = fsm.Must[VM](fsm.Spec[string, string]{
	Name: "vm", Initial: "absent", Actors: []fsm.Actor{"user", "worker"},
	States: []fsm.State[string]{
		{Name: "absent", Kind: fsm.Absent},
		{Name: "creating", Kind: fsm.Transitional},
		{Name: "running", Kind: fsm.Stable},
		{Name: "failed", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move("absent", "create", "creating").By("user"),
		fsm.Move("creating", "created", "running").By("worker"),
		fsm.Move("creating", "broken", "failed").By("worker"),
		fsm.Move("creating", "late", "failed").After(10*time.Minute),
		fsm.Move("running", "delete", "absent").AlsoFrom("failed").By("user"),
	),
})

// boot is the work of "create". The VM gets its address in the commit that makes it
// running.
func boot(ctx context.Context, image []byte) error {
	fmt.Printf("boot %s from %s\n", lifecycle.TaskOf(ctx).ID, image)
	lifecycle.EditOutcome(ctx, func(vm *VM) error { vm.Address = "10.0.0.7"; return nil })
	return nil
}

func main() {
	ctx := context.Background()
	vms, err := lifecycle.New(table, lifecycle.NewMemoryStore(), &lifecycle.Config[string]{
		WorkerActor: "worker", Done: []string{"created"}, Failed: []string{"broken"},
		Handlers: map[string]lifecycle.Handler{"boot": boot},
	})
	if err != nil {
		log.Fatal(err)
	}

	// The commit that makes the VM creating also records its work.
	boots, err := vms.Do(ctx, "vm-1", "create", "user", lifecycle.Named("boot", []byte("debian")), nil)
	if err != nil {
		log.Fatal(err)
	}
	vm, err := boots.Wait(ctx)
	fmt.Println(vm.ID, vm.State, vm.Payload.Address, err)

	// The table has no row for a second create.
	_, err = vms.Fire(ctx, "vm-1", "create", "user", nil)
	fmt.Println(err)

	// The worker's report arrives a second time and changes nothing.
	verdict, err := vms.Report(ctx, "vm-1", boots.Operation(), "created", "worker", nil)
	fmt.Println(verdict, err)

	rows, err := vms.History(ctx, "vm-1", 0, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range rows {
		fmt.Printf("%d: %s by %s, now %s\n", row.Sequence, row.Event, row.Actor, row.To)
	}
}
