package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

type (
	// State is the state of a VM.
	State string
	// Event is a request of a user, or a report of the worker.
	Event string
)

// The states of a VM.
const (
	Absent   State = "absent"
	Creating State = "creating"
	Running  State = "running"
	Stopping State = "stopping"
	Stopped  State = "stopped"
	Starting State = "starting"
	Deleting State = "deleting"
	Failed   State = "failed"
)

// The events.
const (
	Create Event = "create"
	Start  Event = "start"
	Stop   Event = "stop"
	Resize Event = "resize"
	Delete Event = "delete"
	Done   Event = "done"  // the work of an operation has succeeded
	Fail   Event = "fail"  // it has failed
	Again  Event = "again" // it is done again, by this replica or another one
)

// The actors, besides the sweeper.
const (
	User     fsm.Actor = "user"
	Worker   fsm.Actor = "worker"
	Operator fsm.Actor = "operator" // migrates VMs to a new version
)

// VM is what the service keeps of a virtual machine besides its state.
type VM struct {
	Image   string `json:"image"`
	CPUs    int    `json:"cpus"`
	Memory  int    `json:"memory,omitempty"` // in MB, since version 2
	Address string `json:"address,omitempty"`
}

// limit is how long an operation may take before its work is done again.
const limit = 5 * time.Minute

var vmTable = newTable(Stopped)

// newTable returns the table of a VM's life. Its versions differ in the name of a state.
func newTable(stopped State) *fsm.Machine[State, Event, VM] {
	return fsm.Must[VM](fsm.Spec[State, Event]{
		Name: "vm", Initial: Absent, Actors: []fsm.Actor{User, Worker},
		States: []fsm.State[State]{
			{Name: Absent, Kind: fsm.Absent},
			{Name: Creating, Kind: fsm.Transitional},
			{Name: Running, Kind: fsm.Stable},
			{Name: Stopping, Kind: fsm.Transitional},
			{Name: stopped, Kind: fsm.Stable},
			{Name: Starting, Kind: fsm.Transitional},
			{Name: Deleting, Kind: fsm.Transitional},
			{Name: Failed, Kind: fsm.Failed},
		},
		Rows: fsm.Rows(
			fsm.Move(Absent, Create, Creating).By(User).If(quota),
			fsm.Move(Running, Stop, Stopping).By(User),
			fsm.Move(stopped, Start, Starting).By(User),
			fsm.Move(stopped, Resize, stopped).By(User).If(quota),
			fsm.Move(Running, Delete, Deleting).AlsoFrom(stopped, Failed).By(User),

			fsm.Move(Creating, Done, Running).AlsoFrom(Starting).By(Worker),
			fsm.Move(Stopping, Done, stopped).By(Worker),
			fsm.Move(Deleting, Done, Absent).By(Worker),
			fsm.Move(Creating, Fail, Failed).AlsoFrom(Starting, Stopping, Deleting).By(Worker),

			fsm.Redo(Creating, Again, limit),
			fsm.Redo(Starting, Again, limit),
			fsm.Redo(Stopping, Again, limit),
			fsm.Redo(Deleting, Again, limit),
		),
	})
}

// maxCPUs is the quota of one VM. A quota of all VMs together is a record with a counter,
// which changes in the same commit: see lifecycle.Config.BeforeCommit.
const maxCPUs = 8

// quota refuses every request that would leave a VM with too many CPUs.
var quota = fsm.When("quota", func(_ context.Context, _, after *VM) error {
	if after.CPUs > maxCPUs {
		return &quotaError{after.CPUs}
	}
	return nil
})

// quotaError is the refusal as a client gets it.
type quotaError struct{ cpus int }

func (e *quotaError) Error() string {
	return fmt.Sprintf("%d CPUs are above the quota of %d", e.cpus, maxCPUs)
}
func (e *quotaError) HTTPStatus() int     { return http.StatusForbidden }
func (e *quotaError) ProblemCode() string { return "quota" }
