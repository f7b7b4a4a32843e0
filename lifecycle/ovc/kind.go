package ovc

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Kind is a kind of object. A value other than the constants has no states and no actions.
type Kind string

// The kinds of objects.
const (
	KindVM         Kind = "vm"
	KindCloudspace Kind = "cloudspace"
	KindAccount    Kind = "account"
	KindDisk       Kind = "disk"
	KindImage      Kind = "image"
	KindNode       Kind = "node"
)

// machines are those of the kinds.
var machines = map[Kind]*fsm.Machine[State, Event, struct{}]{
	KindVM: VM, KindCloudspace: Cloudspace, KindAccount: Account, KindDisk: Disk, KindImage: Image, KindNode: Node,
}

// Kinds returns the kinds in the order of the document.
func Kinds() iter.Seq[Kind] {
	return slices.Values([]Kind{KindVM, KindCloudspace, KindAccount, KindDisk, KindImage, KindNode})
}

// Machine returns the machine of the kind, nil for a value that is not a kind.
func (k Kind) Machine() *fsm.Machine[State, Event, struct{}] { return machines[k] }

// Key returns the key of an object of this kind in stores and queues. It panics for a
// value that is not a kind.
func (k Kind) Key(id string) lifecycle.Key {
	return lifecycle.Key{Machine: k.Machine().Name(), ID: id}
}

// kindOf returns the kind of a machine's objects.
func kindOf(machine string) (Kind, bool) {
	name, found := strings.CutPrefix(machine, "ovc-")
	_, ok := machines[Kind(name)]
	return Kind(name), found && ok
}

// TransitionStates returns the transition states of the objects of these kinds,
// each once, in the order in which their machines declare them; without kinds,
// those of all. All other states are static. The slice is the caller's own.
func TransitionStates(objects ...Kind) []State {
	if len(objects) == 0 {
		objects = slices.Collect(Kinds())
	}
	var states []State
	for _, object := range objects {
		for _, r := range tables[object].rows {
			if !slices.Contains(states, r.transition) {
				states = append(states, r.transition)
			}
		}
	}
	return states
}

// IsTransition reports whether a state is a transition state of any kind of
// object. All the rest of states are static.
func IsTransition(s State) bool { return slices.Contains(TransitionStates(), s) }

// ValidateTransition reports whether the document has a row that leads an
// object of this kind from one static state to another, through one transition
// state. Several rows in sequence do not count, nor do deadlines. A state may
// lead to itself: a running machine reboots. Names that the kind does not have,
// and transition states, give false.
func ValidateTransition(object Kind, initial, desired State) bool {
	return slices.ContainsFunc(tables[object].rows, func(r row) bool {
		return slices.Contains(r.initial, initial) && cmp.Or(r.desired, initial) == desired
	})
}
