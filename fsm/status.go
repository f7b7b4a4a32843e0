package fsm

import "fmt"

// Status is what the owner of an object keeps: its state, and its origin, the
// last state that was not transitional, where return rows and rollbacks lead.
// The origin of a resting state is that state. A transitional state in which
// the object began has no origin; then Origin equals State too.
type Status[S comparable] struct{ State, Origin S }

// Step is an accepted transition: the status that it leads to, and the row that
// allows it.
type Step[S comparable] struct {
	Status[S]
	Row     int  // index in the table
	Ignored bool // the event is accepted and changes nothing
}

// Start returns the status of a new object.
func (m *Machine[S, E, T]) Start() Status[S] {
	s := m.names[m.table.Initial]
	return Status[S]{State: s, Origin: s}
}

// At returns the status of an object that rests in s, or that is in a
// transitional state and has no origin.
func (m *Machine[S, E, T]) At(s S) Status[S] { return Status[S]{State: s, Origin: s} }

// ParseStatus returns the status with these names, as a store keeps them. An
// empty origin means none. It refuses with [ErrUnknownState] what is not
// declared, and an origin that contradicts the state: a resting state is its
// own origin.
func (m *Machine[S, E, T]) ParseStatus(state, origin string) (Status[S], error) {
	s, o, err := m.table.ParseStatus(state, origin)
	if err != nil {
		return Status[S]{}, err
	}
	return Status[S]{State: m.names[s], Origin: m.names[o]}, nil
}

// ParseStatus returns the indexes of a state and an origin; see
// [Machine.ParseStatus].
func (t *Table) ParseStatus(state, origin string) (s, o int, err error) {
	refuse := func(reason string) (int, int, error) {
		return 0, 0, &TransitionError{
			Machine: t.Name, From: fmt.Sprintf("%q", state), Row: -1, Err: ErrUnknownState, Reason: fmt.Errorf("%s", reason),
		}
	}
	s, ok := t.StateIndex(state)
	if !ok {
		return refuse("not declared")
	}
	if origin == "" || origin == state {
		return s, s, nil
	}
	o, ok = t.StateIndex(origin)
	if !ok {
		return refuse(fmt.Sprintf("origin %q is not declared", origin))
	}
	if t.States[s].Kind.Resting() {
		return refuse(fmt.Sprintf("rests, and cannot have the origin %q", origin))
	}
	return s, o, nil
}
