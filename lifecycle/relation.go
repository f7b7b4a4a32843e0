package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Role is what objects of one machine are to an object of another: the
// reservations of a lease, the event that starts it. [NewRole] makes one; the
// zero Role is refused where it is used. It is a plain value.
type Role[S comparable] struct {
	name    string
	machine Machine[S]
}

// NewRole names a role and the machine of the objects in it. One parent may have
// any number of them.
func NewRole[S comparable](name string, machine Machine[S]) Role[S] {
	return Role[S]{name, machine}
}

// All is the condition that every object of the role is in one of the states.
// Having none satisfies it.
func (r Role[S]) All(states ...S) Condition { return r.condition(AllOf, states) }

// Any is the condition that at least one object of the role is in one of the
// states.
func (r Role[S]) Any(states ...S) Condition { return r.condition(AnyOf, states) }

// One is the condition that there is exactly one object of the role, and it is
// in one of the states.
func (r Role[S]) One(states ...S) Condition { return r.condition(OneOf, states) }

// None is the condition that no object of the role is in one of the states;
// without states, that there is no object of the role.
func (r Role[S]) None(states ...S) Condition { return r.condition(NoneOf, states) }

// Saw is an object of the role that was observed in a state. An absent state
// says that it does not exist. One that is not declared, such as that of a zero
// [Record], is refused where it is used.
func (r Role[S]) Saw(id string, state S) Related { return r.related(id, state, false) }

// Moves is an object of the role that the commit itself brings into a state. No
// precondition holds it where it was seen: if its event could lead to another state
// from elsewhere, its part is made with [Change.Expect].
func (r Role[S]) Moves(id string, to S) Related { return r.related(id, to, true) }

func (r Role[S]) condition(q Quantifier, states []S) Condition {
	c := Condition{Role: r.name, Quantifier: q}
	if r.machine == nil {
		return c
	}
	c.table = r.machine.Table()
	for _, s := range states {
		c.States = append(c.States, stateName(r.machine, s))
	}
	return c
}

func (r Role[S]) related(id string, state S, moves bool) Related {
	o := Related{Role: r.name, Key: Key{ID: id}, State: fmt.Sprint(state), Moves: moves}
	if r.machine == nil {
		return o
	}
	table := r.machine.Table()
	o.Machine = table.Name
	o.State = stateName(r.machine, state)
	if i := r.machine.StateIndex(state); i >= 0 && table.States[i].Kind == fsm.Absent {
		o.State = ""
	}
	return o
}

// Related is one object in a role, and what was observed of it. It is a plain
// value; [Role.Saw] and [Role.Moves] make it.
type Related struct {
	Role string
	Key
	State string // name; empty: it does not exist, and counts as none
	Moves bool   // the commit brings it there, so that it needs no precondition
}

// Quantifier says of how many objects of a role a condition speaks.
type Quantifier uint8

const (
	AllOf  Quantifier = iota // every object is in one of the states
	AnyOf                    // at least one is
	OneOf                    // there is exactly one object, and it is
	NoneOf                   // no object is; without states: there is no object
)

var quantifierNames = [...]string{"all", "any", "one", "none"}

// String returns the name in lower case.
func (q Quantifier) String() string {
	if int(q) < len(quantifierNames) {
		return quantifierNames[q]
	}
	return "quantifier?"
}

// Condition is what the objects of one role have to be. It is plain data, read
// only; the methods of [Role] make it.
type Condition struct {
	Role       string
	Quantifier Quantifier
	States     []string // names
	table      *fsm.Table
}

// String returns the condition as people say it: "all reservation: pending or
// active".
func (c Condition) String() string {
	if len(c.States) == 0 && c.Quantifier == NoneOf {
		return "no " + c.Role
	}
	return fmt.Sprintf("%v %s: %s", c.Quantifier, c.Role, strings.Join(c.States, " or "))
}

// RelationRow is one line of a combination table: what the objects of the roles
// have to be while the parent is in one of the states.
type RelationRow[S comparable] struct {
	States []S         // of the parent
	Need   []Condition // all of them; none: everything is allowed
	Doc    string      // optional: a line for people, see [Relation.String]
}

