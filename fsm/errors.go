package fsm

import (
	"errors"
	"strings"

	"github.com/interlock-go/interlock/internal/visible"
)

// The sentinels: one for each reaction of a caller. [TransitionError] has the
// detail.
var (
	// ErrNotAllowed: the table has no row for this state and event, or none for
	// the object's origin. A retry in the same state is useless.
	ErrNotAllowed = errors.New("fsm: not allowed")
	// ErrWrongActor: the table has rows for the event, but none for this actor.
	ErrWrongActor = errors.New("fsm: wrong actor")
	// ErrGuard: a guard refused. The error also unwraps to the guard's reason.
	ErrGuard = errors.New("fsm: refused by a guard")
	// ErrForcedOnly: only a forced request takes the row.
	ErrForcedOnly = errors.New("fsm: only by force")
	// ErrConflict: another writer moved the object first.
	ErrConflict = errors.New("fsm: conflict")
	// ErrUnknownState and ErrUnknownEvent: the value or name is not declared.
	ErrUnknownState = errors.New("fsm: unknown state")
	ErrUnknownEvent = errors.New("fsm: unknown event")
	// ErrInvalid: a specification or document has faults. [InvalidError] lists
	// them, and [DocumentError] is the first fault of a document.
	ErrInvalid = errors.New("fsm: invalid table")
)

// TransitionError is the detail of a refused transition. Every refusal has one in
// its tree:
//
//	if te, ok := errors.AsType[*fsm.TransitionError](err); ok { ... }
//
// Fields that do not apply are empty. errors.Is finds the sentinel in Err and the
// errors in Reason.
type TransitionError struct {
	Machine string
	From    string // state
	Origin  string // may be empty if it is not the reason
	Event   string // empty in a refusal of NextTo
	To      string // the target of NextTo
	Actor   Actor
	Row     int    // index of the row that refused (guard, forced only); -1 none
	Guard   string // name of the guard that refused
	Err     error  // sentinel
	Reason  error  // the guard's, or the fault of the origin; else nil
}

// Error returns sentinel, machine, event or target, state, actor and reason in one line.
func (e *TransitionError) Error() string {
	text := e.Machine + ": "
	if e.Err != nil {
		text = e.Err.Error() + ": " + text
	}
	switch {
	case e.Event != "":
		text += e.Event + " "
	case e.To != "":
		text += "to " + e.To + " "
	}
	text += "in " + e.From
	if e.Origin != "" && e.Origin != e.From {
		text += " (origin " + e.Origin + ")"
	}
	if e.Actor != "" {
		text += " by " + string(e.Actor)
	}
	if e.Guard != "" {
		text += ": " + e.Guard
	}
	if e.Reason != nil {
		text += ": " + strings.ReplaceAll(e.Reason.Error(), "\n", "; ") // that of errors.Join has a line for each
	}
	return visible.Text(text)
}

// Unwrap returns the sentinel and the reason.
func (e *TransitionError) Unwrap() []error {
	if e.Reason == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Reason}
}

// InvalidError lists every fault of a table. It matches [ErrInvalid].
type InvalidError struct {
	Machine  string
	Problems []Problem
}

// Error returns one line for each fault.
func (e *InvalidError) Error() string {
	text := "fsm: invalid table"
	if e.Machine != "" {
		text += " " + visible.Text(e.Machine)
	}
	lines := []string{text + ":"}
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n\t")
}

// Is matches [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
