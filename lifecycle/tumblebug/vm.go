package tumblebug

import (
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// How long an action on a VM may take before the sweeper says that nobody knows
// how it ended.
const (
	VMCreateTimeout  = 30 * time.Minute
	VMControlTimeout = 15 * time.Minute // Suspending, Resuming, Rebooting, Terminating
)

// VMSpec is the content of a VM. The zero value asks for nothing in particular.
// A VMSpec is a plain value.
type VMSpec struct {
	MCI      string // id of the MCI that it is part of
	Life     string // of that MCI
	SubGroup string // name of its group of equal VMs
	Provider string
	Region   string
	Spec     string // size
	Image    string
	// Asked is the operation of the MCI in which it was asked for its present
	// action, or the last one: a process that takes over asks nobody twice.
	Asked lifecycle.OpID
}

// VM is the machine of VMs with the payload [VMSpec]. It is immutable and safe
// for concurrent use.
var VM = fsm.Must[VMSpec](VMTable())

// VMTable returns the specification of [VM], for a machine with a payload of
// your own. A VM comes into being Creating.
func VMTable() fsm.Spec[State, Event] {
	states := append(operating(), fsm.State[State]{Name: Removed, Kind: fsm.Absent})
	return fsm.Spec[State, Event]{
		Name: "vm", Title: "CB-Tumblebug: VM", Initial: Creating,
		Actors: []fsm.Actor{User, CSP, Observer},
		States: states,
		Rows: slices.Concat(
			fsm.Rows(
				fsm.Move(Removed, Create, Creating).By(User).
					Note("the document's Create Action, for the one who starts the VM as he adds it"),
				fsm.Move(Creating, Succeed, Running).By(CSP),
				fsm.Move(Creating, Fail, Failed).By(CSP),
			),
			actions(),
			fsm.Rows(
				fsm.Move(Suspending, Succeed, Suspended).By(CSP),
				fsm.Move(Suspending, Fail, Failed).By(CSP),
				fsm.Move(Resuming, Succeed, Running).By(CSP),
				fsm.Move(Resuming, Fail, Failed).By(CSP),
				fsm.Move(Rebooting, Succeed, Running).By(CSP),
				fsm.Move(Rebooting, Fail, Failed).By(CSP),
				fsm.Move(Terminating, Succeed, Terminated).By(CSP),
				fsm.Move(Terminating, Fail, Failed).By(CSP),
			),
			force(states),
			fsm.Rows(
				fsm.Move(Failed, Refine, Removed).AlsoFrom(Undefined).By(User).OnlyForced().
					Note("the document's action outside its diagram; the provider is not asked"),
				fsm.Move(Terminated, Remove, Removed).AlsoFrom(Failed, Undefined).By(User).OnlyForced().
					Note("beyond the document: with its MCI, or rolled back"),
			),
			sightings(),
			fsm.Rows(
				fsm.Move(Creating, TimedOut, Undefined).After(VMCreateTimeout).
					Note("beyond the document: the provider is silent, and there may be a VM"),
				fsm.Move(Suspending, TimedOut, Undefined).AlsoFrom(Resuming, Rebooting, Terminating).After(VMControlTimeout).
					Note("beyond the document: the provider is silent"),
			),
		),
	}
}
