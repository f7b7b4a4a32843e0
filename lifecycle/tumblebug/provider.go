package tumblebug

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// Provider is the driver interface to the clouds. Many goroutines call it at once. A panic in
// the work of a VM or of an MCI is a failure, and its text is the reason. So is runtime.Goexit.
// In [System.GetMciStatus] a panic of Status continues in the caller, and so does
// runtime.Goexit as a panic.
//
// A provider treats repeated requests for the same resource, or for the same operation
// of a VM, as one request: a process that continues an operation repeats the requests
// of the process before it. A provider without request tokens can use the name of the
// VM for Create; all other actions except Reboot have the same effect when repeated.
//
// The names at a provider contain Life. A request that a stalled process sends late is
// about an MCI that was deleted meanwhile, and must not reach another MCI of the same
// name. VMs that [System.AddMci] has added have other names there, which their Attributes
// give if necessary.
type Provider interface {
	// Validate checks that spec and image of the group are available there.
	Validate(ctx context.Context, group SubGroup) error
	// Prepare creates a resource, or finds it created. Release deletes it, or finds
	// it deleted.
	Prepare(ctx context.Context, r Resource) error
	Release(ctx context.Context, r Resource) error
	// Create and Control start an action and need not wait for its end. They return
	// nil if the provider has accepted the action, and [ErrRejected] if it has
	// refused it. Control returns [ErrNoVM] if there is no VM, or none yet: Status then
	// decides, as after nil. After any other error, only Status shows the outcome.
	Create(ctx context.Context, vm VMRef) error
	Control(ctx context.Context, vm VMRef, action Action) error
	// Status returns the state of the VM, and [ErrNoVM] if there is none, or none
	// yet. After any other error the state is unknown. Undefined, and a state that
	// VMs do not have, means that the provider cannot determine it.
	Status(ctx context.Context, vm VMRef) (State, error)
}

// VMRef names a VM in a request to its provider. Operation is another one for every
// action. It identifies a repeated request, also of a process that continues an action.
type VMRef struct {
	NsID, MciID, VMID string
	Operation         lifecycle.OpID
	VMSpec            // with the Life of the MCI
}

// Resource is what the VMs of an MCI share in one region of a provider. It is
// comparable; equal values name the same resource.
type Resource struct {
	Kind             ResourceKind
	NsID, MciID      string
	Life             string // of the MCI
	Provider, Region string
}

// ResourceKind is a kind of resource.
type ResourceKind string

// The resources of an MCI, in the order of their creation.
const (
	VNet          ResourceKind = "vNet"
	SecurityGroup ResourceKind = "securityGroup"
	SSHKey        ResourceKind = "sshKey"
)

// resources returns those of an MCI, in the order of their creation.
func resources(mci *mciRecord) (list []Resource) {
	nsID, mciID, _ := strings.Cut(mci.ID, "/")
	seen := map[Resource]bool{}
	for _, kind := range []ResourceKind{VNet, SecurityGroup, SSHKey} {
		for _, g := range mci.Payload.SubGroups {
			r := Resource{kind, nsID, mciID, mci.Payload.Life, g.Provider, g.Region}
			if !seen[r] {
				seen[r] = true
				list = append(list, r)
			}
		}
	}
	return list
}

// corrections are the states that providers show during an action instead of the
// transitional state.
var corrections = map[Action]map[State]State{
	ActionCreate:  {Undefined: Creating},
	ActionSuspend: {Undefined: Suspending, Running: Suspending, Resuming: Suspending},
	ActionResume:  {Undefined: Resuming, Creating: Resuming, Suspended: Resuming},
	ActionReboot: {
		Undefined: Rebooting, Suspending: Rebooting, Suspended: Rebooting, Creating: Rebooting, Resuming: Rebooting,
	},
	ActionTerminate: {Undefined: Terminated, Suspending: Terminating},
}

// Correct returns the state of a VM during an action, from the state that its provider
// shows. Many providers show a VM that is rebooted as suspended for a while, one that is
// suspended as running, or have no state of a VM that they were just requested to
// create:
//
//	action     shown                                                 is
//	Create     Undefined                                             Creating
//	Suspend    Undefined, Running, Resuming                          Suspending
//	Resume     Undefined, Creating, Suspended                        Resuming
//	Reboot     Undefined, Suspending, Suspended, Creating, Resuming  Rebooting
//	Terminate  Undefined                                             Terminated
//	Terminate  Suspending                                            Terminating
//
// Every other state is returned unchanged. The document has no such table; this is the
// behaviour of CB-Tumblebug.
func Correct(action Action, shown State) State {
	if is, ok := corrections[action][shown]; ok {
		return is
	}
	return shown
}

// judge returns the event that follows from one look at a VM during an action, or none,
// and whether one look is sufficient. It is sufficient if only the action itself explains
// it. A reboot whose VM is Running may not have started. A terminated VM without a state
// may be out of reach. A Failed VM may have failed before the action.
func judge(action Action, shown State, moved bool) (event Event, sufficient bool) {
	is := Correct(action, shown)
	switch {
	case action == ActionReboot && is == Running:
		return Succeed, moved
	case is == action.Target():
		return Succeed, shown == is
	case is == Failed:
		return Fail, action == ActionCreate
	case is == Terminated:
		return Fail, false
	}
	return "", false
}

// status requests the state of a VM from its provider, and reports whether there was an
// answer. A VM that does not exist is Terminated, except during its creation and its
// termination: the provider may not show it yet, also if the termination has superseded
// the creation. It has no state then, and one such answer ends no action.
func (s *System) status(ctx context.Context, vm *vmRecord) (shown State, answered bool) {
	shown, err := s.provider.Status(ctx, refOf(vm))
	switch {
	case errors.Is(err, ErrNoVM) && (vm.State == Creating || vm.State == Terminating):
		return Undefined, true
	case errors.Is(err, ErrNoVM):
		return Terminated, true
	case err != nil:
		return Undefined, false
	case VM.StateIndex(shown) < 0 || shown == Removed:
		return Undefined, true
	}
	return shown, true
}

func refOf(vm *vmRecord) VMRef {
	nsID, name, _ := strings.Cut(vm.ID, "/")
	mciID, vmID, _ := strings.Cut(name, "/")
	return VMRef{NsID: nsID, MciID: mciID, VMID: vmID, Operation: cmp.Or(vm.Payload.Continues, vm.Operation), VMSpec: vm.Payload}
}

// The errors of a [Provider]. Every other error of a provider means that the outcome of
// the request is unknown.
var (
	// ErrRejected: the provider has refused the request and does nothing about it.
	ErrRejected = errors.New("tumblebug: rejected by the provider")
	// ErrNoVM: the provider has no such VM.
	ErrNoVM = errors.New("tumblebug: no such VM at the provider")
)
