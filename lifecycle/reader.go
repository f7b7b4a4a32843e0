package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// Get returns the record of an object. The error is [ErrNotFound], [ErrInvalid],
// [ErrForeign] or the store's.
func (m *Manager[S, E, T]) Get(ctx context.Context, id string) (rec Record[S, T], err error) {
	var r StoredRecord
	if err = checkID(id); err == nil {
		r, err = m.core.get(ctx, m.core.key(id))
	}
	if err == nil && !r.Exists() {
		err = ErrNotFound
	}
	if err == nil {
		rec, err = m.record(&r)
	}
	if err != nil {
		return Record[S, T]{}, m.core.failed("get", id, err)
	}
	return rec, nil
}

// Current returns the record that an object has, from an error that matches
// [ErrConflict], [ErrExists] or [ErrRepeated]. It returns false if the error carries no
// record of the call's own object, or if the object does not exist. The record of a
// repeated request that has created an object is that of this object. Current returns false
// for an [OutcomeError]: [Ticket.Wait] returns the record.
func Current[S, E comparable, T any](m *Manager[S, E, T], err error) (Record[S, T], bool) {
	if _, ok := errors.AsType[*OutcomeError](err); ok {
		return Record[S, T]{}, false // the work may have met the error elsewhere
	}
	var current StoredRecord
	own := true // false: a guard, an edit or BeforeCommit has returned the error of another call
	e, _ := errors.AsType[*Error](err)
	if again, ok := errors.AsType[*RepeatedError](err); ok {
		current, own = again.Current, e == nil || e.Err == error(again)
	} else if conflict, ok := errors.AsType[*ConflictError](err); ok {
		current, own = conflict.Current, e == nil || e.ID == conflict.Current.ID
	}
	if !own || !current.Exists() || current.Machine != m.core.table.Name {
		return Record[S, T]{}, false
	}
	rec, err := m.record(&current)
	return rec, err == nil
}

// Require returns the precondition that an object of this manager is in one of the
// states; without states, that it does not exist. A state that the machine does
// not declare, such as that of a zero [Record], is not an object's state.
func (m *Manager[S, E, T]) Require(id string, states ...S) Precondition {
	p := Precondition{Key: m.core.key(id)}
	for _, s := range states {
		p.States = append(p.States, m.core.storedNames(m.required(s))...)
	}
	if len(states) == 0 {
		p.States = []string{""}
	}
	return p
}

// required returns the name of a state for a precondition: none for an absent
// state. For a state that is not declared it returns a name that no object's state
// has: the empty name is that of a missing object, and a String method may give
// many values one name.
func (m *Manager[S, E, T]) required(s S) string {
	i := m.machine.StateIndex(s)
	switch {
	case i < 0:
		return fmt.Sprintf("%T(%#v)", s, s)
	case m.core.table.States[i].Kind == fsm.Absent:
		return ""
	}
	return m.core.table.States[i].Name
}
