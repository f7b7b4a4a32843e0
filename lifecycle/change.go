package lifecycle

import "github.com/interlock-go/interlock/lock"

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
