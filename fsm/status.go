package fsm

import "fmt"

// Status is the state of an object and its origin. The origin is the last state
// that was not transitional. Return rows and rollbacks lead to it. The origin of a
// resting state is the state itself. An object that began in a transitional state
// has no origin, and Origin equals State.
type Status[S comparable] struct{ State, Origin S }

// Step is an accepted transition: the status after it, and the row that permits it.
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

// At returns the status of an object that rests in s, or that began in the
// transitional state s.
func (m *Machine[S, E, T]) At(s S) Status[S] { return Status[S]{State: s, Origin: s} }

// ParseStatus returns the status with these names, which a store keeps. An empty
// origin means none. It refuses undeclared names with [ErrUnknownState], and so also a
// resting state with an origin other than itself.
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
		return refuse(fmt.Sprintf("the state rests, and cannot have the origin %q", origin))
	}
	return s, o, nil
}
