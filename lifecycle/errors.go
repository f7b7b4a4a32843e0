package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/internal/decide"
	"github.com/interlock-go/interlock/internal/visible"
	"github.com/interlock-go/interlock/lock"
)

// The sentinels of this package, one for each reaction of a caller, beside those of
// package fsm. [Error] has the detail, [Problem] the form for clients.
var (
	// ErrConflict: another writer moved the object first. Read the object again and
	// decide whether the request still makes sense. It is [fsm.ErrConflict].
	ErrConflict = fsm.ErrConflict
	// ErrBusy: the object is in transition and its state has no row for the event.
	// Try again when the operation has ended. The error matches fsm.ErrNotAllowed
	// too, or fsm.ErrForcedOnly if the state has only a forced row.
	ErrBusy = decide.ErrBusy
	// ErrRevision: the object has another revision than [Change].Expect, or none of the
	// ETags of [Change].IfMatch. The error matches ErrConflict too.
	ErrRevision = errors.New("lifecycle: another revision")
	// ErrRepeated: the client's request was accepted before, see [Change].Request. Send
	// the client the answer again; [RepeatedError] has what it needs.
	ErrRepeated = errors.New("lifecycle: repeated request")
	// ErrNotFound: the object does not exist.
	ErrNotFound = decide.ErrNotFound
	// ErrExists: the object exists already.
	ErrExists = decide.ErrExists
	// ErrStale: the request is about an operation that is over. Drop the request.
	ErrStale = decide.ErrStale
	// ErrPrecondition: another object is not in a state that the request needs, or a grant
	// that it needs is not held.
	ErrPrecondition = errors.New("lifecycle: precondition failed")
	// ErrInvalid: the request is bad in every state of the object.
	ErrInvalid = errors.New("lifecycle: invalid request")
	// ErrMisconfigured: the program has not configured what the request needs, such as
	// a handler. No other request helps.
	ErrMisconfigured = errors.New("lifecycle: misconfigured")
	// ErrForeign: the stored record is of a version that the manager does not have
	// ([VersionError]), names a state that the machine does not have, or its payload
	// cannot be decoded or upgraded: another table or another T has written it.
	// The record is not changed. Leave it to a process that has both. One verb is
	// excepted: an [Manager.Override] to an absent state, without Edit, removes an
	// object whose payload cannot be decoded or upgraded.
	ErrForeign = errors.New("lifecycle: foreign record")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("lifecycle: store is closed")
	// ErrUnavailable: the store cannot do it now: it does not answer, other
	// transactions are in the way, or it is full. Nothing was written. Try again
	// later.
	ErrUnavailable = errors.New("lifecycle: store is unavailable")
	// ErrUnknownOutcome: the commit may or may not have been written, and the store
	// does not answer which. [UnknownOutcomeError] has the token.
	ErrUnknownOutcome = errors.New("lifecycle: unknown outcome")
)

// Error is the request and its failure. Every error of a [Manager] is one or wraps
// one. Fields that do not apply are empty.
type Error struct {
	Verb    string // of the request: "fire", "do", "report", "sweep"; "outcome" is the end of work
	Machine string
	ID      string
	From    string // the object's state when the request was decided; empty: it did not exist
	Event   string
	Actor   fsm.Actor
	Err     error // matches one of the sentinels, or is the store's own error
}

// Error returns one line.
func (e *Error) Error() string {
	text := "lifecycle: " + e.Verb + " " + e.Machine
	if e.ID != "" {
		text += fmt.Sprintf(" %q", shown(e.ID))
	}
	if e.Event != "" {
		text += ": " + shown(e.Event)
	}
	if e.Actor != "" {
		text += " by " + shown(string(e.Actor))
	}
	if e.From != "" {
		text += " in " + e.From
	}
	return oneLine(text + ": " + reason(e.Err))
}