// RelationSpec is the specification of a [Relation] as plain data. The zero
// RelationSpec is refused.
type RelationSpec[S comparable] struct {
	Name   string     // what errors call it
	Parent Machine[S] // of the objects that the rows are about
	// Rows in order of trial: several of one state are alternatives. Every state
	// that is not absent needs a row; an absent one may have one, which says what
	// must be before the parent goes, or comes. Without it everything may be.
	Rows []RelationRow[S]
}

// Relation is a table of combinations: which states of related objects, of other
// machines, go with a state of their parent. [NewRelation] makes one; the zero
// Relation is not usable. It is immutable, safe for concurrent use, and must not
// be copied.
//
// It looks at what it is told. That the objects still are what they were told to
// be when the commit happens is what the preconditions of [Relation.Require] see
// to. They know the objects that were told, so an object that joins meanwhile
// has to be seen elsewhere: whoever adds one changes the parent with it, such as
// a list of ids in its payload, or requires a state of the parent in which
// objects may join.
//
// Nor do they hold the parent, and whatever else the commit moves: if somebody has
// moved it since, the same event may lead to another state than the one that was
// checked. [Change.Expect] with the revision that was seen sees to that. Where the
// check is made in [Config.Along] of the parent's manager, which every verb goes
// through, the parent's change is decided already, and held.
type Relation[S comparable] struct {
	name   string
	parent Machine[S]
	roles  map[string]*fsm.Table
	rows   []RelationRow[S]
	of     [][]int // by state of the parent: its rows
}

// NewRelation compiles a specification. The error is a [*RuleError] with every
// fault, each with its row:
//
//   - a state that its machine does not have, that no object reaches, or that is
//     absent;
//   - a row that no objects can satisfy because its conditions contradict each
//     other, or that they satisfy only by not being there, where
//     [Role.None] without states would say so;
//   - a row that is shadowed by an earlier one of the same state of the parent:
//     that one allows all that this one allows. It is compared with one row at a
//     time; a row that several earlier ones cover together is not found;
//   - a state of the parent without a row.
func NewRelation[S comparable](spec RelationSpec[S]) (*Relation[S], error) {
	r := &Relation[S]{name: spec.Name, parent: spec.Parent, roles: make(map[string]*fsm.Table)}
	for _, row := range spec.Rows {
		row.States, row.Need = slices.Clone(row.States), slices.Clone(row.Need)
		for i := range row.Need {
			row.Need[i].States = slices.Clone(row.Need[i].States)
		}
		r.rows = append(r.rows, row)
	}
	faults := &RuleError{Name: spec.Name}
	if spec.Name == "" {
		faults.add(fsm.NoName, -1, "the relation has no name")
	}
	if spec.Parent == nil {
		faults.add(BadRole, -1, "the relation has no machine of the parent")
		return nil, faults
	}
	r.analyse(faults)
	if len(faults.Problems) > 0 {
		return nil, faults
	}
	return r, nil
}

// MustRelation is [NewRelation] for package variables. It panics with the error.
func MustRelation[S comparable](spec RelationSpec[S]) *Relation[S] {
	r, err := NewRelation(spec)
	if err != nil {
		panic(err.Error())
	}
	return r
}

// String returns the table, a line for each row, with its Doc.
func (r *Relation[S]) String() string {
	var b strings.Builder
	b.WriteString(r.name)
	for i := range r.rows {
		b.WriteString("\n\t")
		b.WriteString(r.describe(i))
		if doc := r.rows[i].Doc; doc != "" {
			b.WriteString(" (" + doc + ")")
		}
	}
	return b.String()
}

func (r *Relation[S]) describe(row int) string {
	states := make([]string, len(r.rows[row].States))
	for i, s := range r.rows[row].States {
		states[i] = stateName(r.parent, s)
	}
	return strings.Join(states, "|") + ": " + needs(r.rows[row].Need)
}

func needs(need []Condition) string {
	if len(need) == 0 {
		return "anything"
	}
	texts := make([]string, len(need))
	for i, c := range need {
		texts[i] = c.String()
	}
	return strings.Join(texts, ", ")
}
