package lifecycle

import (
	"context"
	"errors"
	"net/http"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/queue"
)

// HTTPStatus maps an error of this library to a status code, nil to 200.
//
//	400  ErrInvalid, fsm.ErrUnknownEvent, fsm.ErrUnknownState, lock.ErrInvalid,
//	     queue.ErrInvalid
//	403  fsm.ErrWrongActor, fsm.ErrForcedOnly
//	404  ErrNotFound
//	409  ErrConflict, ErrBusy, ErrExists, ErrStale, fsm.ErrNotAllowed,
//	     lock.ErrConflict, lock.ErrIDInUse, lock.ErrNotHeld, lock.ErrLost,
//	     lock.ErrRevoked, lock.ErrStaleToken, queue.ErrConflict,
//	     queue.ErrStopping, queue.ErrWouldDeadlock
//	412  ErrPrecondition
//	422  fsm.ErrGuard
//	429  lock.ErrQueueFull, queue.ErrFull
//	499  the caller has canceled the request (context.Canceled)
//	500  ErrForeign, and every error that is not listed
//	501  errors.ErrUnsupported: the store lacks a capability
//	503  ErrClosed, queue.ErrTerminated
//	504  ErrUnknownOutcome, context.DeadlineExceeded
//
// The first match counts, in the order of the sentinels below. An error with a
// method HTTPStatus() int has its own code.
func HTTPStatus(err error) int {
	if err == nil {
		return http.StatusOK
	}
	if own, ok := errors.AsType[interface {
		error
		HTTPStatus() int
	}](err); ok {
		return own.HTTPStatus()
	}
	for _, m := range httpStatus {
		if errors.Is(err, m.sentinel) {
			return m.code
		}
	}
	return http.StatusInternalServerError
}

// StatusClientClosedRequest is the customary code for a request that its client has
// canceled.
const StatusClientClosedRequest = 499

// An unknown outcome comes first because it wraps its cause; a precondition and a
// guard's refusal come before the errors that their reasons may match.
var httpStatus = []struct {
	sentinel error
	code     int
}{
	{ErrForeign, http.StatusInternalServerError},
	{ErrUnknownOutcome, http.StatusGatewayTimeout},
	{ErrPrecondition, http.StatusPreconditionFailed},
	{fsm.ErrGuard, http.StatusUnprocessableEntity},
	{ErrInvalid, http.StatusBadRequest},
	{fsm.ErrUnknownEvent, http.StatusBadRequest},
	{fsm.ErrUnknownState, http.StatusBadRequest},
	{ErrNotFound, http.StatusNotFound},
	{ErrBusy, http.StatusConflict},
	{fsm.ErrWrongActor, http.StatusForbidden},
	{fsm.ErrForcedOnly, http.StatusForbidden},
	{ErrExists, http.StatusConflict},
	{ErrStale, http.StatusConflict},
	{ErrConflict, http.StatusConflict},
	{fsm.ErrNotAllowed, http.StatusConflict},
	{lock.ErrInvalid, http.StatusBadRequest},
	{lock.ErrQueueFull, http.StatusTooManyRequests},
	{lock.ErrConflict, http.StatusConflict},
	{lock.ErrIDInUse, http.StatusConflict},
	{lock.ErrNotHeld, http.StatusConflict},
	{lock.ErrLost, http.StatusConflict},
	{lock.ErrRevoked, http.StatusConflict},
	{lock.ErrStaleToken, http.StatusConflict},
	{queue.ErrInvalid, http.StatusBadRequest},
	{queue.ErrFull, http.StatusTooManyRequests},
	{queue.ErrTerminated, http.StatusServiceUnavailable},
	{queue.ErrStopping, http.StatusConflict},
	{queue.ErrConflict, http.StatusConflict},
	{queue.ErrWouldDeadlock, http.StatusConflict},
	{errors.ErrUnsupported, http.StatusNotImplemented},
	{ErrClosed, http.StatusServiceUnavailable},
	{context.DeadlineExceeded, http.StatusGatewayTimeout},
	{context.Canceled, StatusClientClosedRequest},
}
