package tumblebug

import (
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/aggregate"
)

// classes are the statuses of VMs in the order of preference between equal counts.
var classes = []State{
	Failed, Suspended, Running, Terminated, Creating, Suspending, Resuming, Rebooting, Terminating, Undefined,
}

// dominant is the rule for the status of an MCI: the status that most of its VMs
// have.
var dominant = aggregate.Must(aggregate.Spec[State, State]{
	Name: "mci-status", Rule: aggregate.Dominant, Children: VM, Classes: aggregate.Each(classes...), Empty: Undefined,
})

// Status is the status of an MCI as its VMs make it up. Decisions are made on the
// fields, people read the String. It is a plain value.
type Status struct {
	State   State // the dominant status
	Partial bool  // not all VMs have it
	Count   int   // VMs that have it
	Running int   // VMs that run
	Total   int   // VMs there are, or that are being created if these are more
}

// String renders the status as the document does: Partial-Running:3 (R:3/5).
func (s Status) String() string {
	partial := ""
	if s.Partial {
		partial = "Partial-"
	}
	return fmt.Sprintf("%s%s:%d (R:%d/%d)", partial, s.State, s.Count, s.Running, s.Total)
}

// StatusCountInfo are the eleven counts of the document. It is a plain value.
type StatusCountInfo struct {
	CountTotal       int `json:"countTotal"`       // VMs in the MCI, or expected
	CountCreating    int `json:"countCreating"`    // being created
	CountRunning     int `json:"countRunning"`     // running
	CountFailed      int `json:"countFailed"`      // failed
	CountSuspended   int `json:"countSuspended"`   // suspended
	CountRebooting   int `json:"countRebooting"`   // rebooting
	CountTerminated  int `json:"countTerminated"`  // terminated
	CountSuspending  int `json:"countSuspending"`  // being suspended
	CountResuming    int `json:"countResuming"`    // being resumed
	CountTerminating int `json:"countTerminating"` // being terminated
	CountUndefined   int `json:"countUndefined"`   // of undefined status
}

// Summarize makes the status of an MCI from those of its VMs. While members are
// being created, the total is expected, if that is more than there are. No VMs
// at all are Undefined. The error is [fsm.ErrUnknownState] for what is no status
// of a VM, and [lifecycle.ErrInvalid] for a negative number.
func Summarize(vms []State, expected int) (Status, StatusCountInfo, error) {
	if expected < 0 {
		return Status{}, StatusCountInfo{}, fmt.Errorf("tumblebug: summarize VMs: %w: %d VMs expected", lifecycle.ErrInvalid, expected)
	}
	counts := count(vms)
	now, err := dominant.Of(counts)
	if err != nil {
		return Status{}, StatusCountInfo{}, err
	}
	total := max(now.Total, expected)
	info := StatusCountInfo{CountTotal: total}
	for _, s := range classes {
		*info.of(s) = counts[s]
	}
	return Status{State: now.State, Partial: now.Count < total, Count: now.Count, Running: info.CountRunning, Total: total}, info, nil
}

// count returns the number of VMs in each status.
func count(vms []State) map[State]int {
	counts := make(map[State]int)
	for _, s := range vms {
		counts[s]++
	}
	return counts
}

// of returns the count of a status of VMs.
func (i *StatusCountInfo) of(s State) *int {
	return []*int{
		&i.CountFailed, &i.CountSuspended, &i.CountRunning, &i.CountTerminated, &i.CountCreating,
		&i.CountSuspending, &i.CountResuming, &i.CountRebooting, &i.CountTerminating, &i.CountUndefined,
	}[slices.Index(classes, s)]
}

// Conclude returns the status in which an MCI ends when the action under way has
// ended for all of its VMs, in these statuses: by the document's diagram the
// target of the action if some VMs have got there, of Terminate if all have; and
// Failed if none has, as the diagram has it for Create, or Undefined if nobody
// knows of one. It is false while a VM is in transition, and for what is no action
// that goes to the VMs.
func Conclude(action Action, vms []State) (State, bool) {
	if action != ActionCreate && !action.controls() {
		return "", false
	}
	there, unknown := 0, 0
	for _, s := range vms {
		switch {
		case VM.StateIndex(s) < 0 || s == Removed || !atRest(s):
			return "", false
		case s == action.Target():
			there++
		case s == Undefined:
			unknown++
		}
	}
	enough := there > 0 || len(vms) == 0 && action != ActionCreate
	if action == ActionTerminate {
		enough = there == len(vms)
	}
	switch {
	case enough:
		return action.Target(), true
	case unknown > 0:
		return Undefined, true
	}
	return Failed, true
}

// settled returns the status in which an MCI rests because of its VMs, and false
// if they do not say. VMs that are Failed or Terminated count only if there are
// no others: an MCI is Terminated if all of its VMs are, and Failed if the VMs
// that are left to do something about are. What is in transition is left out.
func settled(vms []State) (State, bool) {
	var resting []State
	ended, failed := true, false
	for _, s := range vms {
		switch s {
		case Running, Suspended, Undefined:
			resting = append(resting, s)
			ended = false
		case Failed:
			failed = true
		case Terminated:
		default:
			ended = false
		}
	}
	switch {
	case len(resting) > 0:
		now, err := dominant.Of(count(resting))
		return now.State, err == nil
	case !ended || len(vms) == 0:
		return "", false
	case failed:
		return Failed, true
	}
	return Terminated, true
}
