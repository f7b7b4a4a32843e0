package explore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// StepKind is the kind of a step.
type StepKind string

// The kinds of steps. The last three are faults.
const (
	StepAct       StepKind = "act"       // a local action
	StepSend      StepKind = "send"      // an actor puts a message into a channel
	StepDeliver   StepKind = "deliver"   // an actor takes a message from a channel
	StepLose      StepKind = "lose"      // a channel loses a message
	StepDuplicate StepKind = "duplicate" // a channel duplicates a message
	StepFault     StepKind = "fault"     // any other fault
)

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

// TraceChannel is a channel with its initial messages.
type TraceChannel struct {
	Name  string   `json:"name"`
	Start []string `json:"start"`
}

// TraceStep is one step of a run.
type TraceStep struct {
	Kind    StepKind `json:"kind"`
	Actor   string   `json:"actor,omitempty"`   // that acts, sends or receives; empty for faults
	Channel string   `json:"channel,omitempty"` // of the message
	Message string   `json:"message,omitempty"` // sent, delivered, lost or duplicated
	Label   string   `json:"label,omitempty"`   // from the function of the actor; of a fault its name
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

// trace names the steps of a run and of the loop at its end.
func (s *search) trace(run []uint32, loop []edge) *Trace {
	t, start := s.t, s.store.state(run[0])
	tr := &Trace{System: t.sys.name, Steps: []TraceStep{}, Channels: []TraceChannel{}, Loop: len(loop)}
	for i, a := range t.sys.actors {
		tr.Actors = append(tr.Actors, TraceActor{Name: a.name, Start: t.locals[i].text(start[i])})
	}
	for i, c := range t.sys.channels {
		tr.Channels = append(tr.Channels, TraceChannel{Name: c.name, Start: t.texts(start, i)})
	}
	add := func(from, to uint32, fits func(mark uint32) bool) {
		before, after := s.store.state(from), s.store.state(to)
		var first *move
		newExpander(t, func(next []uint32, m move) {
			if first == nil && slices.Equal(next, after) && fits(m.mark) {
				first = &m
			}
		}).expand(before)
		tr.Steps = append(tr.Steps, t.step(*first, before, after))
	}
	for i, to := range run[1:] {
		add(run[i], to, func(uint32) bool { return true })
	}
	for _, e := range loop {
		add(e.from, e.to, func(mark uint32) bool { return isStep(mark) && (e.mark == 0 || e.mark == mark) })
	}
	return tr
}

// step names a move.
func (t *tables) step(m move, before, after []uint32) TraceStep {
	r := t.rules[m.rule]
	s := TraceStep{Kind: r.kind, Label: r.name}
	struck := r.strikes
	if r.call != nil {
		s.Label = t.labels.value(m.label)
		struck = []*rule{r}
		if m.mark == isFault {
			s.Kind = StepFault
		} else {
			s.Actor = t.sys.actors[r.actor].name
		}
	}
	if r.channel != none {
		s.Channel, s.Message = t.sys.channels[r.channel].name, t.messages[r.channel].text(m.message)
	}
	for _, at := range struck {
		s.Locals = append(s.Locals, TraceLocal{
			Actor:  t.sys.actors[at.actor].name,
			Before: t.locals[at.actor].text(before[at.actor]),
			After:  t.locals[at.actor].text(after[at.actor]),
		})
	}
	for _, c := range r.empties {
		if lost := t.texts(before, c); len(lost) > 0 {
			s.Emptied = append(s.Emptied, TraceQueue{Channel: t.sys.channels[c].name, Messages: lost})
		}
	}
	return s
}

// ErrTrace reports that a text is not a trace.
var ErrTrace = errors.New("explore: bad trace")

// traceFormat is the format of fixtures. Later versions may add fields to it.
const traceFormat = "protocol-trace/1"

type fixture struct {
	Format string `json:"format"`
	*Trace
}

// Fixture returns the trace as indented JSON, for a test that replays it: an object
// with the field "format", which is "protocol-trace/1", and the fields of [Trace].
// Equal traces give equal bytes.
func (tr *Trace) Fixture() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(fixture{traceFormat, tr}); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	}
	return b.Bytes(), nil
}

// ParseTrace reads the output of [Trace.Fixture]. It ignores unknown fields, and does not
// check the names in steps. Its errors match [ErrTrace].
func ParseTrace(data []byte) (*Trace, error) {
	f := fixture{Trace: &Trace{}}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	}
	if f.Format != traceFormat {
		return nil, fmt.Errorf("%w: format %q, want %q", ErrTrace, f.Format, traceFormat)
	}
	if len(f.Actors) == 0 {
		return nil, fmt.Errorf("%w: no actor", ErrTrace)
	}
	return f.Trace, nil
}
