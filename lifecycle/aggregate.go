package lifecycle

import (
	"fmt"
	"iter"
	"slices"

	"github.com/interlock-go/interlock/fsm"
)

// Machine is what aggregates and relations ask of a machine: its states by
// index and by name. An [*fsm.Machine] of any event and payload is one.
type Machine[S comparable] interface {
	Table() *fsm.Table
	StateIndex(S) int // -1 if it is not declared
	StateAt(int) S
}

// stateName returns the name of a state. Of one that is not declared it is a name
// that no state has, whatever fmt calls it: the empty name is that of no object,
// and a String method may give the rest of all values one name.
func stateName[S comparable](m Machine[S], s S) string {
	table := m.Table()
	if i := m.StateIndex(s); i >= 0 {
		return table.States[i].Name
	}
	name := fmt.Sprint(s)
	if _, taken := table.StateIndex(name); taken || name == "" {
		name = fmt.Sprintf("%T(%#v)", s, s)
	}
	return name
}

// Rule is how the class of a parent is chosen among those of its children.
type Rule uint8

const (
	Priority Rule = iota // the first class in order that has a child
	Dominant             // the class with the most children; of equals the first in order
)

// Class is a state that a parent can have because of its children, and the
// states of children that count as it.
type Class[S, C comparable] struct {
	State  C
	States []S
}

// Each makes every state a class of its own, for parents whose states are
// called like those of their children.
func Each[S comparable](states ...S) []Class[S, S] {
	classes := make([]Class[S, S], len(states))
	for i, s := range states {
		classes[i] = Class[S, S]{State: s, States: []S{s}}
	}
	return classes
}

// AggregateSpec is the specification of an [Aggregate] as plain data. The zero
// AggregateSpec is refused.
type AggregateSpec[S, C comparable] struct {
	Name string // what errors call it
	Rule Rule
	// Children is the machine of the children: every state of it must be in a
	// class, or uncounted, or absent. Nil: the children have no machine here, and
	// have the states that are named in this specification; one in which there
	// is no child is Uncounted then.
	Children  Machine[S]
	Classes   []Class[S, C] // in order of priority, or of preference among equals
	Uncounted []S           // a child in one of these counts as none, like one in an absent state
	Empty     C             // the result where no child counts; it need not be a class
}

// Aggregate says which state a parent has because of its children: a pure
// function of how many of them are in which state, defined for every such
// number. [NewAggregate] makes one; the zero Aggregate is not usable. It is
// immutable, safe for concurrent use, and must not be copied.
//
// The children are counted in [Counts], where the change of one child costs the
// same whatever their number. What keeps counts right while messages are lost,
// come twice or in another order is a [Roster].
type Aggregate[S, C comparable] struct {
	name    string
	machine string // of the children; empty if they have none
	rule    Rule
	empty   C
	classes []C
	class   map[string]int // by the name of a child's state; uncounted where it is no child
	names   map[S]string
}

const uncounted = -1

// Aggregated is what the children of a parent come to. It is a plain value.
//
// Invariant: Count <= Total, and Partial == (Count < Total).
type Aggregated[C comparable] struct {
	State   C
	Count   int  // children in the class State
	Total   int  // children that count, or that are expected if these are more
	Partial bool // not all of them are in the class State
}

