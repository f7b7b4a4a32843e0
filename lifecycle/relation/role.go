package relation

import (
	"fmt"
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
}

// Role names the objects of one machine that belong to a parent: the reservations
// of a lease, the event that starts it. [NewRole] makes it; [New] refuses
// conditions of the zero Role. It is a plain value.
type Role[S comparable] struct {
	name    string
	machine Machine[S]
}

// NewRole returns a role for objects of the machine. A parent may have any number
// of objects in one role.
func NewRole[S comparable](name string, machine Machine[S]) Role[S] {
	return Role[S]{name, machine}
}

// All is the condition that every object of the role is in one of the states. It
// holds if there are no objects.
func (r Role[S]) All(states ...S) Condition { return r.condition(all, states) }

// One is the condition that there is exactly one object of the role, and that it
// is in one of the states.
func (r Role[S]) One(states ...S) Condition { return r.condition(one, states) }

// None is the condition that no object of the role is in one of the states. It
// holds if there are no objects.
func (r Role[S]) None(states ...S) Condition { return r.condition(none, states) }

// Saw is an object of the role that the caller has read in this state. An absent
// state means that the object does not exist.
func (r Role[S]) Saw(id string, state S) Related { return r.related(id, state, false) }

// Moves is an object of the role that the commit itself brings into this state.
// [Relation.Require] returns no precondition for it.
func (r Role[S]) Moves(id string, to S) Related { return r.related(id, to, true) }

func (r Role[S]) condition(q quantifier, states []S) Condition {
	c := Condition{role: r.name, quantifier: q}
	if r.machine == nil {
		return c
	}
	c.table = r.machine.Table()
	for _, s := range states {
		c.states = append(c.states, stateOf(r.machine, s))
	}
	return c
}

func (r Role[S]) related(id string, state S, moves bool) Related {
	o := Related{role: r.name, id: id, moves: moves}
	if r.machine != nil {
		o.table, o.state = r.machine.Table(), stateOf(r.machine, state)
	}
	return o
}

// state is a state of some machine by index and name.
type state struct {
	index int // -1 if the machine does not declare it
	name  string
}

func stateOf[S comparable](m Machine[S], s S) state {
	if i := m.StateIndex(s); i >= 0 {
		return state{i, m.Table().States[i].Name}
	}
	return state{-1, fmt.Sprintf("%#v", s)} // a String method may return the name of a declared state
}

type quantifier string

const (
	all  quantifier = "all"
	one  quantifier = "one"
	none quantifier = "none"
)

// Condition is a requirement on the objects of one role. [Role.All], [Role.One] and
// [Role.None] make it. It is immutable.
type Condition struct {
	role       string
	quantifier quantifier
	table      *fsm.Table
	states     []state
}

// String returns the condition in the form "all reservation: pending or active".
func (c Condition) String() string {
	names := make([]string, len(c.states))
	for i, s := range c.states {
		names[i] = s.name
	}
	return fmt.Sprintf("%s %s: %s", c.quantifier, c.role, strings.Join(names, " or "))
}

// accepts reports whether an object of the role may be in the state.
func (c Condition) accepts(index int) bool {
	named := slices.ContainsFunc(c.states, func(s state) bool { return s.index == index })
	return named == (c.quantifier != none)
}

// unmet returns the reason why the objects do not meet the condition, or "".
func (c Condition) unmet(related []Related) string {
	count := 0
	for _, o := range related {
		if o.role != c.role || !o.exists() {
			continue
		}
		count++
		if !c.accepts(o.state.index) {
			return fmt.Sprintf("%q is %s", o.id, o.state.name)
		}
	}
	if c.quantifier == one && count != 1 {
		return fmt.Sprintf("there are %d objects", count)
	}
	return ""
}

// Related is an object in a role, with the state in which the caller has read it or
// into which the commit brings it. [Role.Saw] and [Role.Moves] make it. It is a
// plain value.
type Related struct {
	role  string
	table *fsm.Table
	id    string
	state state
	moves bool
}

func (o Related) key() lifecycle.Key { return lifecycle.Key{Machine: o.table.Name, ID: o.id} }

// exists reports whether the object exists in its state.
// REQUIRES: the machine declares the state.
func (o Related) exists() bool { return o.table.States[o.state.index].Kind != fsm.Absent }
