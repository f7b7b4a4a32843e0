package main

import (
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// The actors, besides the sweeper.
const (
	User     fsm.Actor = "user"
	Worker   fsm.Actor = "worker"   // reports how the work of a VM has ended
	Agent    fsm.Actor = "agent"    // reports what happened to a disk
	Operator fsm.Actor = "operator" // moves what nothing else moves
)

// VM is what the service keeps of a virtual machine besides its state.
type VM struct {
	CPUs     int    `json:"cpus"`
	Password string `json:"password,omitempty"` // the page does not show it
}

// The limits are short, so that the sweeper has much to do.
const (
	vmLimit   = 12 * time.Second
	diskLimit = 4 * time.Second
)

// vmTable is the table of examples/service, without the quota. After a crash the sweeper does the work again.
var vmTable = fsm.Must[VM](fsm.Spec[string, string]{
	Name: "vm", Title: "Virtual machines", Initial: "absent", Actors: []fsm.Actor{User, Worker},
	States: []fsm.State[string]{
		{Name: "absent", Kind: fsm.Absent},
		{Name: "creating", Kind: fsm.Transitional},
		{Name: "running", Kind: fsm.Stable},
		{Name: "stopping", Kind: fsm.Transitional},
		{Name: "stopped", Kind: fsm.Stable},
		{Name: "starting", Kind: fsm.Transitional},
		{Name: "deleting", Kind: fsm.Transitional},
		{Name: "failed", Kind: fsm.Failed},
	},
	Rows: fsm.Rows(
		fsm.Move("absent", "create", "creating").By(User),
		fsm.Move("running", "stop", "stopping").By(User),
		fsm.Move("stopped", "start", "starting").By(User),
		fsm.Move("stopped", "resize", "stopped").By(User),
		fsm.Move("running", "delete", "deleting").AlsoFrom("stopped", "failed").By(User),

		fsm.Move("creating", "done", "running").AlsoFrom("starting").By(Worker),
		fsm.Move("stopping", "done", "stopped").By(Worker),
		fsm.Move("deleting", "done", "absent").By(Worker),
		fsm.Move("creating", "fail", "failed").AlsoFrom("starting", "stopping", "deleting").By(Worker),

		fsm.Redo("creating", "again", vmLimit),
		fsm.Redo("starting", "again", vmLimit),
		fsm.Redo("stopping", "again", vmLimit),
		fsm.Redo("deleting", "again", vmLimit),
	),
})

// Disk is what the service keeps of a disk besides its state.
type Disk struct {
	GB int `json:"gb"`
}

// diskTable is the table of a disk. An agent attaches and detaches it. If the agent reports
// nothing, the sweeper returns the disk to the state before the request.
var diskTable = fsm.Must[Disk](fsm.Spec[string, string]{
	Name: "disk", Title: "Disks", Initial: "detached", Actors: []fsm.Actor{User, Agent, Operator},
	States: []fsm.State[string]{
		{Name: "detached", Kind: fsm.Stable},
		{Name: "attaching", Kind: fsm.Transitional},
		{Name: "attached", Kind: fsm.Stable},
		{Name: "detaching", Kind: fsm.Transitional},
		{Name: "damaged", Kind: fsm.Transitional, Manual: "an operator restores the disk, and fires restored"},
	},
	Rows: fsm.Rows(
		fsm.Move("detached", "attach", "attaching").By(User),
		fsm.Move("attached", "detach", "detaching").By(User),
		fsm.Move("attaching", "done", "attached").By(Agent),
		fsm.Move("detaching", "done", "detached").By(Agent),
		fsm.Move("detached", "damage", "damaged").By(Agent),
		fsm.Move("damaged", "restored", "detached").By(Operator),
		fsm.Return("attaching", "late").AlsoFrom("detaching").After(diskLimit),
	),
})
