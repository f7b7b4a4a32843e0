package tumblebug

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/aggregate"
)

// classes are the states of VMs in the order of preference between equal counts.
var classes = []State{
	Failed, Suspended, Running, Terminated, Creating, Suspending, Resuming, Rebooting, Terminating, Undefined,
}

// dominant is the rule for the status of an MCI: the state that most of its VMs have.
var dominant = aggregate.Must(aggregate.Spec[State, State]{
	Name: "mci-status", Rule: aggregate.Dominant, Children: VM, Classes: aggregate.Each(classes...), Empty: Undefined,
})

// Status is the status of an MCI that follows from its VMs. Decisions use its fields,
// and never its String. It is a plain value.
type Status struct {
	State   State // the dominant state
	Partial bool  // not all VMs have it
	Count   int   // VMs that have it
	Running int   // VMs that are Running
	Total   int   // VMs of the MCI, or expected VMs if these are more
}

// String renders the status in the format of the document: Partial-Running:3 (R:3/5).
func (s Status) String() string {
	partial := ""
	if s.Partial {
		partial = "Partial-"
	}
	return fmt.Sprintf("%s%s:%d (R:%d/%d)", partial, s.State, s.Count, s.Running, s.Total)
}

// StatusCountInfo has the eleven counts of the document. It is a plain value.
type StatusCountInfo struct {
	CountTotal       int `json:"countTotal"` // VMs of the MCI, or expected VMs if these are more
	CountCreating    int `json:"countCreating"`
	CountRunning     int `json:"countRunning"`
	CountFailed      int `json:"countFailed"`
	CountSuspended   int `json:"countSuspended"`
	CountRebooting   int `json:"countRebooting"`
	CountTerminated  int `json:"countTerminated"`
	CountSuspending  int `json:"countSuspending"`
	CountResuming    int `json:"countResuming"`
	CountTerminating int `json:"countTerminating"`
	CountUndefined   int `json:"countUndefined"`
}

// Summarize returns the status of an MCI from the states of its VMs. While members are
// being created, expected is their number, and the total if it is greater. The status of
// an MCI without VMs is Undefined. The error is [fsm.ErrUnknownState] for a state that
// VMs do not have, and [lifecycle.ErrInvalid] for a negative number.
func Summarize(vms []State, expected int) (Status, StatusCountInfo, error) {
	if expected < 0 {
		return Status{}, StatusCountInfo{}, fmt.Errorf("tumblebug: summarize VMs: %w: %d VMs expected", lifecycle.ErrInvalid, expected)
	}
	n := count(vms)
	now, err := dominant.Of(n)
	if err != nil {
		return Status{}, StatusCountInfo{}, err
	}
	total := max(now.Total, expected)
	info := StatusCountInfo{
		CountTotal: total, CountCreating: n[Creating], CountRunning: n[Running], CountFailed: n[Failed],
		CountSuspended: n[Suspended], CountRebooting: n[Rebooting], CountTerminated: n[Terminated],
		CountSuspending: n[Suspending], CountResuming: n[Resuming], CountTerminating: n[Terminating],
		CountUndefined: n[Undefined],
	}
	return Status{State: now.State, Partial: now.Count < total, Count: now.Count, Running: n[Running], Total: total}, info, nil
}

// count returns the number of VMs in each state.
func count(vms []State) map[State]int {
	counts := make(map[State]int)
	for _, s := range vms {
		counts[s]++
	}
	return counts
}

// Conclude returns the final state of an MCI when the action has ended for all of its
// VMs, which have these states. By the document's diagram it is the target of the
// action if some VMs have reached it; Terminate requires all VMs. Otherwise it is
// Undefined if a VM is Undefined, and Failed if none is. Conclude returns false while a
// VM is in transition, and for an action that VMs do not have.
func Conclude(action Action, vms []State) (State, bool) {
	if action.during() == "" {
		return "", false
	}
	reached, unknown := 0, 0
	for _, s := range vms {
		switch {
		case VM.StateIndex(s) < 0 || s == Removed || !atRest(s):
			return "", false
		case s == action.Target():
			reached++
		case s == Undefined:
			unknown++
		}
	}
	enough := reached > 0 || len(vms) == 0 && action != ActionCreate
	if action == ActionTerminate {
		enough = reached == len(vms)
	}
	switch {
	case enough:
		return action.Target(), true
	case unknown > 0:
		return Undefined, true
	}
	return Failed, true
}

// settled returns the state of an MCI at rest that follows from its VMs, and false if
// none follows. VMs that are Failed or Terminated count only if there are no others: an
// MCI is Terminated if all of its VMs are, and Failed if all others have failed. VMs in
// transition do not count.
func settled(vms []State) (State, bool) {
	n := count(vms)
	others, _ := dominant.Of(map[State]int{Running: n[Running], Suspended: n[Suspended], Undefined: n[Undefined]})
	switch {
	case others.Count > 0:
		return others.State, true
	case len(vms) == 0 || n[Failed]+n[Terminated] < len(vms):
		return "", false
	case n[Failed] > 0:
		return Failed, true
	}
	return Terminated, true
}

// atRest reports whether an MCI or a VM in this state has no running action. The empty
// state is that of a record that does not exist.
func atRest(s State) bool { return MCI.Kind(s).Resting() }

func restless(vm vmRecord) bool { return !atRest(vm.State) }

// resting are the states of an MCI at rest, for preconditions.
var resting = slices.DeleteFunc(slices.Collect(MCI.States()), func(s State) bool { return !atRest(s) || s == Removed })

// transitional are the states of an MCI in an operation.
var transitional = slices.DeleteFunc(slices.Collect(MCI.States()), atRest)

func states(vms []vmRecord) []State {
	list := make([]State, 0, len(vms))
	for i := range vms {
		list = append(list, vms[i].State)
	}
	return list
}
