package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// errQuota is a refusal with a code and an HTTP status of its own.
type errQuota int

func (e errQuota) Error() string     { return fmt.Sprintf("%d CPUs are above the quota of 8", int(e)) }
func (errQuota) HTTPStatus() int     { return http.StatusForbidden }
func (errQuota) ProblemCode() string { return "quota" }

// A guard sees the payload as the request leaves it, so the same quota holds for every verb.
func Example_quota() {
	type VM struct{ CPUs int }
	quota := fsm.When("quota", func(_ context.Context, _, after *VM) error {
		if after.CPUs > 8 {
			return errQuota(after.CPUs)
		}
		return nil
	})
	table := fsm.Must[VM](fsm.Spec[string, string]{
		Name: "vm", Initial: "absent", Actors: []fsm.Actor{"user", "worker"},
		States: []fsm.State[string]{
			{Name: "absent", Kind: fsm.Absent}, {Name: "stopped"}, {Name: "resizing", Kind: fsm.Transitional},
		},
		Rows: fsm.Rows(
			fsm.Move("absent", "create", "stopped").By("user").If(quota),
			fsm.Move("stopped", "edit", "stopped").By("user").If(quota),
			fsm.Move("stopped", "resize", "resizing").By("user").If(quota),
			fsm.Move("resizing", "done", "stopped").By("worker"),
			fsm.Return("resizing", "late").After(time.Minute),
		),
	})
	ctx := context.Background()
	vms := lifecycle.Must(table, lifecycle.NewMemoryStore(), &lifecycle.Config[string]{
		WorkerActor: "worker", Done: []string{"done"},
	})
	twelve := &lifecycle.Change[VM]{Edit: func(vm *VM) error { vm.CPUs = 12; return nil }}
	work := lifecycle.Func(func(context.Context) error { return nil })

	_, tooMany := vms.Create(ctx, "vm-1", "create", "user", VM{CPUs: 16}, nil)
	_, _ = vms.Create(ctx, "vm-1", "create", "user", VM{CPUs: 2}, nil)
	_, fired := vms.Fire(ctx, "vm-1", "edit", "user", twelve)
	_, done := vms.Do(ctx, "vm-1", "resize", "user", work, twelve)
	for _, err := range []error{tooMany, fired, done} {
		problem := lifecycle.Problem(err)
		fmt.Println(problem.Status, problem.Code, errors.Is(err, fsm.ErrGuard))
		fmt.Println(err)
	}
	vm, _ := vms.Get(ctx, "vm-1")
	fmt.Println(vm.State, vm.Payload.CPUs)
	// Output:
	// 403 quota true
	// lifecycle: create vm "vm-1": create by user: refused by a guard: quota: 16 CPUs are above the quota of 8
	// 403 quota true
	// lifecycle: fire vm "vm-1": edit by user in stopped: refused by a guard: quota: 12 CPUs are above the quota of 8
	// 403 quota true
	// lifecycle: do vm "vm-1": resize by user in stopped: refused by a guard: quota: 12 CPUs are above the quota of 8
	// stopped 2
}
