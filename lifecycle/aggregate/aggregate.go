// Package aggregate derives the state of a parent object from the states of its
// children: the state of a system from its services, or of a cluster from its VMs.
//
//	var health = aggregate.Must(aggregate.Spec[VMState, Health]{
//		Name: "cluster-health", Rule: aggregate.Priority, Children: VM,
//		Classes: []aggregate.Class[VMState, Health]{
//			{State: Broken, States: []VMState{Failed}},
//			{State: Busy, States: []VMState{Creating, Deleting}},
//			{State: Healthy, States: []VMState{Running, Stopped}},
//		},
//		Empty: Healthy,
//	})
//
//	now, err := health.Of(map[VMState]int{Running: 3, Failed: 1}) // Broken, 1 of 4
//
// The counts are a map of states to numbers of children. A caller has two ways
// to get them:
//
//   - It lists the children and counts them.
//   - It keeps the map in the payload of the parent, and changes the map in the
//     commit that changes a child ([lifecycle.Config.BeforeCommit]). The map is then
//     always correct, but every change of a child is also a change of the parent.
//
// # Guarantees
//
//   - The result is a function of the rule and the counts alone.
//   - The function is total: [New] refuses a rule that leaves out a state of the
//     children's machine.
//   - The cost depends on the number of states, not on the number of children.
//
// # Limits
//
//   - The package moves no parent. The caller fires the event that brings the
//     parent to the result.
//   - With the map in the parent's payload, a transaction changes one child of a parent
//     ([lifecycle.Tx]): with two of them it would change the parent twice.
//   - The map has names of states. While programs with two versions of the children's
//     table run, both change the map. If the new version renames a state, give the parent's
//     machine a new version too, whose [lifecycle.Version] renames the keys of the map.
package aggregate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Machine is the part of an [*fsm.Machine] that this package uses. A machine of
// any event and payload implements it.
type Machine[S comparable] interface {
	Table() *fsm.Table
	StateIndex(S) int // -1 if the machine does not declare the state
	StateAt(int) S
}

// Rule selects the class that gives the parent its state.
type Rule uint8

const (
	Priority Rule = iota // the first class that has a child
	Dominant             // the class with the most children; of equal classes the first
)

// Class is a possible state of the parent, with the states of children that count
// as it.
type Class[S, C comparable] struct {
	State  C
	States []S
}

// Each returns one class for each state. It is for parents whose states have the
// names of their children's states.
func Each[S comparable](states ...S) []Class[S, S] {
	classes := make([]Class[S, S], len(states))
	for i, s := range states {
		classes[i] = Class[S, S]{State: s, States: []S{s}}
	}
	return classes
}

// Spec is the specification of an [Aggregate] as plain data. New refuses the zero
// Spec.
type Spec[S, C comparable] struct {
	Name     string // used in errors
	Rule     Rule
	Children Machine[S]
	// Classes are in order of priority, or of preference between equal classes.
	// Every state of Children is in one class, absent states are in none.
	Classes []Class[S, C]
	Empty   C // the result if there are no children; it need not be a class
}

// Aggregate is a compiled rule. [New] makes it; the zero Aggregate is not usable.
// It is immutable, safe for concurrent use, and must not be copied.
type Aggregate[S, C comparable] struct {
	spec Spec[S, C] // with classes of its own
}

// Result is the state of a parent with the numbers behind it. It is a plain value.
//
// Invariant: Count <= Total, and Partial == (Count < Total).
type Result[C comparable] struct {
	State   C
	Count   int  // children in the class of State
	Total   int  // children in all classes
	Partial bool // some children are in other classes
}

