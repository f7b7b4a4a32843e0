package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// Check reports whether these objects go with a parent in a state: nil if a row
// of the state allows them. An object of a role may be named only once.
//
// The error is a [*RelationError] if none does. It is [ErrInvalid] for an object
// that is named twice, or in a role that the relation does not have, and
// [fsm.ErrUnknownState] for a state that is not declared.
func (r *Relation[S]) Check(parent S, related ...Related) error {
	k := r.parent.StateIndex(parent)
	if k < 0 {
		return &fsm.TransitionError{
			Machine: r.parent.Table().Name, From: stateName(r.parent, parent), Row: -1, Err: fsm.ErrUnknownState,
		}
	}
	if err := r.checkRelated(related); err != nil {
		return err
	}
	failed := &RelationError{Relation: r.name, State: r.parent.Table().States[k].Name}
	for _, row := range r.of[k] {
		unmet, ok := r.unmet(row, related)
		if ok {
			return nil
		}
		failed.Unmet = append(failed.Unmet, unmet)
	}
	if len(failed.Unmet) == 0 {
		return nil // an absent state without a row
	}
	return failed
}

// Allows returns the states of the parent that go with these objects, in the
// order of its machine: those of which a row allows them. So the outcome of an
// operation can be told from what has become of the objects. The errors are
// those of [Relation.Check] but for the [*RelationError]; no state is none.
func (r *Relation[S]) Allows(related ...Related) ([]S, error) {
	if err := r.checkRelated(related); err != nil {
		return nil, err
	}
	var states []S
	for k, rows := range r.of {
		if slices.ContainsFunc(rows, func(row int) bool { _, ok := r.unmet(row, related); return ok }) {
			states = append(states, r.parent.StateAt(k))
		}
	}
	return states, nil
}

// Require checks like [Relation.Check], and returns the preconditions for the
// commit that brings the parent into a state: every object is still in the state
// it was observed in, or does not exist, as it was observed. So the commit fails
// with [ErrPrecondition] if one of them has moved, also where it would be allowed
// to; look again then. Objects that the same commit moves have none, the parent
// among them: that its event still leads into this state is what [Change.Expect] is
// for.
//
// A commit counts every precondition: the store must declare
// [Capabilities].Changes of at least one for each change and one for each object,
// or it refuses with [errors.ErrUnsupported].
func (r *Relation[S]) Require(parent S, related ...Related) ([]Precondition, error) {
	if err := r.Check(parent, related...); err != nil {
		return nil, err
	}
	var pins []Precondition
	for _, o := range related {
		if !o.Moves && !slices.ContainsFunc(pins, func(p Precondition) bool { return p.Key == o.Key }) {
			pins = append(pins, Precondition{Key: o.Key, States: []string{o.State}})
		}
	}
	return pins, nil
}

// RequireParent is [Relation.Require] for a commit that moves a related object,
// or adds one, while the parent stays in its state: the parent is pinned too.
func (r *Relation[S]) RequireParent(id string, parent S, related ...Related) ([]Precondition, error) {
	pins, err := r.Require(parent, related...)
	if err != nil {
		return nil, err
	}
	st := &r.parent.Table().States[r.parent.StateIndex(parent)]
	pin := Precondition{Key: Key{Machine: r.parent.Table().Name, ID: id}, States: []string{st.Name}}
	if st.Kind == fsm.Absent {
		pin.States[0] = ""
	}
	for _, o := range related {
		if o.Key == pin.Key && (o.Moves || o.State != pin.States[0]) {
			return nil, fmt.Errorf("%w: relation %s: the parent %s is %s and %s", ErrInvalid, r.name, o.Key.text(),
				stateOr(pin.States[0]), stateOr(o.State))
		}
	}
	pins = slices.DeleteFunc(pins, func(p Precondition) bool { return p.Key == pin.Key })
	return append([]Precondition{pin}, pins...), nil
}

