package lifecycle

import (
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// The codes of problems of relations and aggregates, beside those of package
// fsm: UnknownState, Unreachable, NoName, DuplicateName, BadState, BadRow.
const (
	NeverSatisfied = "never-satisfied" // no objects can meet the row
	NoObject       = "no-object"       // only having no object of the role meets the row, which does not say so
	ShadowedRow    = "shadowed-row"    // an earlier row allows all that this one allows
	NoRow          = "no-row"          // a state that the rule says nothing about
	BadRole        = "bad-role"        // without name or machine, or two of one name
)

// RuleError lists every fault of the specification of a relation or an
// aggregate. It matches [ErrInvalid].
type RuleError struct {
	Name     string        // of the relation or aggregate
	Problems []fsm.Problem // Row is the index of the row or class, -1 if it is not about one
}

// Error gives a line for each fault.
func (e *RuleError) Error() string {
	var b strings.Builder
	b.WriteString("lifecycle: invalid rule")
	if e.Name != "" {
		b.WriteString(" ")
		b.WriteString(e.Name)
	}
	b.WriteString(":")
	for _, p := range e.Problems {
		b.WriteString("\n\t")
		b.WriteString(p.String())
	}
	return b.String()
}

// Is matches [ErrInvalid].
func (e *RuleError) Is(target error) bool { return target == ErrInvalid }

func (e *RuleError) add(code string, row int, format string, args ...any) {
	e.Problems = append(e.Problems, fsm.Problem{Code: code, Row: row, Text: fmt.Sprintf(format, args...)})
}

func (e *RuleError) state(code string, row int, state string, format string, args ...any) {
	e.add(code, row, format, args...)
	e.Problems[len(e.Problems)-1].State = state
}
