package lifecycle

import (
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// Record is what a [Manager] knows of one object. It is a value: the payload
// shares no memory with the store, and changing it changes nothing there.
type Record[S comparable, T any] struct {
	ID string
	fsm.Status[S]
	Target    string    // where the operation is heading, for people; empty if unsaid
	Revision  Revision  // changes with every commit; compare for equality only
	Sequence  uint64    // counts the commits
	Operation OpID      // the present operation, or the last one; 0 if there was none
	Owner     string    // who does the work of the operation
	Epoch     uint64    // of the owner
	Deadline  time.Time // when the sweeper acts; zero if it does not
	ChangedAt time.Time // by the store's clock
	Actor     fsm.Actor // who made the last change
	Event     string    // and by what event; empty: the object was added
	Reason    string
	Payload   T
}

// record makes the typed form of a stored record.
func (m *Manager[S, E, T]) record(r *StoredRecord) (Record[S, T], error) {
	status, err := m.machine.ParseStatus(r.State, r.Origin)
	if err != nil {
		return Record[S, T]{}, fmt.Errorf("%w: %w", ErrForeign, err)
	}
	payload, err := m.unpack(r.Payload)
	if err != nil {
		return Record[S, T]{}, err
	}
	rec := Record[S, T]{Status: status, Payload: payload}
	m.fill(&rec, r)
	return rec, nil
}

// fill sets everything but status and payload.
func (m *Manager[S, E, T]) fill(rec *Record[S, T], r *StoredRecord) {
	rec.ID, rec.Target, rec.Revision, rec.Sequence = r.ID, r.Target, r.Revision, r.Sequence
	rec.Operation, rec.Owner, rec.Epoch = r.Operation, r.Owner, r.Epoch
	rec.Deadline, rec.ChangedAt = r.Deadline, r.ChangedAt
	rec.Actor, rec.Event, rec.Reason = r.Actor, r.Event, r.Reason
}

// Winner returns the record that won, from an error that matches [ErrConflict]
// or [ErrExists]. It returns false if the error carries none, or if the object
// is gone.
func (m *Manager[S, E, T]) Winner(err error) (Record[S, T], bool) {
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || !conflict.Current.Exists() || conflict.Current.Machine != m.table.Name || !m.about(err, conflict) {
		return Record[S, T]{}, false
	}
	rec, err := m.record(&conflict.Current)
	return rec, err == nil
}

// about reports whether a conflict is the call's own, and not one that a guard
// or Edit brought along from another object.
func (m *Manager[S, E, T]) about(err error, conflict *ConflictError) bool {
	e, ok := errors.AsType[*Error](err)
	return !ok || e.ID == conflict.Current.ID
}
