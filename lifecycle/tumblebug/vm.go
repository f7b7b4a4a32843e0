package tumblebug

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// The time that an action on a VM may take. After it the sweeper moves the VM to
// Undefined, unless the provider shows how the action ended. [Config].VMTimeouts has
// other times.
const (
	VMCreateTimeout  = 30 * time.Minute
	VMControlTimeout = 15 * time.Minute // Suspending, Resuming, Rebooting, Terminating
)

// VMSpec is the content of a VM. It is a value; copies share the attributes.
type VMSpec struct {
	Life     string // of its MCI, see [MCISpec]
	SubGroup string // name of its group of equal VMs
	Provider string
	Region   string
	Spec     string // size
	Image    string
	// Asked is the operation of the MCI that has requested the present or the last
	// action of the VM. A process that continues the operation requests nothing twice.
	Asked lifecycle.OpID
	// Continues is the operation of the VM whose request to the provider the present one
	// repeats, because its process has died. 0: none.
	Continues lifecycle.OpID `json:",omitempty"`
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them.
	Attributes json.RawMessage `json:",omitempty"`
}

// VM is the machine of VMs with the payload [VMSpec]. It is immutable and safe for
// concurrent use.
var VM = fsm.Must[VMSpec](vmTable())

func vmTable() fsm.Spec[State, Event] {
	states := append(operating(), fsm.State[State]{Name: Removed, Kind: fsm.Absent})
	return fsm.Spec[State, Event]{
		Name: "vm", Title: "CB-Tumblebug: VM", Initial: Creating,
		Actors: []fsm.Actor{User, CSP, Observer},
		States: states,
		Rows: slices.Concat(
			fsm.Rows(
				fsm.Move(Removed, Create, Creating).By(User).
					Note("the document's Create Action: adds and starts the VM in one step"),
				fsm.Move(Creating, Fail, Failed).AlsoFrom(Suspending, Resuming, Rebooting, Terminating).By(CSP),
			),
			successes(CSP),
			actions(),
			force(states),
			fsm.Rows(
				fsm.Move(Failed, Refine, Removed).AlsoFrom(Undefined).By(User).OnlyForced().
					Note("the document's action outside its diagram; sends no request to the provider"),
				fsm.Move(Terminated, Remove, Removed).By(User).OnlyForced().
					Note("beyond the document: removed with its MCI"),
			),
			observations(),
			takeOvers(Creating, Suspending, Resuming, Rebooting, Terminating),
			fsm.Rows(
				fsm.Move(Creating, TimedOut, Undefined).After(VMCreateTimeout).
					Note("beyond the document: the provider does not answer, and the VM may exist"),
				fsm.Move(Suspending, TimedOut, Undefined).AlsoFrom(Resuming, Rebooting, Terminating).After(VMControlTimeout).
					Note("beyond the document: the provider does not answer"),
			),
		),
	}
}

func takeOvers(during ...State) (rows []fsm.Row[State, Event]) {
	for _, s := range during {
		rows = append(rows, fsm.Move(s, TakeOver, s).By(Observer).Superseding().
			Note("beyond the document: another process continues the action"))
	}
	return rows
}
