package explore

import (
	"fmt"
	"slices"
)

// StepKind says what kind of step one is.
type StepKind uint8

const (
	StepAct       StepKind = iota // a local action
	StepSend                      // a message is put into a channel
	StepDeliver                   // a message is taken from a channel
	StepLose                      // fault: a message disappears
	StepDuplicate                 // fault: a message is there twice
	StepFault                     // any other fault
)

var stepKindNames = [...]string{"act", "send", "deliver", "lose", "duplicate", "fault"}

func (k StepKind) String() string { return nameOr(stepKindNames[:], int(k), "StepKind") }

// MarshalText writes the kind as String does.
func (k StepKind) MarshalText() ([]byte, error) { return marshalName(stepKindNames[:], int(k)) }

// UnmarshalText reads what MarshalText writes.
func (k *StepKind) UnmarshalText(text []byte) error {
	i, err := unmarshalName(stepKindNames[:], text)
	*k = StepKind(i)
	return err
}

// Fault reports whether steps of the kind are faults.
func (k StepKind) Fault() bool { return k >= StepLose }

func nameOr(names []string, i int, kind string) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("%s(%d)", kind, i)
}

func marshalName(names []string, i int) ([]byte, error) {
	if i >= len(names) {
		return nil, fmt.Errorf("%w: %d has no name", ErrTrace, i)
	}
	return []byte(names[i]), nil
}

func unmarshalName(names []string, text []byte) (int, error) {
	if i := slices.Index(names, string(text)); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%w: unknown word %q", ErrTrace, text)
}

// Trace is a run of a system that shows what is wrong with it. It is a plain
// value. States and messages are texts: what their String method returns, or %+v.
//
// String draws it as a sequence diagram for terminals, [Trace.Mermaid] as one for
// documents. [Trace.Fixture] writes it as a file for tests, [ParseTrace] reads it.
type Trace struct {
	System   string  `json:"system"`
	Outcome  Outcome `json:"outcome"`            // Violated, Stuck or Livelock
	Property string  `json:"property,omitempty"` // the invariant that is violated
	Problem  string  `json:"problem,omitempty"`  // what it said about the last state

	Actors   []TraceActor   `json:"actors"`   // in order of declaration
	Channels []TraceChannel `json:"channels"` // likewise
	Steps    []TraceStep    `json:"steps"`
	// Loop is how many of the last steps can be repeated forever, in a livelock. 0
	// in other traces, and if the shortest such loop is too long to be looked for.
	Loop int `json:"loop,omitempty"`
}

// TraceActor is an actor with its initial local state.
type TraceActor struct {
	Name  string `json:"name"`
	Start string `json:"start"`
}

// TraceChannel is a channel with the actors at its ends and the messages that are
// in it at the beginning.
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
	Actor   string   `json:"actor,omitempty"`   // who acts, sends or receives; empty for faults
	Channel string   `json:"channel,omitempty"` // of the message
	Message string   `json:"message,omitempty"` // that is sent, delivered, lost or duplicated
	Label   string   `json:"label,omitempty"`   // as the handler says; of a fault its name
	// Locals are the local states that the step touched: that of the actor, also
	// if it stays what it is, and those that a fault struck.
	Locals []TraceLocal `json:"locals,omitempty"`
	// Emptied are the messages that a fault took from channels.
	Emptied []TraceQueue `json:"emptied,omitempty"`
}

// TraceLocal is the local state of an actor before and after a step.
type TraceLocal struct {
	Actor  string `json:"actor"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// TraceQueue is a channel with the messages that were in it.
type TraceQueue struct {
	Channel  string   `json:"channel"`
	Messages []string `json:"messages"`
}
