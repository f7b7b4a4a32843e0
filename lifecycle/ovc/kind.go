package ovc

import (
	"context"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// Kind is a kind of object. Values other than the constants name no kind:
// nothing is allowed to them, and they have no states.
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

// Kinds returns the kinds in the order of the document.
func Kinds() iter.Seq[Kind] {
	return slices.Values([]Kind{KindVM, KindCloudspace, KindAccount, KindDisk, KindImage, KindNode})
}

// Machine returns the machine of the kind, nil for a value that names none.
func (k Kind) Machine() *fsm.Machine[State, Event, struct{}] {
	switch k {
	case KindVM:
		return VM
	case KindCloudspace:
		return Cloudspace
	case KindAccount:
		return Account
	case KindDisk:
		return Disk
	case KindImage:
		return Image
	case KindNode:
		return Node
	}
	return nil
}

// table returns the specification of the machine of the kind, which has to be one.
func (k Kind) table() fsm.Spec[State, Event] {
	switch k {
	case KindVM:
		return VMTable()
	case KindCloudspace:
		return CloudspaceTable()
	case KindAccount:
		return AccountTable()
	case KindDisk:
		return DiskTable()
	case KindImage:
		return ImageTable()
	case KindNode:
		return NodeTable()
	}
	panic("ovc: no kind of object is called " + string(k))
}

// TransitionStates returns the transition states of the objects of these kinds,
// each once, in the order in which their machines declare them; without kinds,
// those of all. All other states are static. The slice is the caller's own; a
// value that names no kind has none.
func TransitionStates(objects ...Kind) []State {
	if len(objects) == 0 {
		objects = slices.Collect(Kinds())
	}
	var states []State
	for _, object := range objects {
		m := object.Machine()
		if m == nil {
			continue
		}
		for s := range m.States() {
			if m.Kind(s) == fsm.Transitional && !slices.Contains(states, s) {
				states = append(states, s)
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
	m := object.Machine()
	if m == nil {
		return false
	}
	ctx, at := context.Background(), m.At(initial)
	for row := range m.Permitted(at, API) {
		begun, err := m.Next(ctx, at, row.Event, API, nil)
		if err != nil {
			continue
		}
		ended, err := m.Next(ctx, begun.Status, Done, Worker, nil)
		if err == nil && ended.State == desired {
			return true
		}
	}
	return false
}

// Chain returns the actions that lead an object of this kind from one static state
// to another, one after another, as few as there are: none from a state to
// itself. It is false if no chain of actions leads there, for names that the kind
// does not have, and for transition states.
func Chain(object Kind, from, to State) (actions []Event, ok bool) {
	m := object.Machine()
	if m == nil || m.StateIndex(from) < 0 || m.StateIndex(to) < 0 || IsTransition(from) || IsTransition(to) {
		return nil, false
	}
	ctx := context.Background()
	chains := map[State][]Event{from: nil}
	for reached := []State{from}; len(reached) > 0; reached = reached[1:] {
		at := reached[0]
		if at == to {
			return chains[at], true
		}
		for row := range m.Permitted(m.At(at), API) {
			begun, err := m.Next(ctx, m.At(at), row.Event, API, nil)
			if err != nil {
				continue
			}
			ended, err := m.Next(ctx, begun.Status, Done, Worker, nil)
			if _, known := chains[ended.State]; err == nil && !known {
				chains[ended.State] = append(slices.Clone(chains[at]), row.Event)
				reached = append(reached, ended.State)
			}
		}
	}
	return nil, false
}
