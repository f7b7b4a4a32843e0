package tumblebug

import "github.com/interlock-go/interlock/fsm"

// The actors. The first four are the document's.
const (
	User      fsm.Actor = "user"
	Tumblebug fsm.Actor = "tumblebug" // prepares an MCI and starts its VMs
	CSP       fsm.Actor = "csp"       // the cloud provider: how an action on a VM ended
	Aggregate fsm.Actor = "aggregate" // how an action on an MCI ended, told from its VMs
	Observer  fsm.Actor = "observer"  // what was seen outside, without an action of ours
)

// State is the status of an MCI or a VM, without the prefix and the counts that
// the document renders it with.
type State string

// The states. Preparing and Prepared are for MCIs only. Removed is no status of
// the document, but what Refine leaves of a VM and Withdraw of an MCI.
const (
	Preparing   State = "Preparing"
	Prepared    State = "Prepared"
	Creating    State = "Creating"
	Running     State = "Running"
	Suspending  State = "Suspending"
	Suspended   State = "Suspended"
	Resuming    State = "Resuming"
	Rebooting   State = "Rebooting"
	Terminating State = "Terminating"
	Terminated  State = "Terminated"
	Failed      State = "Failed"
	Undefined   State = "Undefined"
	Removed     State = "Removed"
)

// Event is what is asked of an MCI or a VM, or reported about it.
type Event string

// The events. The first six are actions of the document. Its action Create is the
// addition of the object, and for a VM also an event, with which [lifecycle.Manager.Do]
// adds it and starts it at once.
const (
	Create    Event = "Create" // of a VM
	Suspend   Event = "Suspend"
	Resume    Event = "Resume"
	Reboot    Event = "Reboot"
	Terminate Event = "Terminate"
	Refine    Event = "Refine" // of a VM: forget it

	Remove Event = "Remove" // forget what has ended

	Provision Event = "Provision" // of an MCI: its VMs are started
	Withdraw  Event = "Withdraw"  // of an MCI that was asked to hold: forget it
	Release   Event = "Release"   // of the same, or of one that cannot be prepared, before that: what was prepared for it goes
	Succeed   Event = "Succeed"   // what was under way has succeeded, for an MCI in some of its VMs
	Fail      Event = "Fail"      // what was under way has failed, for an MCI in all of its VMs

	SeeRunning    Event = "SeeRunning"
	SeeSuspended  Event = "SeeSuspended"
	SeeTerminated Event = "SeeTerminated"
	SeeFailed     Event = "SeeFailed"
	SeeNothing    Event = "SeeNothing" // looked, and cannot tell

	TimedOut Event = "TimedOut" // nobody has said in time how it ended
)
