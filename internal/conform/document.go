package conform

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/interlock-go/interlock/fsm"
)

// Document is the table of a published document. [ReadDocument] reads one from
// a file of the form lifecycle-table/1; a table that exists only in prose is
// written down as a literal.
type Document struct {
	Name     string
	Initial  string
	Initials []string // all entry states where there are more than one
	States   []State
	Rows     []Row
	Illegal  [][2]string // cells (state, event) that the document forbids
}

// State is one state of a [Document].
type State struct {
	Name   string
	Kind   fsm.Kind
	Target string // the resting state that it is heading for; empty: the document is silent
}

// ReadDocument reads a file of the form lifecycle-table/1. It does so by itself
// and not by package fsm, so that a fault there cannot hide one here.
func ReadDocument(file string) (*Document, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var in struct {
		Name, Schema, Initial string
		Initials              []string
		States                []struct {
			Name, Kind, Target string
			Absent             bool
		}
		Transitions []struct {
			From, Event, Actor, To, Guard string
			Ignore                        bool
		}
		Illegal [][2]string
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("conform: %s: %w", file, err)
	}
	if in.Schema != "lifecycle-table/1" || len(in.States) == 0 || len(in.Transitions) == 0 {
		return nil, fmt.Errorf("conform: %s: schema %q with %d states and %d transitions is no table",
			file, in.Schema, len(in.States), len(in.Transitions))
	}
	d := &Document{Name: in.Name, Initial: in.Initial, Initials: in.Initials, Illegal: in.Illegal}
	for _, s := range in.States {
		kind, ok := documentKinds[s.Kind]
		if !ok {
			return nil, fmt.Errorf("conform: %s: state %s has the unknown kind %q", file, s.Name, s.Kind)
		}
		if s.Absent && kind == fsm.Stable {
			kind = fsm.Absent
		}
		d.States = append(d.States, State{Name: s.Name, Kind: kind, Target: s.Target})
	}
	for _, r := range in.Transitions {
		d.Rows = append(d.Rows, Row{
			From: r.From, Event: r.Event, Actor: r.Actor, To: r.To, Guard: r.Guard, Ignored: r.Ignore,
		})
	}
	return d, nil
}

var documentKinds = map[string]fsm.Kind{
	"stable": fsm.Stable, "transitional": fsm.Transitional, "error": fsm.Failed, "final": fsm.Final,
}

func (d *Document) state(name string) *State {
	for i := range d.States {
		if d.States[i].Name == name {
			return &d.States[i]
		}
	}
	return nil
}

func (d *Document) entries() []string {
	if len(d.Initials) > 0 {
		return d.Initials
	}
	return []string{d.Initial}
}
