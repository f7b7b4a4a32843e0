package explore

import (
	"errors"
	"fmt"
	"strings"
)

// ErrModel reports that the description of a system is faulty, or that one of its
// functions panicked. [*ModelError] has the details. The exploration has no
// verdict.
var ErrModel = errors.New("explore: bad model")

// ModelError names the faulty part of a system. [System.Explore] returns one, or
// several joined. It matches [ErrModel] and, after a panic with an error, that
// error.
type ModelError struct {
	System  string
	Part    string // such as: channel "orders"; empty: the system as a whole
	Problem string
	// State is the state in which a function panicked: the whole state for an
	// invariant, the local state and the message for a handler.
	State string
	Panic any    // the value of the panic; nil if no function panicked
	Stack []byte // of the panic
}

// Error returns the system, the part and the problem as one line.
func (e *ModelError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "explore: system %q: ", e.System)
	if e.Part != "" {
		b.WriteString(e.Part + ": ")
	}
	b.WriteString(e.Problem)
	if e.State != "" {
		b.WriteString(" in " + e.State)
	}
	return b.String()
}

// Is reports whether target is ErrModel.
func (e *ModelError) Is(target error) bool { return target == ErrModel }

// Unwrap returns the error with which a function panicked, or nil.
func (e *ModelError) Unwrap() error {
	err, _ := e.Panic.(error)
	return err
}
