// Package relation checks in which states the objects related to a parent may be
// while the parent is in a state: the reservations and events of a lease, the
// disks of a VM. The check holds at the moment of the commit.
//
//	var (
//		disk  = relation.NewRole("disk", Disk)
//		rules = relation.Must(relation.Spec[VMState]{
//			Name: "vm-disks", Parent: VM,
//			Rows: []relation.Row[VMState]{
//				{States: []VMState{Running, Stopped}, Need: []relation.Condition{disk.All(Attached)}},
//				{States: []VMState{Deleting}}, // any state of the disks
//			},
//		})
//	)
//
//	require, err := rules.Require(Running, disk.Saw("d1", d1.State), disk.Saw("d2", d2.State))
//	vm, err = vms.Fire(ctx, id, Start, User, &lifecycle.Change[Spec]{Expect: vm.Revision, Require: require})
//
// # Guarantees
//
//   - [New] finds the rows that no object can satisfy, and the states of the parent
//     without a row.
//   - A commit with the preconditions of [Relation.Require] fails if one of the
//     related objects is not in the state in which the caller read it.
//
// # Limits
//
//   - A relation checks the objects that the caller names. If an object can join
//     the parent in the meantime, the commit that adds it has to conflict with the
//     commit that moves the parent. For example, it changes a list of ids in the
//     parent's payload, or requires a state of the parent.
//   - The preconditions do not hold the parent. If another commit has moved the
//     parent, the same event may lead to a state that was not checked.
//     [lifecycle.Change.Expect] with the revision that the caller read prevents
//     this. In [lifecycle.Config.BeforeCommit] the state of the parent is already decided.
//   - A state of the parent has one row, and all conditions of the row hold
//     together. A relation has no alternatives.
//   - A row cannot require that a role has no objects: [New] refuses conditions that no
//     object meets. A guard on the list of ids in the parent's payload can require it.
package relation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
)

// Row is one line of a combination table. While the parent is in one of the states,
// all conditions hold. Without conditions the related objects may be in any state.
type Row[S comparable] struct {
	States []S // of the parent
	Need   []Condition
}

// Spec is the specification of a [Relation] as plain data. New refuses the zero
// Spec.
type Spec[S comparable] struct {
	Name   string // used in errors
	Parent Machine[S]
	// Rows have every state of the parent once. Absent states may be left out;
	// the related objects may then be in any state.
	Rows []Row[S]
}

// Relation is a compiled combination table. [New] makes it; the zero Relation is
// not usable. It is immutable, safe for concurrent use, and must not be copied.
type Relation[S comparable] struct {
	name   string
	parent Machine[S]
	roles  map[string]*fsm.Table
	need   map[int][]Condition // by index of the parent's state
}

// New compiles a specification. The error matches [lifecycle.ErrInvalid] and lists
// every fault:
//
//   - a row that no object of some role can satisfy, because the conditions on the
//     role contradict each other;
//   - a state of the parent without a row, or with two;
//   - a row or a condition without states, or with a state that its machine does
//     not declare, or with an absent state of a related object;
//   - a role without a name or a machine, or with two machines;
//   - no name, or no machine of the parent.
func New[S comparable](spec Spec[S]) (*Relation[S], error) {
	r := &Relation[S]{
		name: spec.Name, parent: spec.Parent, roles: make(map[string]*fsm.Table), need: make(map[int][]Condition),
	}
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	if spec.Name == "" {
		fault("the relation has no name")
	}
	if spec.Parent == nil {
		fault("the relation has no machine of the parent")
	}
	for i, row := range spec.Rows {
		row.Need = slices.Clone(row.Need)
		for _, text := range append(r.addStates(row), r.addConditions(row)...) {
			fault("row %d: %s", i, text)
		}
	}
	if spec.Parent != nil {
		for i, st := range spec.Parent.Table().States {
			if _, ok := r.need[i]; !ok && st.Kind != fsm.Absent {
				fault("state %s of machine %s has no row", st.Name, spec.Parent.Table().Name)
			}
		}
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("relation: compile %q: %w:\n\t%s", spec.Name, lifecycle.ErrInvalid, strings.Join(faults, "\n\t"))
	}
	return r, nil
}

// Must is [New] for package variables. It panics with the text of the error.
func Must[S comparable](spec Spec[S]) *Relation[S] {
	r, err := New(spec)
	if err != nil {
		panic(err.Error())
	}
	return r
}

// addStates records a row for its states and returns the faults of these.
func (r *Relation[S]) addStates(row Row[S]) (faults []string) {
	if len(row.States) == 0 {
		faults = append(faults, "the row has no states")
	}
	if r.parent == nil {
		return faults
	}
	for _, s := range row.States {
		st := stateOf(r.parent, s)
		if st.index < 0 {
			faults = append(faults, fmt.Sprintf("machine %s has no state %s", r.parent.Table().Name, st.name))
			continue
		}
		if _, taken := r.need[st.index]; taken {
			faults = append(faults, fmt.Sprintf("state %s already has a row", st.name))
		}
		r.need[st.index] = row.Need
	}
	return faults
}

// addConditions records the roles of a row and returns the faults of its
// conditions.
func (r *Relation[S]) addConditions(row Row[S]) (faults []string) {
	var sound []Condition
	for _, c := range row.Need {
		switch known := r.roles[c.role]; {
		case c.role == "" || c.table == nil:
			faults = append(faults, fmt.Sprintf("role %q has no name or no machine", c.role))
			continue
		case known != nil && known != c.table:
			faults = append(faults, fmt.Sprintf("role %s is of machine %s here and of another machine elsewhere", c.role, c.table.Name))
			continue
		}
		r.roles[c.role] = c.table
		before := len(faults)
		if len(c.states) == 0 {
			faults = append(faults, fmt.Sprintf("%s has no states", c))
		}
		for _, st := range c.states {
			if st.index < 0 {
				faults = append(faults, fmt.Sprintf("%s: machine %s has no state %s", c, c.table.Name, st.name))
			} else if c.table.States[st.index].Kind == fsm.Absent {
				faults = append(faults, fmt.Sprintf("%s: state %s is absent, and an absent object is not checked", c, st.name))
			}
		}
		if len(faults) == before {
			sound = append(sound, c)
		}
	}
	for i, c := range sound {
		judged := slices.ContainsFunc(sound[:i], func(before Condition) bool { return before.role == c.role })
		if !judged && !satisfiable(sound, c.role, c.table) {
			faults = append(faults, fmt.Sprintf("the conditions leave no state to role %s", c.role))
		}
	}
	return faults
}

// satisfiable reports whether an object of the role can reach a state that all
// conditions accept. One object is enough to decide, because every condition looks
// at each object by itself.
func satisfiable(conditions []Condition, role string, table *fsm.Table) bool {
	origins := table.Origins()
	for i, st := range table.States {
		accepted := st.Kind != fsm.Absent && len(origins[i]) > 0
		for _, c := range conditions {
			accepted = accepted && (c.role != role || c.accepts(i))
		}
		if accepted {
			return true
		}
	}
	return false
}

// Check reports whether the relation allows the parent in a state together with the
// related objects. It returns nil, or an error that matches
//
//   - [lifecycle.ErrPrecondition] if the objects do not meet a condition;
//   - [lifecycle.ErrInvalid] if an object is named twice or in a role that the
//     relation does not have;
//   - [fsm.ErrUnknownState] for a state that its machine does not declare.
func (r *Relation[S]) Check(parent S, related ...Related) error {
	st := stateOf(r.parent, parent)
	if st.index < 0 {
		return r.unknown(r.parent.Table(), st)
	}
	seen := make(map[lifecycle.Key]bool, len(related))
	for _, o := range related {
		switch {
		case o.table == nil || r.roles[o.role] != o.table:
			return fmt.Errorf("relation: check %q: %w: %q is in role %q, which the relation lacks or has for another machine",
				r.name, lifecycle.ErrInvalid, o.id, o.role)
		case o.state.index < 0:
			return r.unknown(o.table, o.state)
		case seen[o.key()]:
			return fmt.Errorf("relation: check %q: %w: %s %q is named twice", r.name, lifecycle.ErrInvalid, o.table.Name, o.id)
		}
		seen[o.key()] = true
	}
	for _, c := range r.need[st.index] {
		if why := c.unmet(related); why != "" {
			return fmt.Errorf("relation: check %q: %w: %s needs %v, but %s", r.name, lifecycle.ErrPrecondition, st.name, c, why)
		}
	}
	return nil
}

func (r *Relation[S]) unknown(table *fsm.Table, st state) error {
	return fmt.Errorf("relation: check %q: %w: machine %q has no state %s", r.name, fsm.ErrUnknownState, table.Name, st.name)
}

// Require checks like [Relation.Check] and returns the preconditions for the commit
// that brings the parent into the state: every related object is still in the state
// that [Role.Saw] names. The commit fails with [lifecycle.ErrPrecondition] if one of
// them is in another state, even if the relation allows that state. The caller then reads
// the objects again.
//
// The store has to declare [lifecycle.Capabilities] with enough Changes for all
// changes and preconditions of the commit. Otherwise the commit fails with
// [errors.ErrUnsupported].
func (r *Relation[S]) Require(parent S, related ...Related) ([]lifecycle.Precondition, error) {
	if err := r.Check(parent, related...); err != nil {
		return nil, err
	}
	var require []lifecycle.Precondition
	for _, o := range related {
		if o.moves {
			continue
		}
		name := "" // no object
		if o.exists() {
			name = o.state.name
		}
		require = append(require, lifecycle.Precondition{Key: o.key(), States: []string{name}})
	}
	return require, nil
}
