package tumblebug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// An MCI is created and suspended. A request during the suspension is refused.
func Example() {
	ctx := context.Background()
	system, _ := tumblebug.New(lifecycle.NewMemoryStore(), newFastCloud(), &tumblebug.Config{Poll: time.Millisecond})
	defer system.Close(ctx)
	_, err := system.CreateMci(ctx, "default", tumblebug.MciReq{Name: "shop", SubGroups: []tumblebug.SubGroup{
		{Name: "web", Size: 3, Provider: "aws", Region: "ap-northeast-2"},
		{Name: "db", Size: 2, Provider: "azure", Region: "koreacentral"},
	}})
	fmt.Println(err)
	status, _ := system.Wait(ctx, "default", "shop")
	fmt.Println(status.Status)

	text, _ := system.HandleMciAction(ctx, "default", "shop", "suspend", false)
	fmt.Println(text)
	_, err = system.HandleMciAction(ctx, "default", "shop", "terminate", false)
	fmt.Println(err)
	status, _ = system.Wait(ctx, "default", "shop")
	fmt.Println(status.Status, status.TargetAction)
	_, err = system.HandleMciAction(ctx, "default", "shop", "reboot", false)
	fmt.Println(errors.Is(err, fsm.ErrForcedOnly))

	// Output:
	// <nil>
	// Running:5 (R:5/5)
	// Suspending the MCI
	// MCI is under Suspend, please try later
	// Suspended:5 (R:0/5) None
	// true
}

// An MCI that exists already at its providers is added with the present states of its VMs.
func ExampleSystem_AddMci() {
	ctx := context.Background()
	system, _ := tumblebug.New(lifecycle.NewMemoryStore(), newFastCloud(), nil)
	defer system.Close(ctx)
	web := tumblebug.ExistingVM{
		Name: "web-1", State: tumblebug.Running,
		VMSpec: tumblebug.VMSpec{
			SubGroup: "web", Provider: "aws", Region: "ap-northeast-2", Attributes: json.RawMessage(`{"instance":"i-0abcd"}`),
		},
	}
	db := tumblebug.ExistingVM{
		Name: "db-1", State: tumblebug.Creating, VMSpec: tumblebug.VMSpec{SubGroup: "db", Provider: "azure", Region: "koreacentral"},
	}
	_, err := system.AddMci(ctx, "default", tumblebug.ExistingMci{Name: "shop", VMs: []tumblebug.ExistingVM{web, db}})
	fmt.Println(err)

	db.State = tumblebug.Suspended
	status, err := system.AddMci(ctx, "default", tumblebug.ExistingMci{Name: "shop", VMs: []tumblebug.ExistingVM{web, db}})
	fmt.Println(status.Status, err)
	vm, _ := system.VMs().Get(ctx, "default/shop/web-1")
	fmt.Println(vm.State, string(vm.Payload.Attributes))

	// Output:
	// lifecycle: invalid request: VM "db-1": state "Creating" is transitional: only an object at rest can be added
	// Partial-Suspended:1 (R:1/2) <nil>
	// Running {"instance":"i-0abcd"}
}

// The REST API of the document.
func ExampleHandler() {
	ctx := context.Background()
	system, _ := tumblebug.New(lifecycle.NewMemoryStore(), newFastCloud(), &tumblebug.Config{Poll: time.Millisecond})
	defer system.Close(ctx)
	_, err := system.CreateMci(ctx, "default", tumblebug.MciReq{Name: "shop", SubGroups: []tumblebug.SubGroup{
		{Name: "web", Provider: "aws", Region: "ap-northeast-2"},
	}})
	fmt.Println(err)
	_, _ = system.Wait(ctx, "default", "shop")

	handler := tumblebug.Handler(system)
	for _, query := range []string{"action=suspend&dry=true", "action=suspend"} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/tumblebug/ns/default/mci/shop?"+query, nil))
		fmt.Print(answer.Code, " ", answer.Body)
	}

	// Output:
	// <nil>
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"lifecycle: invalid request: parameter \"dry\" is not supported, or is given twice","code":"invalid"}
	// 200 {"message":"Suspending the MCI"}
}

// The reboot of a VM is not reported before its deadline. Then the observer finds the VM
// running.
func ExampleVM() {
	vm := tumblebug.VM.Instance()
	for _, r := range []struct {
		event tumblebug.Event
		by    fsm.Actor
	}{
		{tumblebug.Succeed, tumblebug.CSP},
		{tumblebug.Resume, tumblebug.User}, // not allowed
		{tumblebug.Reboot, tumblebug.User},
		{tumblebug.SeeRunning, tumblebug.Observer}, // does not end a reboot
		{tumblebug.TimedOut, fsm.Sweeper},
		{tumblebug.SeeRunning, tumblebug.Observer},
	} {
		_, err := vm.Fire(context.Background(), r.event, r.by, nil)
		fmt.Println(r.event, vm.State(), err)
	}

	// Output:
	// Succeed Running <nil>
	// Resume Running fsm: only by force: vm: Resume in Running by user
	// Reboot Rebooting <nil>
	// SeeRunning Rebooting fsm: not allowed: vm: SeeRunning in Rebooting by observer
	// TimedOut Undefined <nil>
	// SeeRunning Running <nil>
}

// The permitted actions of an MCI without force.
func ExampleMCI() {
	for _, s := range []tumblebug.State{tumblebug.Running, tumblebug.Suspended, tumblebug.Failed} {
		fmt.Print(s, ":")
		for event := range tumblebug.MCI.Permitted(tumblebug.MCI.At(s), tumblebug.User) {
			fmt.Print(" ", event)
		}
		fmt.Println()
	}

	// Output:
	// Running: Suspend Reboot Terminate
	// Suspended: Resume Terminate
	// Failed:
}
