package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/lock"
)

// Change is what a call does besides moving the object. Nil is nothing. If the table
// ignores the event, nothing of it is written, and the conditions of Require on other objects
// are not checked. Its grants and the conditions on the object itself are. Texts are UTF-8
// without NUL, and all of it is within [Config].Limits, or the call returns [ErrInvalid].
type Change[T any] struct {
	// Edit changes the payload in the same commit, before the guards run. It works
	// on a copy, without any lock, once in every attempt to commit. If it returns
	// an error, nothing is written and the call returns the error.
	Edit func(payload *T) error
	// Reason is kept in the record and in its history row.
	Reason string
	// Require are conditions on other objects and on grants of locks, checked in the same
	// commit.
	Require []Precondition
	// Fence is the fencing token of the lock under which the caller changes the object:
	// [lock.Grant.Token]. The record keeps the highest token that a change had, and a change
	// with a lower one is refused with [lock.ErrStaleToken]. So a holder that has lost the
	// lock writes nothing once its successor has changed the object. Changes without a token
	// are not compared: those of the sweeper, and the outcomes of work. An object has one
	// lock, or locks that conflict, because tokens of other locks are not comparable.
	// [errors.ErrUnsupported] if the store has no place for it. Default, 0: none.
	Fence lock.Token
	// Messages are appended in the same commit.
	Messages []Message
	// Force takes forced rows too.
	Force bool
	// Expect is the revision that the object must have: that of the record which
	// the caller has decided on. The call returns [ErrRevision], which is a conflict
	// too, if the object has another one or was removed. A creation may expect the revision
	// of the absent record that Store.Get returns. Default: any revision.
	Expect Revision
	// IfMatch is the value of a client's If-Match header: a list of [Record.ETag], or * for
	// any. Join the values of several such headers by commas. The call returns
	// [ErrRevision] if no ETag is that of the object, or if the object does not exist.
	// Unlike a revision, an ETag is not changed by commits that only extend a deadline, nor
	// by another program that writes to the store. Default: no condition.
	IfMatch string
	// Request identifies the request of a client. The history row keeps it, and while the
	// store has that row, the same request is answered with a [*RepeatedError] and changes
	// nothing: in every process, whatever the object's state is. [ErrInvalid] is the answer
	// to a different request with the same id. Requests that are refused, and those that
	// the table ignores, are not kept. Reports have none, because they have the number of
	// their operation. [errors.ErrUnsupported] if the store keeps no requests. Default: none.
	Request RequestID
	// Operation is the operation that the call continues. The call returns
	// [ErrStale] if the object is in another one, and [ErrNotFound] if it does not
	// exist. Default: any operation.
	Operation OpID
	// Admission is [Record.Admission] of the operation that the call continues. The
	// number of an operation repeats if the store loses its newest commits, for
	// example after a restore from a backup; the token does not. A call with the
	// token of another operation is stale, although the number is right, and also
	// without a number. Default: only the number is compared.
	Admission Token
}

// apply performs a request and returns its result.
func (m *Manager[S, E, T]) apply(ctx context.Context, r *request) (Record[S, T], error) {
	if _, err := apply(ctx, []*request{r}, nil); err != nil {
		return Record[S, T]{}, r.fail(ctx, err)
	}
	return m.result(r), nil
}

// result returns the record as a request has left it. The request has succeeded.
func (m *Manager[S, E, T]) result(r *request) Record[S, T] {
	stored, state, origin := &r.before, r.known.State, r.known.Origin
	if r.written() {
		stored, state, origin = &r.change.To, r.decision.State, r.decision.Origin
	}
	status := fsm.Status[S]{State: m.machine.StateAt(state), Origin: m.machine.StateAt(origin)}
	payload, _ := r.decoded.(T)
	rec := newRecord(status, stored, payload)
	rec.Version = r.version
	return rec
}

// request makes a request of a verb. The event is nil if the verb names a state instead.
func (m *Manager[S, E, T]) request(verb decide.Verb, name, id string, e *E, actor fsm.Actor, change *Change[T]) *request {
	r := &request{
		core: m.core, verb: name, key: m.core.key(id), byCaller: true, ask: decide.Request{Verb: verb, Actor: actor},
	}
	if e != nil {
		if r.ask.Event = m.machine.EventIndex(*e); r.ask.Event >= 0 {
			r.event = m.core.table.Events[r.ask.Event]
		} else {
			r.event = fmt.Sprint(*e)
		}
	}
	if change == nil {
		return r
	}
	r.Change = Change[[]byte]{
		Reason: change.Reason, Require: change.Require, Fence: change.Fence, Messages: change.Messages, Force: change.Force,
		Expect: change.Expect, IfMatch: change.IfMatch, Request: change.Request, Operation: change.Operation, Admission: change.Admission,
	}
	if change.Edit != nil {
		r.Edit = editBytes(change.Edit, m.core.limits.Payload)
	}
	r.ask.Force, r.ask.Edits = r.Force, r.Edit != nil
	return r
}

// guard runs the guard of a row on copies of the payloads: what it changes in them
// changes nothing.
func (m *Manager[S, E, T]) guard(ctx context.Context, row int, before, after []byte) (refusal, err error) {
	was, err := unpack[T](before)
	if err != nil {
		return nil, err
	}
	is, err := unpack[T](after)
	if err != nil {
		return nil, err
	}
	return m.machine.Check(ctx, row, &was, &is), nil
}

func (m *Manager[S, E, T]) decode(data []byte) (any, error) { return unpack[T](data) }

func (m *Manager[S, E, T]) editPayload(edit any) (func(*[]byte) error, bool) {
	typed, ok := edit.(func(*T) error)
	if !ok {
		return nil, false
	}
	return editBytes(typed, m.core.limits.Payload), true
}

// mostLevels is how many levels of nested values package encoding/json reads.
const mostLevels = 10_000

// pack encodes a payload of limited size. A payload type without any bits is kept as
// nothing.
func pack[T any](v T, limit int) ([]byte, error) {
	if reflect.TypeFor[T]().Size() == 0 {
		return nil, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: payload: %w", ErrInvalid, err)
	}
	// Marshal counts the levels of a json.RawMessage from its own beginning. The record
	// could not be read again.
	if len(data) > mostLevels && !json.Valid(data) {
		return nil, fmt.Errorf("%w: payload of more than %d nested levels", ErrInvalid, mostLevels)
	}
	return data, checkSize("payload", len(data), limit)
}

// unpack decodes a payload. The value shares no memory with the bytes. The error
// matches [ErrForeign].
func unpack[T any](data []byte) (v T, err error) {
	if len(data) == 0 {
		return v, nil
	}
	if err = json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("%w: payload is not a %v: %w", ErrForeign, reflect.TypeFor[T](), err)
	}
	return v, nil
}

// editBytes returns an edit of the encoded payload for an edit of the payload. The
// result shares no memory with what the edit has put into the payload.
func editBytes[T any](edit func(*T) error, limit int) func(*[]byte) error {
	return func(data *[]byte) error {
		payload, err := unpack[T](*data)
		if err == nil {
			err = edit(&payload)
		}
		if err == nil {
			*data, err = pack(payload, limit)
		}
		return err
	}
}
