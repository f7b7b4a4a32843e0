package fsm_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// A guide for programs that use github.com/looplab/fsm. Such a program declares, for each
// object, a table of events and a map of callbacks by name:
//
//	vm := fsm.NewFSM("stopped",
//		fsm.Events{
//			{Name: "start", Src: []string{"stopped", "failed"}, Dst: "running"},
//			{Name: "stop", Src: []string{"running"}, Dst: "stopped"},
//			{Name: "crash", Src: []string{"running"}, Dst: "failed"},
//		},
//		fsm.Callbacks{
//			"before_start":  func(_ context.Context, e *fsm.Event) { e.Cancel(paid(e.Args[0])) },
//			"enter_running": func(_ context.Context, e *fsm.Event) { log.Println(e.Src, e.Dst) },
//		})
//	err := vm.Event(ctx, "start", account)
//
// The same with this package:
//
//	an EventDesc with Src and Dst   Move, with AlsoFrom for further sources
//	the initial state               Spec.Initial; all states are declared, with their kinds
//	no counterpart                  By: which actor may fire the row
//	before_EVENT with Cancel        If: a guard, a typed function of the payload
//	e.Args                          the payload
//	enter_STATE, after_EVENT        code after Fire, which has returned the step; for
//	                                logs and metrics, Observe
//	leave_STATE with Async          a transitional state, and a second event that reports
//	                                the end of the work: Manager.Do of package lifecycle
//	NewFSM for each object          one machine, and an Instance for each object
//	Event, Current, Can             Fire, State, Machine.Can
//	AvailableTransitions            Machine.Permitted
//	InvalidEventError and others    errors.Is with ErrNotAllowed and the other sentinels
//	SetState                        Machine.InstanceAt, or Manager.Override
//
// New refuses a table with a misspelt state. Stores, histories, deadlines and several
// processes are in package lifecycle, which uses the same machine.
func Example_fromLooplab() {
	ctx := context.Background()
	type account struct{ Paid bool }
	paid := fsm.When("paid", func(_ context.Context, _, after *account) error {
		if !after.Paid {
			return errors.New("the account is not paid")
		}
		return nil
	})
	vms := fsm.Must[account](fsm.Spec[string, string]{
		Name: "vm", Initial: "stopped", Actors: []fsm.Actor{"user", "agent"},
		States: []fsm.State[string]{{Name: "stopped"}, {Name: "running"}, {Name: "failed", Kind: fsm.Failed}},
		Rows: fsm.Rows(
			fsm.Move("stopped", "start", "running").AlsoFrom("failed").By("user").If(paid),
			fsm.Move("running", "stop", "stopped").By("user"),
			fsm.Move("running", "crash", "failed").By("agent"),
		),
	}).Observe(fsm.Observer{Moved: func(_ context.Context, m fsm.Moved) { fmt.Println("moved:", m.From, "->", m.To) }})

	vm := vms.Instance()
	_, err := vm.Fire(ctx, "start", "user", &account{})
	fmt.Println(err)
	step, err := vm.Fire(ctx, "start", "user", &account{Paid: true})
	fmt.Println(step.State, err)
	fmt.Println(vms.Can(ctx, vm.Status(), "start", "user", nil))
	for event := range vms.Permitted(vm.Status(), "user") {
		fmt.Println("a user may", event)
	}
	// Output:
	// fsm: refused by a guard: vm: start in stopped by user: paid: the account is not paid
	// moved: stopped -> running
	// running <nil>
	// fsm: not allowed: vm: start in running by user
	// a user may stop
}