// reason returns the text of an error without what the line has already: the names of
// a refusal by the table, and the prefix of the package.
func reason(err error) string {
	text := err.Error()
	if te, ok := err.(*fsm.TransitionError); ok {
		text = te.Err.Error()
		if te.Err == fsm.ErrUnknownState {
			text += ": " + shown(cmp.Or(te.To, te.From))
		}
		if te.Guard != "" {
			text += ": " + te.Guard
		}
		if te.Reason != nil {
			text += ": " + te.Reason.Error()
		}
	}
	return strings.TrimPrefix(strings.TrimPrefix(text, "lifecycle: "), "fsm: ")
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// ConflictError is the answer of a store to a change whose expectation failed. It
// matches [ErrConflict] and has the record that is there now; see
// [Current] for its typed form.
type ConflictError struct {
	Change  int // index of the change in the commit
	Expect  Revision
	From    string
	Current StoredRecord // without State if the object does not exist
}

// Error returns what was expected and what is there.
func (e *ConflictError) Error() string {
	was := stateOr(e.From) + " "
	if e.From == e.Current.State {
		was = "" // only the revision differs
	}
	return fmt.Sprintf("%v: %s is expected %sat revision %q and is %s at %q", ErrConflict, e.Current.Key.text(),
		was, shown(string(e.Expect)), stateOr(e.Current.State), e.Current.Revision)
}

// Is matches [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// existsError is the error of a create that has found the object, or has lost to
// another create.
type existsError struct{ conflict *ConflictError }

func (e *existsError) Error() string {
	return fmt.Sprintf("%v, %s at revision %q", ErrExists, e.conflict.Current.State, e.conflict.Current.Revision)
}

func (e *existsError) Unwrap() []error { return []error{ErrExists, e.conflict} }

// revisionError is a conflict of a request whose caller has named the revision or ETags.
type revisionError struct {
	conflict *ConflictError
	ifMatch  string
}

func (e *revisionError) Error() string {
	now := &e.conflict.Current
	if e.ifMatch == "" || now.matches(e.ifMatch) {
		return e.conflict.Error()
	}
	text := fmt.Sprintf("%v: %s is %s", ErrConflict, now.Key.text(), stateOr(now.State))
	if now.Exists() {
		text += " with ETag " + now.etag()
	}
	return text + ", and If-Match is " + shown(e.ifMatch)
}

func (e *revisionError) Unwrap() []error { return []error{ErrRevision, e.conflict} }

// PreconditionError names the condition that failed. It matches
// [ErrPrecondition], and [lock.ErrLost] if the condition was a grant.
type PreconditionError struct {
	Precondition
	Current StoredRecord
}

// Error returns what was needed and what is there.
func (e *PreconditionError) Error() string { return ErrPrecondition.Error() + ": " + e.detail() }

func (e *PreconditionError) detail() string {
	if e.Grant != nil {
		return fmt.Sprintf("the grant with token %v is not held", e.Grant.Token())
	}
	needed := make([]string, len(e.States))
	for i, s := range e.States {
		needed[i] = stateOr(s)
	}
	return fmt.Sprintf("%s is %s, not %s", e.Current.Key.text(),
		stateOr(e.Current.State), strings.Join(needed, " or "))
}

// Is matches [ErrPrecondition], and [lock.ErrLost] for a grant.
func (e *PreconditionError) Is(target error) bool {
	return target == ErrPrecondition || e.Grant != nil && target == lock.ErrLost
}

// OwnerError is the answer of a store to a commit of a process that is not alive: it
// was declared dead, has left, or another process has joined under its name. It
// matches [ErrStale].
type OwnerError struct{ Owner OwnerRef }

// Error names the owner and its epoch.
func (e *OwnerError) Error() string {
	return fmt.Sprintf("%v: owner %q of epoch %d is not alive", ErrStale, e.Owner.Name, e.Owner.Epoch)
}

// Is matches [ErrStale].
func (e *OwnerError) Is(target error) bool { return target == ErrStale || target == errOwner }

// errOwner is an [OwnerError] for [Problem]: another process can do what this one
// must not do any more.
var errOwner = errors.New("lifecycle: this process has lost its ownership")

// ownerLost reports whether an error is the store's answer that this process is not
// alive.
func ownerLost(err error) bool {
	_, ok := errors.AsType[*OwnerError](err)
	return ok
}

// UnknownOutcomeError has the token of a commit that may or may not have been
// written. It matches [ErrUnknownOutcome]. If the history of the object has a row
// with the token, the commit was written.
type UnknownOutcomeError struct {
	Token Token
	Err   error // the store's last answer
}

// Error returns the token and the store's answer.
func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("%v of commit %s: %v", ErrUnknownOutcome, e.Token, e.Err)
}

// Is matches [ErrUnknownOutcome].
func (e *UnknownOutcomeError) Is(target error) bool { return target == ErrUnknownOutcome }

// Unwrap returns Err.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// oneLine returns a text without line breaks and characters that are not printable, such as
// terminal controls. Reasons, actors and errors of user code may have them, and must not forge
// lines of a log.
func oneLine(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for i, line := range lines {
		if i > 0 {
			line = strings.TrimSpace(line)
		}
		lines[i] = visible.Escaped(line)
	}
	return strings.Join(lines, "; ")
}

// shown returns as much of a caller's text as an error contains.
func shown(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

func stateOr(name string) string {
	if name == "" {
		return "absent"
	}
	return name
}
