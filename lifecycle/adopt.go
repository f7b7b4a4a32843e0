package lifecycle

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/fsm"
)

// Adopt takes over the objects that another program has written into the store: those with
// the sequence number 0. Use it for the rows that a table had before the library used it.
//
// An adopted object keeps its state. It gets a first history row with the actor and the
// reason, the operation id 1, and the deadline of its state, counted from now, by which
// later sweeps find it. No guard runs. An object without a version is treated as one of the
// version of new objects, unless [Config].Older has the empty version.
//
// An adopted object has no work. If the row with the timeout is that of [fsm.Redo], sweeps
// start its operation again and again, and nothing does the work. Before Adopt, set such
// an object to a state at rest in the store; or set it by [Manager.Override] afterwards.
// Then start the work by [Manager.Do].
//
// Adopt reads all objects, page after page, and commits one after the other. It may be
// called again, for example after it was interrupted, and several processes may call it at
// once. An adopted object has a sequence number, and Adopt leaves it unchanged.
//
// Adopt returns the number of objects that it has adopted, and those that it could not
// place, each with Record.Err:
//
//   - [ErrForeign]: the table does not declare the state or the origin, or the payload
//     cannot be decoded.
//   - [ErrInvalid]: the state is transitional and the record has no origin, or the state is
//     an absent one.
//   - the errors of [Manager.Override], such as [ErrConflict] if the other program has
//     changed the object meanwhile.
//
// Correct these in the store, and call Adopt again. [Manager.Add] is for an object that
// the store does not have.
//
// Adopt ends with an error if the store fails or the context ends. The error is
// [ErrInvalid] if the actor or the reason is empty or blank.
func Adopt[S, E comparable, T any](ctx context.Context, m *Manager[S, E, T], actor fsm.Actor, reason string) (adopted int, unplaced []Record[S, T], err error) {
	if err := checkSigned("an adoption", actor, reason); err != nil {
		return 0, nil, m.core.failed("adopt", "", err)
	}
	for rec, err := range m.All(ctx, Select[S]{}) {
		switch unreadable, ok := errors.AsType[*Error](rec.Err); {
		case err != nil && !ok:
			return adopted, unplaced, err
		case rec.Sequence != 0:
			continue
		case ok:
			unreadable.Verb = "adopt"
		default:
			rec.Err = m.adopt(ctx, rec, actor, reason)
		}
		switch now, _ := Current(m, rec.Err); {
		case rec.Err == nil:
			adopted++
		case now.Sequence != 0: // another process has adopted it
		case ctx.Err() != nil, errors.Is(rec.Err, ErrUnavailable), errors.Is(rec.Err, ErrUnknownOutcome), errors.Is(rec.Err, ErrClosed):
			return adopted, unplaced, rec.Err
		default:
			unplaced = append(unplaced, rec)
		}
	}
	return adopted, unplaced, nil
}

// adopt writes the first history row of an object.
func (m *Manager[S, E, T]) adopt(ctx context.Context, rec Record[S, T], actor fsm.Actor, reason string) error {
	switch kind := m.machine.Kind(rec.State); {
	case kind == fsm.Absent:
		return m.core.failed("adopt", rec.ID, fmt.Errorf("%w: the object is in the absent state %v", ErrInvalid, rec.State))
	case kind == fsm.Transitional && rec.Origin == rec.State:
		return m.core.failed("adopt", rec.ID, fmt.Errorf("%w: the state %v is transitional, and the record has no origin", ErrInvalid, rec.State))
	}
	r := m.overriding(rec.ID, rec.State, actor, reason, &Change[T]{Expect: rec.Revision})
	r.verb = "adopt"
	_, err := m.apply(ctx, r)
	return err
}
