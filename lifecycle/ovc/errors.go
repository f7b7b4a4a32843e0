package ovc

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/interlock-go/interlock/lifecycle"
)

// text is an error with a text of the document.
type text string

func (t text) Error() string { return string(t) }

// The refusals of the document. A [RefusedError] matches one of them, and the sentinel of
// package lifecycle for the same reaction.
var (
	// ErrBusy: the object is in a transition state; repeat the request when it is in
	// a static one. It goes with [lifecycle.ErrBusy].
	ErrBusy error = text("Cannot execute action at this time")
	// ErrOtherAction: the object is not in the expected state. Read it again. It goes
	// with [lifecycle.ErrConflict], or with [lifecycle.ErrNotFound] if the object does
	// not exist: the document has one answer for both.
	ErrOtherAction error = text("Other action currently happening")
)

// RefusedError is a refusal with the text of the document. Its status code is 409, see
// [lifecycle.HTTPStatus].
type RefusedError struct {
	Reason error  // ErrBusy or ErrOtherAction
	Kind   Kind   // of the conflicting object
	ID     string // of that object
	Err    error  // the refusal in detail
}

// Error returns the text of the document. The text of ErrOtherAction begins with the
// status code.
func (e *RefusedError) Error() string {
	if e.Reason != ErrOtherAction {
		return e.Reason.Error()
	}
	return fmt.Sprintf("409 Conflict: %v on %s ID: %s", e.Reason, e.Kind, e.ID)
}

// HTTPStatus is for [lifecycle.HTTPStatus].
func (e *RefusedError) HTTPStatus() int { return http.StatusConflict }

// Unwrap returns Reason and Err.
func (e *RefusedError) Unwrap() []error { return []error{e.Reason, e.Err} }

// refusal converts a refusal of package lifecycle to a [RefusedError]. It returns every
// other error unchanged.
func refusal(kind Kind, id string, err error) error {
	var reason error
	switch {
	case err == nil, errors.Is(err, lifecycle.ErrUnknownOutcome):
		return err
	case errors.Is(err, lifecycle.ErrBusy):
		reason = ErrBusy
	case errors.Is(err, lifecycle.ErrConflict) && !errors.Is(err, lifecycle.ErrExists):
		reason = ErrOtherAction
	default:
		return err
	}
	// An action on several objects may conflict at another one.
	if detail, ok := errors.AsType[*lifecycle.Error](err); ok {
		if other, ok := kindOf(detail.Machine); ok {
			kind, id = other, detail.ID
		}
	}
	return &RefusedError{Reason: reason, Kind: kind, ID: id, Err: err}
}

// invalid returns the error of a malformed request.
func invalid(format string, args ...any) error {
	return fmt.Errorf("ovc: %w: "+format, append([]any{lifecycle.ErrInvalid}, args...)...)
}
