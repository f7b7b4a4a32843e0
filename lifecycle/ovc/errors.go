package ovc

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// text is an error whose words are the document's.
type text string

func (t text) Error() string { return string(t) }

// The refusals of the document. [RefusedError] is what is returned, and matches
// one of them, and the sentinel of package lifecycle for the same reaction.
var (
	// ErrBusy: the object is in a transition state; repeat the request when it is in
	// a static one. It goes with [lifecycle.ErrBusy].
	ErrBusy error = text("Cannot execute action at this time")
	// ErrOtherAction: the object is not in the expected state. Read it again. It goes
	// with [lifecycle.ErrConflict], or with [lifecycle.ErrNotFound] if the object does
	// not exist: the document has one answer for both.
	ErrOtherAction error = text("Other action currently happening")
	// ErrMoreThanOne: a search for one object finds several. Nothing was
	// changed. It goes with [lifecycle.ErrInvalid].
	ErrMoreThanOne error = text("More than one object was updated")
)

// RefusedError is a refusal in the words of the document. Its status code is 409,
// and 400 for ErrMoreThanOne, see [lifecycle.HTTPStatus].
type RefusedError struct {
	Reason error    // ErrBusy, ErrOtherAction or ErrMoreThanOne
	Kind   Kind     // of the object in the way
	ID     string   // of that object; empty after a search
	Found  []string // by a search that found several
	Err    error    // the refusal in detail
}

// Error returns the text of the document. The text of ErrOtherAction begins with the
// status code.
func (e *RefusedError) Error() string {
	if e.Reason != ErrOtherAction {
		return e.Reason.Error()
	}
	line := fmt.Sprintf("%d %s: %v on %s", http.StatusConflict, http.StatusText(http.StatusConflict), e.Reason, e.Kind)
	if e.ID != "" {
		line += " ID: " + e.ID
	}
	return line
}

// HTTPStatus is for [lifecycle.HTTPStatus].
func (e *RefusedError) HTTPStatus() int {
	if e.Reason == ErrMoreThanOne {
		return http.StatusBadRequest
	}
	return http.StatusConflict
}

// Unwrap returns Reason and Err.
func (e *RefusedError) Unwrap() []error { return []error{e.Reason, e.Err} }

// words translates a refusal by package lifecycle into the words of the document. It
// returns every other error unchanged.
func words(kind Kind, id string, err error) error {
	var reason error
	switch {
	case err == nil, errors.Is(err, lifecycle.ErrUnknownOutcome):
		return err
	case errors.Is(err, ErrBusy):
		return err
	case errors.Is(err, lifecycle.ErrBusy):
		reason = ErrBusy
	case errors.Is(err, lifecycle.ErrConflict) && !errors.Is(err, lifecycle.ErrExists):
		reason = ErrOtherAction
	default:
		return err
	}
	// Of an action on several objects it may be another one that is in the way.
	if detail, ok := errors.AsType[*lifecycle.Error](err); ok {
		if other, ok := kindOf(detail.Machine); ok {
			kind, id = other, detail.ID
		}
	}
	return &RefusedError{Reason: reason, Kind: kind, ID: id, Err: err}
}

// invalid is a request that is bad whatever the objects are.
func invalid(format string, args ...any) error {
	return fmt.Errorf("ovc: %w: "+format, append([]any{lifecycle.ErrInvalid}, args...)...)
}

func quoted(names []string) string { return strings.Join(names, ", ") }
