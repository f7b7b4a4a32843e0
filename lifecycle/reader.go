package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// Reader reads the objects of a [Manager], which embeds it: its methods are methods of the
// Manager too. Code that changes nothing takes a Reader: &m.Reader. It is safe for concurrent
// use. The zero Reader is not usable.
type Reader[S, E comparable, T any] struct {
	machine *fsm.Machine[S, E, T]
	core    *core
}

// Machine returns the machine of the objects.
func (rd *Reader[S, E, T]) Machine() *fsm.Machine[S, E, T] { return rd.machine }

// Queue returns the queue of the work: that of [Config], or else the manager's own one,
// which is a *[queue.Queuer] of [Key].
func (rd *Reader[S, E, T]) Queue() Queue { return rd.core.queue }

// Get returns the record of an object. The error is [ErrNotFound], [ErrInvalid],
// [ErrForeign] or the store's.
func (rd *Reader[S, E, T]) Get(ctx context.Context, id string) (Record[S, T], error) {
	rec, err := rd.get(ctx, id)
	if err != nil {
		return Record[S, T]{}, rd.core.failed("get", id, err)
	}
	return rec, nil
}

func (rd *Reader[S, E, T]) get(ctx context.Context, id string) (rec Record[S, T], err error) {
	if err = checkID(id); err != nil {
		return rec, err
	}
	r, err := rd.core.get(ctx, rd.core.key(id))
	switch {
	case err != nil:
		return rec, err
	case !r.Exists():
		return rec, ErrNotFound
	}
	return rd.record(&r)
}

// Current returns the record that an object has, from an error that matches
// [ErrConflict], [ErrExists] or [ErrRepeated]. It returns false if the error carries no
// record of the call's own object, or if the object does not exist. The record of a
// repeated request that has created an object is that of this object.
func (rd *Reader[S, E, T]) Current(err error) (Record[S, T], bool) {
	var current StoredRecord
	if again, ok := errors.AsType[*RepeatedError](err); ok {
		current = again.Current
	} else if conflict, ok := errors.AsType[*ConflictError](err); ok {
		current = conflict.Current
		if e, ok := errors.AsType[*Error](err); ok && e.ID != current.ID {
			return Record[S, T]{}, false // a guard or an edit has returned another object's conflict
		}
	}
	if !current.Exists() || current.Machine != rd.core.table.Name {
		return Record[S, T]{}, false
	}
	rec, err := rd.record(&current)
	return rec, err == nil
}

// Require returns the precondition that an object of this manager is in one of the
// states; without states, that it does not exist. A state that the machine does
// not declare, such as that of a zero [Record], is no object's state.
func (rd *Reader[S, E, T]) Require(id string, states ...S) Precondition {
	p := Precondition{Key: rd.core.key(id)}
	for _, s := range states {
		p.States = append(p.States, rd.core.stored(rd.required(s))...)
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
func (rd *Reader[S, E, T]) required(s S) string {
	table := rd.core.table
	if i := rd.machine.StateIndex(s); i >= 0 {
		if table.States[i].Kind == fsm.Absent {
			return ""
		}
		return table.States[i].Name
	}
	name := fmt.Sprint(s)
	if _, taken := table.StateIndex(name); taken || name == "" {
		name = fmt.Sprintf("%T(%#v)", s, s)
	}
	return name
}
