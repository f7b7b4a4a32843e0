package ovc_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/ovc"
)

// A machine is migrated. A user destroys it meanwhile: the request is accepted and performed
// after the migration. Another request is refused.
func Example() {
	ctx := context.Background()
	migrated := make(chan struct{})
	s := ovc.Must(lifecycle.NewMemoryStore(), &ovc.Config{Method: func(_ context.Context, call ovc.Call) error {
		if call.Method == ovc.Migrate {
			<-migrated
			fmt.Println("to", string(call.Args))
		}
		fmt.Println(call.Method, call.ID)
		return nil
	}})
	s.Add(ctx, ovc.KindVM, "m1", ovc.Running, ovc.Model{}) // it exists already
	s.Migrate(ctx, "m1", &ovc.Options{Args: json.RawMessage(`{"node":"n2"}`)})
	destroying, _ := s.Do(ctx, ovc.KindVM, "m1", ovc.Destroy, nil)
	fmt.Println("m1 is", destroying.Admitted().State)
	_, err := s.Do(ctx, ovc.KindVM, "m1", ovc.Stop, nil)
	fmt.Println(lifecycle.HTTPStatus(err), err)
	close(migrated)
	destroying.Wait(ctx)
	// Output:
	// m1 is DESTROYING
	// 409 Cannot execute action at this time
	// to {"node":"n2"}
	// migrate m1
	// stop m1
	// delete m1
	// destroy m1
}

// A halted machine gets a disk and is halted again. A second action is refused meanwhile.
func Example_machine() {
	ctx := context.Background()
	vm, err := ovc.VM.InstanceAt(ovc.VM.At(ovc.Halted))
	if err != nil {
		fmt.Println(err)
		return
	}
	fire := func(e ovc.Event, by fsm.Actor) {
		_, err := vm.Fire(ctx, e, by, nil)
		fmt.Println(e, "->", vm.State(), err)
	}
	fire(ovc.AddDisk, ovc.API)
	fire(ovc.Destroy, ovc.API)
	fire(ovc.Done, ovc.Worker)
	fire(ovc.Destroy, ovc.API)
	fire(ovc.Stuck, ovc.Observer) // the deadline has passed
	// Output:
	// add_disk -> ADDING_DISK <nil>
	// destroy -> ADDING_DISK fsm: not allowed: ovc-vm: destroy in ADDING_DISK by api
	// done -> HALTED <nil>
	// destroy -> DESTROYING <nil>
	// stuck -> HALTED <nil>
}

func ExampleValidateTransition() {
	fmt.Println(ovc.ValidateTransition(ovc.KindVM, ovc.Running, ovc.Paused))
	fmt.Println(ovc.ValidateTransition(ovc.KindVM, ovc.Running, ovc.Running)) // by a reboot
	fmt.Println(ovc.ValidateTransition(ovc.KindVM, ovc.Halted, ovc.Running))
	fmt.Println(ovc.ValidateTransition(ovc.KindDisk, ovc.Assigned, ovc.Deleted)) // TOBEDELETED
	fmt.Println(ovc.ValidateTransition(ovc.KindVM, "ON", "OFF"))
	// Output:
	// true
	// true
	// false
	// false
	// false
}

func ExampleTransitionStates() {
	fmt.Println(ovc.TransitionStates(ovc.KindNode))
	// Output: [PUTTING_IN_MAINTENANCE ENABLING DECOMMISSIONING]
}

// UpdateStatus changes the status only if it is the expected one.
func ExampleService_UpdateStatus() {
	ctx := context.Background()
	s := ovc.Must(lifecycle.NewMemoryStore(), nil)
	vm, err := s.Add(ctx, ovc.KindVM, "m1", "", ovc.Model{})
	fmt.Println(vm.State, err)
	vm, err = s.UpdateStatus(ctx, ovc.KindVM, "m1", ovc.Virtual, ovc.Deploying)
	fmt.Println(vm.State, err)
	_, err = s.UpdateStatus(ctx, ovc.KindVM, "m1", ovc.Virtual, ovc.Deploying)
	fmt.Println(err)
	fmt.Println(errors.Is(err, ovc.ErrOtherAction), errors.Is(err, lifecycle.ErrConflict))
	// Output:
	// VIRTUAL <nil>
	// DEPLOYING <nil>
	// 409 Conflict: Other action currently happening on vm ID: m1
	// true true
}
