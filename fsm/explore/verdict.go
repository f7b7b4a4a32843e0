package explore

import (
	"errors"
	"fmt"
	"strings"
)

// Outcome says how an exploration ended.
type Outcome uint8

const (
	// Inconclusive: a bound was reached or the context ended before every state
	// was seen, and nothing wrong was found until then. It is not a pass. It is the
	// zero Outcome.
	Inconclusive Outcome = iota
	// Holds: every reachable state was seen, and nothing is wrong with any.
	Holds
	// Violated: a reachable state breaks an invariant.
	Violated
	// Stuck: a reachable state does not rest, and no step but faults leads out.
	Stuck
	// Livelock: from a reachable state the system goes on forever, and cannot come
	// to rest without further faults.
	Livelock
)

var outcomeNames = [...]string{"inconclusive", "holds", "violated", "stuck", "livelock"}

func (o Outcome) String() string { return nameOr(outcomeNames[:], int(o), "Outcome") }

// MarshalText writes the outcome as String does.
func (o Outcome) MarshalText() ([]byte, error) { return marshalName(outcomeNames[:], int(o)) }

// UnmarshalText reads what MarshalText writes.
func (o *Outcome) UnmarshalText(text []byte) error {
	i, err := unmarshalName(outcomeNames[:], text)
	*o = Outcome(i)
	return err
}

// Reasons of [Inconclusive], beside the error of a context.
var (
	// ErrMaxStates: more states than [Options.MaxStates].
	ErrMaxStates = errors.New("check: more states than MaxStates")
	// ErrMaxBytes: more memory than [Options.MaxBytes].
	ErrMaxBytes = errors.New("check: more memory than MaxBytes")
)

// Verdict is what was found out about a system. All of it but Bytes and the
// moment at which a context ends is the same for any number of workers.
type Verdict struct {
	System  string
	Outcome Outcome
	// Property is the invariant that is violated, by name.
	Property string
	// Problem is what that invariant said about the last state of the trace.
	Problem error
	// Reason says why an exploration is inconclusive: it matches [ErrMaxStates],
	// [ErrMaxBytes] or the error of the context.
	Reason error

	States int   // that were reached
	Steps  int   // that were taken: pairs of a state and a step possible in it
	Depth  int   // steps of the longest of the shortest ways to a state
	Bytes  int64 // that states, edges and tables took at most

	// Unused names the parts of a system that holds of which nothing came in any
	// step, such as a message that is never sent or a fault that never happens. A
	// model that was meant to have them shows less than it seems to.
	Unused []string

	// Trace is a shortest way to a state that is wrong; nil if none was found.
	Trace *Trace
}

// Err returns nil if the verdict is [Holds], and otherwise an error that says
// what was found, with the trace: what a test requires to be nil. It matches
// Problem and Reason.
func (v *Verdict) Err() error {
	if v.Outcome == Holds {
		return nil
	}
	return &verdictError{v}
}

type verdictError struct{ v *Verdict }

func (e *verdictError) Error() string { return "check: " + e.v.String() }

func (e *verdictError) Unwrap() []error {
	var list []error
	for _, err := range []error{e.v.Problem, e.v.Reason} {
		if err != nil {
			list = append(list, err)
		}
	}
	return list
}

// String returns the verdict in a line, and the trace below it. The text is for
// people and may change.
func (v *Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.System, v.Outcome)
	if v.Property != "" {
		fmt.Fprintf(&b, ": %s: %v", v.Property, v.Problem)
	}
	if v.Reason != nil {
		fmt.Fprintf(&b, ": %v", v.Reason)
	}
	fmt.Fprintf(&b, " (%d states, %d steps, depth %d)", v.States, v.Steps, v.Depth)
	if len(v.Unused) > 0 {
		b.WriteString("\n  never happened: " + strings.Join(v.Unused, ", "))
	}
	if v.Trace != nil {
		b.WriteString("\n" + v.Trace.String())
	}
	return b.String()
}