// NewAggregate compiles a specification. The error is a [*RuleError] with every
// fault: a state of the children's machine that is in no class, or one that is
// in two or does not exist; a class that is named twice or has no state; an
// absent state in a class.
func NewAggregate[S, C comparable](spec AggregateSpec[S, C]) (*Aggregate[S, C], error) {
	a := &Aggregate[S, C]{
		name: spec.Name, rule: spec.Rule, empty: spec.Empty,
		class: map[string]int{"": uncounted}, names: make(map[S]string),
	}
	faults := RuleError{Name: spec.Name}
	if spec.Name == "" {
		faults.add(fsm.NoName, -1, "the aggregate has no name")
	}
	if spec.Rule > Dominant {
		faults.add(fsm.BadRow, -1, "unknown rule %d", spec.Rule)
	}
	if len(spec.Classes) == 0 {
		faults.add(fsm.BadRow, -1, "no class: the children would never matter")
	}
	var table *fsm.Table
	if spec.Children != nil {
		table = spec.Children.Table()
		a.machine = table.Name
	}
	count := func(s S, class int, where string) {
		name := fmt.Sprint(s)
		if table != nil {
			i := spec.Children.StateIndex(s)
			if i < 0 {
				faults.add(fsm.UnknownState, class, "%s: machine %s has no state %s", where, table.Name, name)
				return
			}
			name = table.States[i].Name
			if table.States[i].Kind == fsm.Absent {
				faults.add(fsm.BadState, class, "%s: in the absent state %s there is no child", where, name)
				return
			}
		}
		if _, taken := a.class[name]; taken {
			faults.add(fsm.DuplicateName, class, "%s: state %s counts already, or has no name of its own", where, name)
			return
		}
		a.class[name], a.names[s] = class, name
	}
	for i, c := range spec.Classes {
		where := fmt.Sprintf("class %v", c.State)
		if slices.Contains(a.classes, c.State) {
			faults.add(fsm.DuplicateName, i, "%s is there twice", where)
		}
		if len(c.States) == 0 {
			faults.add(NeverSatisfied, i, "%s: no state counts as it", where)
		}
		a.classes = append(a.classes, c.State)
		for _, s := range c.States {
			count(s, i, where)
		}
	}
	for _, s := range spec.Uncounted {
		count(s, uncounted, "uncounted")
	}
	if table != nil {
		for i, st := range table.States {
			s := spec.Children.StateAt(i)
			if st.Kind == fsm.Absent {
				a.class[st.Name], a.names[s] = uncounted, st.Name
			} else if _, ok := a.names[s]; !ok {
				faults.add(NoRow, -1, "state %s of machine %s is in no class", st.Name, table.Name)
			}
		}
	}
	if len(faults.Problems) > 0 {
		return nil, &faults
	}
	return a, nil
}

// MustAggregate is [NewAggregate] for package variables. It panics with the
// error.
func MustAggregate[S, C comparable](spec AggregateSpec[S, C]) *Aggregate[S, C] {
	a, err := NewAggregate(spec)
	if err != nil {
		panic(err.Error())
	}
	return a
}

// Of returns what the counted children come to. Its cost is that of the states
// there are, not of the children. The error is [ErrForeign] if a state is
// counted that the rule does not know: the counts were written with another
// table. Counts that were changed by this rule only never give an error.
func (a *Aggregate[S, C]) Of(c *Counts) (Aggregated[C], error) {
	var few [16]int
	by, err := a.byClass(c, few[:])
	if err != nil {
		return Aggregated[C]{}, err
	}
	best, sum := uncounted, 0
	for class, n := range by {
		sum += n
		if n > 0 && (best == uncounted || a.rule == Dominant && n > by[best]) {
			best = class
		}
	}
	result := Aggregated[C]{State: a.empty, Total: max(sum, c.expected)}
	if best != uncounted {
		result.State, result.Count = a.classes[best], by[best]
	}
	result.Partial = result.Count < result.Total
	return result, nil
}

// Compute returns what children in these states come to. The error is
// [fsm.ErrUnknownState] for a state that the rule does not know.
func (a *Aggregate[S, C]) Compute(children iter.Seq[S]) (Aggregated[C], error) {
	var c Counts
	for s := range children {
		if err := a.Enter(&c, s); err != nil {
			return Aggregated[C]{}, err
		}
	}
	return a.Of(&c)
}

// ByClass yields every class in order and how many children are in it, those
// without a child included. Counts of a state that the rule does not know are
// left out; [Aggregate.Of] tells of them.
func (a *Aggregate[S, C]) ByClass(c *Counts) iter.Seq2[C, int] {
	return func(yield func(C, int) bool) {
		by, _ := a.byClass(c, nil)
		for class, n := range by {
			if !yield(a.classes[class], n) {
				return
			}
		}
	}
}

// byClass sums the counts up by class, in buf if it is large enough. With an
// error, unknown states are left out. REQUIRES: buf is zero.
func (a *Aggregate[S, C]) byClass(c *Counts, buf []int) (by []int, err error) {
	if by = buf[:cap(buf)]; len(by) < len(a.classes) {
		by = make([]int, len(a.classes))
	}
	by = by[:len(a.classes)]
	foreign := ""
	for name, n := range c.states {
		class, ok := a.class[name]
		switch {
		case !ok && (foreign == "" || name < foreign):
			foreign = name
		case ok && class != uncounted:
			by[class] += n
		}
	}
	if foreign != "" {
		err = fmt.Errorf("%w: aggregate %s does not know state %q, which is counted", ErrForeign, a.name, foreign)
	}
	return by, err
}
