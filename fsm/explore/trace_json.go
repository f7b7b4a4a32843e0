package explore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrTrace reports that a text is no trace, or that a trace names an actor or a
// channel that it does not declare.
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

// ParseTrace reads the output of [Trace.Fixture]. It ignores unknown fields. Its
// errors match [ErrTrace].
func ParseTrace(data []byte) (*Trace, error) {
	f := fixture{Trace: &Trace{}}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: text after the object", ErrTrace)
	}
	if f.Format != traceFormat {
		return nil, fmt.Errorf("%w: format %q, want %q", ErrTrace, f.Format, traceFormat)
	}
	if err := f.checkNames(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	}
	return f.Trace, nil
}

// checkNames returns an error unless the trace declares every name that it uses.
func (tr *Trace) checkNames() error {
	actor := func(name string) bool {
		return slices.ContainsFunc(tr.Actors, func(a TraceActor) bool { return a.Name == name })
	}
	channel := func(name string) bool {
		return slices.ContainsFunc(tr.Channels, func(c TraceChannel) bool { return c.Name == name })
	}
	if len(tr.Actors) == 0 {
		return errors.New("no actor")
	}
	if tr.Loop < 0 || tr.Loop > len(tr.Steps) {
		return fmt.Errorf("a loop of %d of %d steps", tr.Loop, len(tr.Steps))
	}
	for i, s := range tr.Steps {
		if s.Kind <= StepDeliver && !actor(s.Actor) {
			return fmt.Errorf("step %d: unknown actor %q", i+1, s.Actor)
		}
		if s.Kind != StepAct && s.Kind != StepFault && !channel(s.Channel) {
			return fmt.Errorf("step %d: unknown channel %q", i+1, s.Channel)
		}
		for _, l := range s.Locals {
			if !actor(l.Actor) {
				return fmt.Errorf("step %d: unknown actor %q", i+1, l.Actor)
			}
		}
		for _, q := range s.Emptied {
			if !channel(q.Channel) {
				return fmt.Errorf("step %d: unknown channel %q", i+1, q.Channel)
			}
		}
	}
	return nil
}