// checkRelated refuses objects that the relation can say nothing about.
func (r *Relation[S]) checkRelated(related []Related) error {
	type place struct {
		role string
		key  Key
	}
	seen := make(map[place]bool, len(related))
	states := make(map[Key]Related, len(related))
	for _, o := range related {
		table := r.roles[o.Role]
		if table == nil {
			return fmt.Errorf("%w: relation %s has no role %q", ErrInvalid, r.name, o.Role)
		}
		if o.Machine != table.Name {
			return fmt.Errorf("%w: relation %s: %s in the role %s of %s", ErrInvalid, r.name, o.Key.text(), o.Role, table.Name)
		}
		if k, ok := table.StateIndex(o.State); !ok && o.State != "" {
			return &fsm.TransitionError{Machine: table.Name, From: o.State, Row: -1, Err: fsm.ErrUnknownState}
		} else if ok && table.States[k].Kind == fsm.Absent {
			return fmt.Errorf("%w: relation %s: %s in the absent state %s, which is written as none",
				ErrInvalid, r.name, o.Key.text(), o.State)
		}
		if seen[place{o.Role, o.Key}] {
			return fmt.Errorf("%w: relation %s: %s is named twice in role %s", ErrInvalid, r.name, o.Key.text(), o.Role)
		}
		seen[place{o.Role, o.Key}] = true
		if before, ok := states[o.Key]; ok && (before.State != o.State || before.Moves != o.Moves) {
			return fmt.Errorf("%w: relation %s: %s is %s and %s", ErrInvalid, r.name, o.Key.text(), stateOr(before.State), stateOr(o.State))
		}
		states[o.Key] = o
	}
	return nil
}

// unmet returns the first condition of a row that these objects do not meet, or
// true.
func (r *Relation[S]) unmet(row int, related []Related) (Unmet, bool) {
	for _, c := range r.rows[row].Need {
		if u, ok := c.check(related); !ok {
			u.Row, u.Condition = row, c
			return u, false
		}
	}
	return Unmet{}, true
}

// check reports whether objects meet a condition, and which one does not, if it
// is one.
func (c *Condition) check(related []Related) (u Unmet, ok bool) {
	in := 0
	var other Related // one that should be elsewhere
	for _, o := range related {
		if o.Role != c.Role || o.State == "" {
			continue
		}
		u.Objects++
		hit := slices.Contains(c.States, o.State) || c.Quantifier == NoneOf && len(c.States) == 0
		if hit {
			in++
		}
		if hit == (c.Quantifier == NoneOf) && other.Role == "" {
			other = o
		}
	}
	switch c.Quantifier {
	case AllOf:
		ok = in == u.Objects
	case AnyOf:
		ok = in > 0
	case OneOf:
		ok = in == 1 && u.Objects == 1
	case NoneOf:
		ok = in == 0
	}
	u.Object = other
	return u, ok
}

// RelationError says why no row of a relation allows what was observed. It
// matches [ErrPrecondition].
type RelationError struct {
	Relation string
	State    string  // of the parent
	Unmet    []Unmet // for each row of the state: the first condition that is not met
}

// Unmet is a condition that is not met.
type Unmet struct {
	Row       int // index in the relation
	Condition Condition
	Objects   int     // how many objects of the role exist
	Object    Related // the first that is not as it should be; without Role if no object is
}

// Error tells what each row needs and what is there.
func (e *RelationError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s: %s needs ", ErrPrecondition, e.Relation, e.State)
	for i, u := range e.Unmet {
		if i > 0 {
			b.WriteString("; or ")
		}
		fmt.Fprintf(&b, "%v, but ", u.Condition)
		switch {
		case u.Objects == 0:
			b.WriteString("there is none")
		case u.Condition.Quantifier == OneOf && u.Objects > 1:
			fmt.Fprintf(&b, "there are %d", u.Objects)
		default:
			fmt.Fprintf(&b, "%q is %s", u.Object.ID, u.Object.State)
		}
	}
	return b.String()
}

// Is matches [ErrPrecondition].
func (e *RelationError) Is(target error) bool { return target == ErrPrecondition }
