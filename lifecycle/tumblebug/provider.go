package tumblebug

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/lifecycle"
)

// Provider is the way to the clouds. It is called by many goroutines at once.
//
// What is asked twice, about the same resource or for the same operation of a VM,
// is one request: a process that takes over does not know whether the one before
// it has asked. Where a provider has no tokens for that, the name of the VM is
// enough to create it once, and all but Reboot are the same if done twice.
//
// Life belongs into the names that a provider gives: what is asked of it late, by a
// process that stood still, is about an MCI that was deleted meanwhile, and must
// not hit another one of the same name.
type Provider interface {
	// Validate says whether spec and image of the group are to be had there.
	Validate(ctx context.Context, group SubGroup) error
	// Prepare makes a resource, or finds it made; Release is the opposite.
	Prepare(ctx context.Context, r Resource) error
	Release(ctx context.Context, r Resource) error
	// Create and Control begin something and need not wait for its end: nil is
	// that the provider has accepted it. An error that is [ErrRejected] is
	// final. After any other error nobody knows, and only Status can tell.
	Create(ctx context.Context, vm VMRef) error
	Control(ctx context.Context, vm VMRef, action Action) error
	// Status is what the provider says about the VM, in our words. [ErrNoVM] is
	// that there is none, or none yet; any other error, that there was no answer. Undefined, or a
	// status that VMs do not have, is that it cannot tell.
	Status(ctx context.Context, vm VMRef) (State, error)
}

// VMRef is a VM as its provider is asked about it. Operation is new with every
// action, for providers that tell a repeated request by that.
type VMRef struct {
	NsID, MciID, VMID string
	Operation         lifecycle.OpID
	VMSpec            // with the Life of the MCI
}

// Resource is what the VMs of an MCI share in one region of a provider. Two of
// them are the same if they are equal.
type Resource struct {
	Kind             ResourceKind
	NsID, MciID      string
	Life             string // of the MCI
	Provider, Region string
}

// ResourceKind is a kind of resource.
type ResourceKind string

// The resources that are made for an MCI, in this order.
const (
	VNet          ResourceKind = "vNet"
	SecurityGroup ResourceKind = "securityGroup"
	SSHKey        ResourceKind = "sshKey"
)

// resources are those of an MCI, in the order in which they are made.
func resources(mci *mciRecord) (list []Resource) {
	type where struct{ provider, region string }
	nsID, mciID := place(mci.ID)
	for _, kind := range []ResourceKind{VNet, SecurityGroup, SSHKey} {
		seen := map[where]bool{}
		for _, g := range mci.Payload.SubGroups {
			at := where{g.Provider, g.Region}
			if !seen[at] {
				seen[at] = true
				list = append(list, Resource{kind, nsID, mciID, mci.Payload.Life, g.Provider, g.Region})
			}
		}
	}
	return list
}

// Correct returns what the status of a VM is during an action, from what its
// provider says: many providers show a VM that is rebooted as suspended for a
// while, one that is suspended as running, or do not know a VM that they have just
// been asked to make. What is not in this table is what the provider says:
//
//	action     said                                                  is
//	Create     Undefined                                             Creating
//	Suspend    Undefined, Running, Resuming                          Suspending
//	Resume     Undefined, Creating, Suspended                        Resuming
//	Reboot     Undefined, Suspending, Suspended, Creating, Resuming  Rebooting
//	Terminate  Undefined                                             Terminated
//	Terminate  Suspending                                            Terminating
//
// The document has no such table; this is what CB-Tumblebug does. What is said and is
// neither the target of the action nor a failure moves no VM: it stays in transition.
func Correct(action Action, said State) State {
	of := func(during State, by ...State) State {
		for _, s := range by {
			if said == s {
				return during
			}
		}
		return said
	}
	switch action {
	case ActionCreate:
		return of(Creating, Undefined)
	case ActionSuspend:
		return of(Suspending, Undefined, Running, Resuming)
	case ActionResume:
		return of(Resuming, Undefined, Creating, Suspended)
	case ActionReboot:
		return of(Rebooting, Undefined, Suspending, Suspended, Creating, Resuming)
	case ActionTerminate:
		if said == Undefined {
			return Terminated // which one look does not make sure
		}
		return of(Terminating, Suspending)
	}
	return said
}

// verdict is what a look at a VM says about the action under way.
type verdict uint8

const (
	pending verdict = iota
	succeeded
	failed
)

// judge says what a look means for an action, and whether one look is enough.
// Enough are only those that nothing but the action itself explains. A VM that is
// rebooted and Running may not have begun, one that is terminated and unknown may
// be unreachable, and one that is Failed may be so since before the action.
func judge(action Action, said State, moved bool) (v verdict, sure bool) {
	is := Correct(action, said)
	switch {
	case action == ActionReboot && is == Running:
		return succeeded, moved
	case is == action.Target():
		return succeeded, said == is
	case is == Failed:
		return failed, action == ActionCreate
	case is == Terminated:
		return failed, false
	}
	return pending, false
}

// ask asks the provider about a VM, and says whether there was an answer; without,
// the VM is Undefined. One that is being made is not Terminated because it is not
// there: it is not there yet.
func (s *System) ask(ctx context.Context, vm VMRef, action Action) (said State, answered bool) {
	s.fetched.Add(1)
	said, err := s.provider.Status(ctx, vm)
	switch {
	case errors.Is(err, ErrNoVM) && action == ActionCreate:
		return Undefined, true
	case errors.Is(err, ErrNoVM):
		return Terminated, true
	case err != nil:
		return Undefined, false
	case VM.StateIndex(said) < 0 || said == Removed:
		return Undefined, true
	}
	return said, true
}
