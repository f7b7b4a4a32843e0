package edgecloud

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// The sentinels of operations.
var (
	// ErrFailed: the operation failed. [FailedError] has the reason.
	ErrFailed error = &statusError{"edgecloud: failed", http.StatusUnprocessableEntity}
	// ErrNoAnswer: the CRM has not reported the end in time. The operation has failed.
	// [lifecycle.HTTPStatus] is 504.
	ErrNoAnswer error = &statusError{"edgecloud: no answer", http.StatusGatewayTimeout}
	// ErrStillWorking: the time is over, but the CRM has started. The operation
	// continues; wait again later. [lifecycle.HTTPStatus] is 409, as for
	// [lifecycle.ErrBusy], the error of other requests meanwhile.
	ErrStillWorking error = &statusError{"edgecloud: still working", http.StatusConflict}
)

// statusError is a sentinel with a status code.
type statusError struct {
	text string
	code int
}

func (e *statusError) Error() string   { return e.text }
func (e *statusError) HTTPStatus() int { return e.code }

// FailedError is an operation that failed. It matches [ErrFailed], and also
// [ErrNoAnswer] if the CRM has not answered. Its status code is 504 after a timeout,
// and 422 if the CRM has reported errors. It is a plain value.
type FailedError struct {
	Key       lifecycle.Key
	Operation lifecycle.OpID
	State     State    // CreateError, UpdateError or DeleteError
	Errors    []string // of the CRM
	TimedOut  bool     // the CRM has not reported the end in time
	Undone    bool     // the object is as before the operation
}

// Error returns one line with the errors of the CRM.
func (e *FailedError) Error() string {
	text := fmt.Sprintf("edgecloud: operation %d of %s %q failed: %s", e.Operation, e.Key.Machine, e.Key.ID, e.State)
	if len(e.Errors) > 0 {
		text += ": " + strings.Join(e.Errors, "; ")
	}
	if e.Undone {
		text += " (undone)"
	}
	return text
}

// HTTPStatus returns the status code, see [lifecycle.HTTPStatus].
func (e *FailedError) HTTPStatus() int {
	if e.TimedOut {
		return http.StatusGatewayTimeout
	}
	return http.StatusUnprocessableEntity
}

// Is matches [ErrFailed], and [ErrNoAnswer] if the CRM has not answered.
func (e *FailedError) Is(target error) bool {
	return target == ErrFailed || e.TimedOut && target == ErrNoAnswer
}

const noAnswer = "the CRM has not answered in time"

// Errors returns the errors of an object in an error state; nil in any other state, and if
// the CRM has reported none.
func Errors[T any](rec Record[T]) []string {
	switch {
	case !isError(rec.State):
		return nil
	case rec.Event == string(TimedOut):
		return []string{noAnswer}
	case rec.Reason == "":
		return nil
	}
	return strings.Split(rec.Reason, "\n")
}

// failure returns the error of an object in an error state.
func (in *Instances[T]) failure(rec *Record[T]) *FailedError {
	return &FailedError{
		Key: in.key(rec.ID), Operation: rec.Operation, State: rec.State,
		Errors: Errors(*rec), TimedOut: rec.Event == string(TimedOut),
	}
}
