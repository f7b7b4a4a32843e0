package explore

import (
	"fmt"
	"slices"
)

// StepKind is the kind of a step.
type StepKind uint8

// The kinds of steps. The last three are faults.
const (
	StepAct       StepKind = iota // a local action
	StepSend                      // an actor puts a message into a channel
	StepDeliver                   // an actor takes a message from a channel
	StepLose                      // a channel loses a message
	StepDuplicate                 // a channel duplicates a message
	StepFault                     // any other fault
)

var stepKindNames = []string{"act", "send", "deliver", "lose", "duplicate", "fault"}

// String returns act, send, deliver, lose, duplicate or fault.
func (k StepKind) String() string { return nameOr(stepKindNames, int(k)) }

// MarshalText returns the name.
func (k StepKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a name. Its error matches [ErrTrace].
func (k *StepKind) UnmarshalText(text []byte) error {
	i, err := indexOf(stepKindNames, text)
	*k = StepKind(i)
	return err
}

func nameOr(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

func indexOf(names []string, text []byte) (int, error) {
	if i := slices.Index(names, string(text)); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%w: unknown word %q", ErrTrace, text)
}

// Trace is a run of a system that shows a violation. It is a plain value. States
// and messages are texts: the result of their String method, or %+v.
//
// String draws it as a sequence diagram for terminals. [Trace.Fixture] writes it
// as a file for tests, which [ParseTrace] reads.
type Trace struct {
	System   string  `json:"system"`
	Outcome  Outcome `json:"outcome"`            // Violated, Stuck, Livelock or Unreached
	Property string  `json:"property,omitempty"` // that does not hold
	Problem  string  `json:"problem,omitempty"`  // its error about the last state

	Actors   []TraceActor   `json:"actors"`   // in order of declaration
	Channels []TraceChannel `json:"channels"` // in order of declaration
	Steps    []TraceStep    `json:"steps"`
	// Loop is the number of steps at the end that the system can repeat forever. It is
	// 0 unless Outcome is Livelock or Unreached. After an Unreached trace without a loop
	// no fair action is possible.
	Loop int `json:"loop,omitempty"`
}

// TraceActor is an actor with its initial local state.
type TraceActor struct {
	Name  string `json:"name"`
	Start string `json:"start"`
}

// TraceChannel is a channel with the actors at its ends and its initial messages.
type TraceChannel struct {
	Name      string   `json:"name"`
	Ordered   bool     `json:"ordered"`
	Senders   []string `json:"senders"`
	Receivers []string `json:"receivers"`
	Start     []string `json:"start"`
}

// TraceStep is one step of a run.
type TraceStep struct {
	Kind    StepKind `json:"kind"`
	Actor   string   `json:"actor,omitempty"`   // that acts, sends or receives; empty for faults
	Channel string   `json:"channel,omitempty"` // of the message
	Message string   `json:"message,omitempty"` // sent, delivered, lost or duplicated
	Label   string   `json:"label,omitempty"`   // from the handler; of a fault its name
	// Locals are the local states that the step touched: of the actor, even if its
	// state stays the same, and of the actors that a fault struck.
	Locals []TraceLocal `json:"locals,omitempty"`
	// Emptied are the messages that a fault removed from channels.
	Emptied []TraceQueue `json:"emptied,omitempty"`
}

// TraceLocal is the local state of an actor before and after a step.
type TraceLocal struct {
	Actor  string `json:"actor"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// TraceQueue is a channel with its messages.
type TraceQueue struct {
	Channel  string   `json:"channel"`
	Messages []string `json:"messages"`
}
