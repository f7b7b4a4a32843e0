package tumblebug

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Action is an action on an MCI or a VM.
type Action string

// The actions of the document: those of its table, and the two that its API adds.
// ActionComplete is the target action while no action is running.
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

// StatusComplete is the target status while no action is running.
const StatusComplete State = "None"

// ParseAction parses the action of a request, in any case. Create is not among them:
// see [System.CreateMci]. The error is [lifecycle.ErrInvalid].
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

// courses are the transitional state of an action, and its target by the document's table.
var courses = map[Action]struct{ during, target State }{
	ActionCreate:    {Creating, Running},
	ActionSuspend:   {Suspending, Suspended},
	ActionResume:    {Resuming, Running},
	ActionReboot:    {Rebooting, Running},
	ActionTerminate: {Terminating, Terminated},
}

// during returns the transitional state of the action, if it has one.
func (a Action) during() State { return courses[a].during }

// Target returns the target status of the action by the document's table, and
// StatusComplete for an action that has none.
func (a Action) Target() State { return cmp.Or(courses[a].target, StatusComplete) }

// controls reports whether the action is a request to the provider of an existing VM.
func (a Action) controls() bool { return a != ActionCreate && a.during() != "" }

// Doing returns TargetAction and TargetStatus of an MCI or a VM in this state: the
// running action and its target, or None and None. Both follow from the state, so they
// cannot contradict it, and the end of an action clears both.
func Doing(status State) (Action, State) {
	if status == Preparing || status == Prepared {
		status = Creating
	}
	for action, course := range courses {
		if course.during == status {
			return action, course.target
		}
	}
	return ActionComplete, StatusComplete
}

// Allowed evaluates the document's matrix of allowed transitions, which is the same for
// MCIs and VMs. Force skips the matrix in every state except Terminated. The error is
// [fsm.ErrForcedOnly] if force would help, else [fsm.ErrNotAllowed]. It is
// [fsm.ErrUnknownState] or [fsm.ErrUnknownEvent] if the matrix has no such state or
// action.
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

// Cached reports whether the state of a VM is returned without a request to its
// provider: only this package changes it.
func Cached(status State) bool {
	return status == Terminated || status == Failed || status == Suspended
}
