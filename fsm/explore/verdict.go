package explore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/internal/visible"
)

// Outcome is how an exploration ended.
type Outcome string

const (
	// Inconclusive: Explore reached a bound or the context ended before it had visited
	// every state, and it had found no violation. It is not a pass.
	Inconclusive Outcome = "inconclusive"
	// Holds: Explore visited every reachable state and found no violation.
	Holds Outcome = "holds"
	// Violated: an invariant does not hold in a reachable state.
	Violated Outcome = "violated"
	// Stuck: a reachable state is not a resting one, and only faults lead out of it. If
	// the system declares no resting states, this is any state without other steps.
	Stuck Outcome = "stuck"
	// Livelock: from a reachable state the system can continue forever and cannot come
	// to rest without further faults.
	Livelock Outcome = "livelock"
	// Unreached: a property of [System.LeadsTo] does not hold. The system can continue
	// or stop in a way that is fair and never fulfils it.
	Unreached Outcome = "unreached"
)

// ErrMaxBytes reports more memory than [Config.MaxBytes], or more than 2^31 states or
// edges. It is a reason for [Inconclusive], like the error of a context.
var ErrMaxBytes = errors.New("explore: more memory than MaxBytes")

// Verdict is the result of an exploration. It is the same for any number of
// workers, unless a context ended it.
type Verdict struct {
	System  string  `json:"name"`
	Outcome Outcome `json:"outcome"`
	// Property is the name of the invariant, or of the property of [System.LeadsTo],
	// that does not hold.
	Property string `json:"property,omitempty"`
	// Problem is the error of the invariant about the last state of the trace.
	Problem error `json:"-"`
	// Reason explains an inconclusive outcome. It matches [ErrMaxBytes] or the error
	// of the context.
	Reason error `json:"-"`

	States int   `json:"states"` // reached
	Steps  int   `json:"steps"`  // taken: pairs of a state and a step that is possible in it
	Depth  int   `json:"depth"`  // number of steps to the state that is farthest from the start
	Bytes  int64 `json:"-"`      // the most memory of states, edges and tables

	// Unused names the actions and faults of a system that were never possible, such as a
	// message that no actor sends or a loss that never happens. A model that was
	// meant to have them shows less than it seems to. Only [Holds] has it.
	Unused []string `json:"unused,omitempty"`

	// Live names the properties of [System.LeadsTo] that hold. Only [Holds] has it.
	Live []string `json:"live,omitempty"`

	// Trace is a path to a state that violates a check, or nil.
	Trace *Trace `json:"-"`
}

// Err returns nil if the outcome is [Holds]. Otherwise it returns an error with
// the verdict and the trace as text, which matches Problem and Reason. A test
// requires it to be nil.
func (v *Verdict) Err() error {
	if v.Outcome == Holds {
		return nil
	}
	return &verdictError{v}
}

type verdictError struct{ v *Verdict }

func (e *verdictError) Error() string { return "explore: " + e.v.String() }
func (e *verdictError) Unwrap() error { return errors.Join(e.v.Problem, e.v.Reason) }

// String returns the verdict as a line, and the trace below it. Programs must not
// depend on the text.
func (v *Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", visible.Text(v.System), v.Outcome)
	if v.Property != "" {
		b.WriteString(": " + visible.Text(v.Property))
	}
	for _, err := range []error{v.Problem, v.Reason} {
		if err != nil {
			fmt.Fprintf(&b, ": %v", err)
		}
	}
	fmt.Fprintf(&b, " (%d states, %d steps, depth %d)", v.States, v.Steps, v.Depth)
	if len(v.Unused) > 0 {
		b.WriteString("\n  never happened: " + strings.Join(v.Unused, ", "))
	}
	for _, name := range v.Live {
		b.WriteString("\n  leads to: " + visible.Text(name))
	}
	if v.Trace != nil {
		b.WriteString("\n" + v.Trace.String())
	}
	return b.String()
}
