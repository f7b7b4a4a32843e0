package tumblebug_test

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle/tumblebug"
)

// A VM whose reboot nobody reports: it is looked up, and found running.
func Example() {
	vm := tumblebug.VM.Instance()
	for _, say := range []struct {
		event tumblebug.Event
		by    fsm.Actor
	}{
		{tumblebug.Succeed, tumblebug.CSP},
		{tumblebug.Resume, tumblebug.User}, // it runs
		{tumblebug.Reboot, tumblebug.User},
		{tumblebug.SeeRunning, tumblebug.Observer}, // says nothing about the reboot
		{tumblebug.TimedOut, fsm.Sweeper},
		{tumblebug.SeeRunning, tumblebug.Observer},
	} {
		_, err := vm.Fire(context.Background(), say.event, say.by, nil)
		fmt.Println(say.event, vm.State(), err)
	}

	// Output:
	// Succeed Running <nil>
	// Resume Running fsm: only by force: vm: Resume in Running by user
	// Reboot Rebooting <nil>
	// SeeRunning Rebooting fsm: not allowed: vm: SeeRunning in Rebooting by observer
	// TimedOut Undefined <nil>
	// SeeRunning Running <nil>
}

// What a user may ask of an MCI, without force.
func ExampleMCITable() {
	for _, s := range []tumblebug.State{tumblebug.Running, tumblebug.Suspended, tumblebug.Failed} {
		fmt.Print(s, ":")
		for row := range tumblebug.MCI.Permitted(tumblebug.MCI.At(s), tumblebug.User) {
			fmt.Print(" ", row.Event)
		}
		fmt.Println()
	}

	// Output:
	// Running: Suspend Reboot Terminate
	// Suspended: Resume Terminate
	// Failed:
}
