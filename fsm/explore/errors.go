package explore

import (
	"errors"
	"fmt"
	"strings"
)

// ErrModel: the description of a system is wrong, or one of its functions
// panicked: [*ModelError] says which. Nothing was found out about the system.
var ErrModel = errors.New("check: bad model")

// ModelError names the part of a system that is wrong. [System.Explore] returns
// one, or several joined. It matches [ErrModel] and, after a panic with an error,
// that error.
type ModelError struct {
	System  string
	Part    string // such as: channel "orders"; empty: the system as a whole
	Problem string
	// State is the state in which a function panicked: of the whole system for an
	// invariant, the local one, and the message, for a handler.
	State string
	Panic any    // with which the function panicked; nil if none did
	Stack []byte // of the panic
}

func (e *ModelError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "check: system %q: ", e.System)
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

// Unwrap returns the error with which a function panicked, nil if there is none.
func (e *ModelError) Unwrap() error {
	err, _ := e.Panic.(error)
	return err
}
