package tumblebug

import "github.com/interlock-go/interlock/fsm"

// The actors. The first four are the document's.
const (
	User      fsm.Actor = "user"
	Tumblebug fsm.Actor = "tumblebug" // prepares an MCI and starts its VMs
	CSP       fsm.Actor = "csp"       // the cloud provider: reports how an action on a VM ended
	Aggregate fsm.Actor = "aggregate" // reports how an action on an MCI ended, from the states of its VMs
	Observer  fsm.Actor = "observer"  // reports states that no action of this package has caused
)

// State is the status of an MCI or a VM, without the prefix and the counts of the
// document's rendering.
type State string

// The states. Preparing and Prepared are states of MCIs only. Removed is not in the
// document: it is the absent state, in which no record exists.
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

// Event is a request to an MCI or a VM, or a report about it.
type Event string

// The events. The first six are actions of the document. The document's action Create
// adds an MCI without an event, and a VM with the event Create.
const (
	Create    Event = "Create" // VM only
	Suspend   Event = "Suspend"
	Resume    Event = "Resume"
	Reboot    Event = "Reboot"
	Terminate Event = "Terminate"
	Refine    Event = "Refine" // VM only: removes the record

	Remove Event = "Remove" // removes the record of an MCI or a VM that has ended

	Provision Event = "Provision" // MCI only: its VMs are started
	Withdraw  Event = "Withdraw"  // MCI only: ends a creation on hold
	Succeed   Event = "Succeed"   // the operation succeeded; for an MCI, on some of its VMs
	Fail      Event = "Fail"      // the operation failed; for an MCI, on all of its VMs

	SeeRunning    Event = "SeeRunning"
	SeeSuspended  Event = "SeeSuspended"
	SeeTerminated Event = "SeeTerminated"
	SeeFailed     Event = "SeeFailed"
	SeeNothing    Event = "SeeNothing" // the provider gives no usable status

	TakeOver Event = "TakeOver" // VM only: the process of its action has died
	TimedOut Event = "TimedOut" // the deadline has passed without a report
)
