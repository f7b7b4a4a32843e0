package interlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// vms is the table of the README's example.
var vms = fsm.Must[struct{}](fsm.Spec[string, string]{
	Name: "vm", Initial: "none", Actors: []fsm.Actor{"user", "agent"},
	States: []fsm.State[string]{
		{Name: "none", Kind: fsm.Absent}, {Name: "creating", Kind: fsm.Transitional}, {Name: "ready"}, {Name: "failed", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move("none", "create", "creating").By("user"),
		fsm.Move("creating", "done", "ready").By("agent"),
		fsm.Move("creating", "late", "failed").After(10*time.Minute),
		fsm.Move("ready", "delete", "none").AlsoFrom("failed").By("user"),
	),
})

func Example() {
	ctx, mgr := context.Background(), lifecycle.Must(vms, lifecycle.NewMemoryStore(), nil)
	vm, _ := mgr.Create(ctx, "vm-1", "create", "user", struct{}{})
	_, err := mgr.Fire(ctx, "vm-1", "delete", "user", nil)
	first, _ := mgr.Report(ctx, "vm-1", vm.Operation, "done", "agent", "")
	again, _ := mgr.Report(ctx, "vm-1", vm.Operation, "done", "agent", "")
	fmt.Println(err)
	fmt.Println(first, again)
	// Output:
	// lifecycle: fire vm "vm-1": delete by user in creating: lifecycle: cannot execute action at this time
	// applied repeated
}
