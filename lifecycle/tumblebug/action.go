package tumblebug

import (
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Action is what a user asks of an MCI or a VM, and what is under way.
type Action string

// The actions of the document: those of its table, and the two that its API adds.
// An action that is complete is None.
const (
	ActionCreate    Action = "Create"
	ActionSuspend   Action = "Suspend"
	ActionResume    Action = "Resume"
	ActionReboot    Action = "Reboot"
	ActionTerminate Action = "Terminate"
	ActionRefine    Action = "Refine"
	ActionContinue  Action = "Continue"
	ActionWithdraw  Action = "Withdraw"
	ActionComplete  Action = "None"
)

// StatusComplete is the target status where no action is under way.
const StatusComplete State = "None"

// ParseAction reads an action as requests name it, in any case. It knows what
// can be asked of an MCI: not Create, which is a request of its own. The error
// is [lifecycle.ErrInvalid].
func ParseAction(text string) (Action, error) {
	for _, a := range []Action{
		ActionSuspend, ActionResume, ActionReboot, ActionTerminate, ActionRefine, ActionContinue, ActionWithdraw,
	} {
		if strings.EqualFold(text, string(a)) {
			return a, nil
		}
	}
	return "", fmt.Errorf("%w: action %q is not supported", lifecycle.ErrInvalid, text)
}

// Target returns the status that the action leads to, by the document's table of
// actions; StatusComplete for those that lead nowhere in particular.
func (a Action) Target() State {
	switch a {
	case ActionCreate, ActionResume, ActionReboot:
		return Running
	case ActionSuspend:
		return Suspended
	case ActionTerminate:
		return Terminated
	}
	return StatusComplete
}

// controls reports whether the action goes to the provider of a VM.
func (a Action) controls() bool {
	return a == ActionSuspend || a == ActionResume || a == ActionReboot || a == ActionTerminate
}

// ing is the action in words: Suspending.
func (a Action) ing() State {
	switch a {
	case ActionSuspend:
		return Suspending
	case ActionResume:
		return Resuming
	case ActionReboot:
		return Rebooting
	case ActionTerminate:
		return Terminating
	}
	return State(a)
}

// Doing returns TargetAction and TargetStatus of an MCI or a VM in this status:
// what is under way and where it leads, or None and None. They follow from the
// status, so that they cannot contradict it, and completing an action clears
// both.
func Doing(status State) (Action, State) {
	action := ActionComplete
	switch status {
	case Preparing, Prepared, Creating:
		action = ActionCreate
	case Suspending:
		action = ActionSuspend
	case Resuming:
		action = ActionResume
	case Rebooting:
		action = ActionReboot
	case Terminating:
		action = ActionTerminate
	}
	return action, action.Target()
}

// Allowed asks the document's matrix of allowed transitions, for an MCI as for a
// VM. With force it is skipped, but for what is Terminated: nothing is left
// there. The error is [fsm.ErrForcedOnly] if force would help, else
// [fsm.ErrNotAllowed]; for a status or an action that the matrix does not know,
// [fsm.ErrUnknownState] or [fsm.ErrUnknownEvent].
func Allowed(status State, action Action, force bool) error {
	event := Event(action)
	if !action.controls() {
		event = "" // no column of the matrix
	}
	next := MCI.Next
	if force {
		next = MCI.NextForced
	}
	_, err := next(context.Background(), fsm.Status[State]{State: status, Origin: status}, event, User, nil)
	return err
}

// Cached reports whether the status of a VM is answered without asking its
// provider: it does not change any more, or by our doing only.
func Cached(status State) bool {
	return status == Terminated || status == Failed || status == Suspended
}
