package explore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrTrace: a text is not a trace, or what it says does not fit together.
var ErrTrace = errors.New("check: bad trace")

// traceFormat is the format of fixtures. Fields may be added to it.
const traceFormat = "protocol-trace/1"

// Fixture returns the trace as indented JSON with a line break at its end: an
// object with the field "format", which is "protocol-trace/1", and the fields of
// [Trace] by their JSON names. The same trace gives the same bytes.
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

type fixture struct {
	Format string `json:"format"`
	*Trace
}

// ParseTrace reads what [Trace.Fixture] writes. Fields that it does not know are
// ignored. It refuses, matching [ErrTrace], other formats, unknown actors and
// channels, and runs in which an actor is not in the local state that the step
// before left it in, or a message is not in the channel from which it is taken.
func ParseTrace(data []byte) (*Trace, error) {
	f := fixture{Trace: &Trace{}}
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: something behind it", ErrTrace)
	}
	if f.Format != traceFormat {
		return nil, fmt.Errorf("%w: format %q is not %q", ErrTrace, f.Format, traceFormat)
	}
	if err := f.consistent(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	}
	return f.Trace, nil
}

// consistent replays the trace on texts.
func (tr *Trace) consistent() error {
	locals, queues := make(map[string]string), make(map[string][]string)
	for _, a := range tr.Actors {
		if _, twice := locals[a.Name]; twice {
			return fmt.Errorf("actor %q is there twice", a.Name)
		}
		locals[a.Name] = a.Start
	}
	if len(tr.Actors) == 0 {
		return errors.New("no actor")
	}
	for _, c := range tr.Channels {
		if _, twice := queues[c.Name]; twice {
			return fmt.Errorf("channel %q is there twice", c.Name)
		}
		queues[c.Name] = slices.Clone(c.Start)
		for _, a := range slices.Concat(c.Senders, c.Receivers) {
			if _, known := locals[a]; !known {
				return fmt.Errorf("channel %q: unknown actor %q", c.Name, a)
			}
		}
	}
	for i, s := range tr.Steps {
		if err := s.replay(locals, queues); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	if tr.Loop < 0 || tr.Loop > len(tr.Steps) {
		return fmt.Errorf("a loop of %d of %d steps", tr.Loop, len(tr.Steps))
	}
	return nil
}

func (s *TraceStep) replay(locals map[string]string, queues map[string][]string) error {
	if s.Kind <= StepDeliver && s.Actor == "" || s.Kind.Fault() && s.Actor != "" {
		return fmt.Errorf("%s by actor %q", s.Kind, s.Actor)
	}
	if s.Actor != "" {
		if _, known := locals[s.Actor]; !known {
			return fmt.Errorf("unknown actor %q", s.Actor)
		}
	}
	if s.Kind != StepAct && s.Kind != StepFault {
		q, known := queues[s.Channel]
		if !known {
			return fmt.Errorf("unknown channel %q", s.Channel)
		}
		at := slices.Index(q, s.Message)
		switch {
		case s.Kind == StepSend:
			q = append(q, s.Message)
		case at < 0:
			return fmt.Errorf("channel %q has no message %q", s.Channel, s.Message)
		case s.Kind == StepDuplicate:
			q = slices.Insert(q, at, s.Message)
		default:
			q = slices.Delete(q, at, at+1)
		}
		queues[s.Channel] = q
	}
	for _, e := range s.Emptied {
		if q, known := queues[e.Channel]; !known || !sameMessages(q, e.Messages) {
			return fmt.Errorf("channel %q does not have the messages %q", e.Channel, e.Messages)
		}
		queues[e.Channel] = nil
	}
	for _, l := range s.Locals {
		if local, known := locals[l.Actor]; !known || local != l.Before {
			return fmt.Errorf("actor %q is not in %q", l.Actor, l.Before)
		}
		locals[l.Actor] = l.After
	}
	return nil
}

func sameMessages(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