// New compiles a specification. The error matches [lifecycle.ErrInvalid] and lists
// every fault:
//
//   - a state of the children's machine is in no class, or in two;
//   - a class names a state that the machine does not declare, or an absent state;
//   - a class has no states, or there are two classes for one state;
//   - the name, the machine or the classes are missing, or the rule is unknown.
func New[S, C comparable](spec Spec[S, C]) (*Aggregate[S, C], error) {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if spec.Name == "" {
		fault("the aggregate has no name")
	}
	if spec.Rule > Dominant {
		fault("rule %d is unknown", spec.Rule)
	}
	if len(spec.Classes) == 0 {
		fault("the aggregate has no classes")
	}
	spec.Classes = slices.Clone(spec.Classes)
	classOf := make(map[S]C)
	for i, c := range spec.Classes {
		if slices.ContainsFunc(spec.Classes[:i], func(before Class[S, C]) bool { return before.State == c.State }) {
			fault("class %v is declared twice", c.State)
		}
		if len(c.States) == 0 {
			fault("class %v has no states", c.State)
		}
		for _, s := range c.States {
			if class, taken := classOf[s]; taken {
				fault("class %v: state %v is already in class %v", c.State, s, class)
				continue
			}
			classOf[s] = c.State
			switch {
			case spec.Children == nil:
			case spec.Children.StateIndex(s) < 0:
				fault("class %v: machine %s has no state %v", c.State, spec.Children.Table().Name, s)
			case spec.Children.Table().States[spec.Children.StateIndex(s)].Kind == fsm.Absent:
				fault("class %v: state %v is absent, and an absent child is not counted", c.State, s)
			}
		}
		spec.Classes[i].States = slices.Clone(c.States)
	}
	if spec.Children == nil {
		fault("the aggregate has no machine of the children")
	} else {
		for i, st := range spec.Children.Table().States {
			if _, ok := classOf[spec.Children.StateAt(i)]; !ok && st.Kind != fsm.Absent {
				fault("state %s of machine %s is in no class", st.Name, spec.Children.Table().Name)
			}
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("aggregate: compile %q: %w:\n\t%s", spec.Name, lifecycle.ErrInvalid, strings.Join(faults, "\n\t"))
	}
	return &Aggregate[S, C]{spec}, nil
}

// Must is [New] for package variables. It panics with the text of the error.
func Must[S, C comparable](spec Spec[S, C]) *Aggregate[S, C] {
	a, err := New(spec)
	if err != nil {
		panic(err.Error())
	}
	return a
}

// Of returns the result for a number of children in each state. It ignores absent
// states and changes nothing in counts, so that counts[from]-- and counts[to]++
// record every change of a child. From is the absent state for a child that is created;
// [lifecycle.StoredChange].From is empty then.
//
// The error matches [fsm.ErrUnknownState] for a state that the children's machine
// does not declare, and [lifecycle.ErrInvalid] for a negative number, which means
// that the caller has missed a change or recorded it twice, and for a sum that is not an
// int.
func (a *Aggregate[S, C]) Of(counts map[S]int) (Result[C], error) {
	children, total := a.spec.Children, 0
	for s, n := range counts {
		i := children.StateIndex(s)
		if i < 0 {
			return Result[C]{}, fmt.Errorf("aggregate: compute %q: %w: machine %q has no state %#v",
				a.spec.Name, fsm.ErrUnknownState, children.Table().Name, s)
		}
		st := children.Table().States[i]
		if st.Kind == fsm.Absent {
			continue
		}
		if n < 0 {
			return Result[C]{}, fmt.Errorf("aggregate: compute %q: %w: %d children in state %q",
				a.spec.Name, lifecycle.ErrInvalid, n, st.Name)
		}
		if n > math.MaxInt-total {
			return Result[C]{}, fmt.Errorf("aggregate: compute %q: %w: more than %d children", a.spec.Name, lifecycle.ErrInvalid, math.MaxInt)
		}
		total += n
	}
	result := Result[C]{State: a.spec.Empty, Total: total}
	for _, class := range a.spec.Classes {
		n := 0
		for _, s := range class.States {
			n += counts[s]
		}
		if n > result.Count && (a.spec.Rule == Dominant || result.Count == 0) {
			result.State, result.Count = class.State, n
		}
	}
	result.Partial = result.Count < result.Total
	return result, nil
}
