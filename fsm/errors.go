package fsm

import (
	"errors"
	"strings"
)

// One sentinel per reaction. [TransitionError] has the detail.
var (
	// ErrNotAllowed: the table has no row for this state and event, or none for
	// the object's origin. Asking again in the same state is useless.
	ErrNotAllowed = errors.New("fsm: not allowed")
	// ErrWrongActor: the table has rows for the event, none of them for this
	// actor, or the actor is not declared.
	ErrWrongActor = errors.New("fsm: wrong actor")
	// ErrGuard: a guard said no; the error unwraps to the guard's reason too.
	ErrGuard = errors.New("fsm: refused by a guard")
	// ErrForcedOnly: the row exists and only a forced request takes it.
	ErrForcedOnly = errors.New("fsm: only by force")
	// ErrConflict: somebody else moved the object first.
	ErrConflict = errors.New("fsm: conflict")
	// ErrUnknownState and ErrUnknownEvent: the value or name is not declared.
	ErrUnknownState = errors.New("fsm: unknown state")
	ErrUnknownEvent = errors.New("fsm: unknown event")
	// ErrInvalid: a specification or document has faults; [InvalidError] lists
	// all of them.
	ErrInvalid = errors.New("fsm: invalid table")
)

// TransitionError says which transition was refused and why. Every refusal of
// a transition has one in its tree:
//
//	if te, ok := errors.AsType[*fsm.TransitionError](err); ok { ... }
//
// Fields that do not apply are empty. The sentinel is in Err, and errors.Is
// finds it; a guard's reason is found too.
type TransitionError struct {
	Machine string
	From    string // state
	Origin  string // differs from From in a transitional state that has an origin; empty where it plays no part
	Event   string // empty where a target was asked for
	To      string // the target asked for, by NextTo
	Actor   Actor
	Row     int    // index of the row that refused (guard, forced only); -1 none
	Guard   string // name of the guard that refused
	Err     error  // sentinel
	Reason  error  // the guard's, or what is wrong with the origin; nil otherwise
}

// Error tells machine, state, event or target, actor and reason in one line.
func (e *TransitionError) Error() string {
	var b strings.Builder
	if e.Err != nil {
		b.WriteString(e.Err.Error())
		b.WriteString(": ")
	}
	b.WriteString(e.Machine)
	b.WriteString(": ")
	switch {
	case e.Event != "":
		b.WriteString(e.Event)
		b.WriteString(" ")
	case e.To != "":
		b.WriteString("to ")
		b.WriteString(e.To)
		b.WriteString(" ")
	}
	b.WriteString("in ")
	b.WriteString(e.From)
	if e.Origin != "" && e.Origin != e.From {
		b.WriteString(" (origin ")
		b.WriteString(e.Origin)
		b.WriteString(")")
	}
	if e.Actor != "" {
		b.WriteString(" by ")
		b.WriteString(string(e.Actor))
	}
	if e.Guard != "" {
		b.WriteString(": ")
		b.WriteString(e.Guard)
	}
	if e.Reason != nil {
		b.WriteString(": ")
		b.WriteString(e.Reason.Error())
	}
	return b.String()
}

// Unwrap gives the sentinel and the reason.
func (e *TransitionError) Unwrap() []error {
	if e.Reason == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Reason}
}

// refusal is a [TransitionError] that exists beforehand, one for each state,
// event and actor of a machine, so that refusing costs no allocation. It is
// immutable and 16 bytes; the texts are made when somebody asks.
type refusal struct {
	table *Table
	state uint16
	event uint16
	actor uint8
	kind  refusalKind

	always bool // nothing but state, event and actor decides
}

type refusalKind uint8

const (
	notAllowed refusalKind = iota
	wrongActor
	forcedOnly
)

func (k refusalKind) sentinel() error {
	switch k {
	case wrongActor:
		return ErrWrongActor
	case forcedOnly:
		return ErrForcedOnly
	}
	return ErrNotAllowed
}

func (r *refusal) detail() *TransitionError {
	t := r.table
	e := &TransitionError{
		Machine: t.Name, From: t.States[r.state].Name,
		Event: t.Events[r.event], Actor: t.Actors[r.actor],
		Row: -1, Err: r.kind.sentinel(),
	}
	if r.kind == forcedOnly {
		e.Row = int(t.compiled.forcedEdge(int(r.state), int(r.event), 1<<r.actor).row)
	}
	return e
}

func (r *refusal) Error() string { return r.detail().Error() }

func (r *refusal) Unwrap() error { return r.kind.sentinel() }

// As lets errors.As and errors.AsType find the detail.
func (r *refusal) As(target any) bool {
	te, ok := target.(**TransitionError)
	if ok {
		*te = r.detail()
	}
	return ok
}

// InvalidError lists every fault of a table. It matches [ErrInvalid].
type InvalidError struct {
	Machine  string
	Problems []Problem
}

// Error gives a line for each fault.
func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("fsm: invalid table")
	if e.Machine != "" {
		b.WriteString(" ")
		b.WriteString(e.Machine)
	}
	b.WriteString(":")
	for _, p := range e.Problems {
		b.WriteString("\n\t")
		b.WriteString(p.String())
	}
	return b.String()
}

// Is matches [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }
