package tabletest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/interlock-go/interlock/fsm"
)

// ParseLines makes a table of lines. States are
//
//	KIND NAME, NAME... [heading T] [manual]
//
// with the kinds of the package fsm, and the first is the initial one. Rows are
//
//	A, B -event by x,y-> C [if g] [of D,E] [forced] [supersedes] [within]
//
// where C is a state, "origin" or "ignored". "table: NAME" is the name.
func ParseLines(text string) (*fsm.Table, error) {
	d := &Document{Name: "t", States: []State{}, Transitions: []Edge{}}
	for n, line := range strings.Split(text, "\n") {
		if err := d.addLine(n+1, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return fsm.ParseTable(data)
}

func (d *Document) addLine(n int, line string) error {
	row, then, isRow := strings.Cut(line, "-> ")
	first, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "":
	case first == "table:":
		d.Name = rest
	case isRow:
		return d.addRow(n, row, strings.Fields(then))
	default:
		return d.addStates(first, strings.Fields(rest))
	}
	return nil
}

func (d *Document) addRow(n int, row string, then []string) error {
	from, event, _ := strings.Cut(row, " -")
	event, by, named := strings.Cut(event, " by ")
	e := Edge{Row: n, Event: event}
	if named {
		e.Actors = items(by)
	}
	switch then[0] {
	case "origin":
		e.Return = true
	case "ignored":
		e.Ignore = true
	default:
		e.To = then[0]
	}
	for words := then[1:]; len(words) > 0; words = words[1:] {
		switch words[0] {
		case "if":
			words = words[1:]
			e.Guard = words[0]
		case "of":
			words = words[1:]
			e.Origin = items(words[0])
		case "forced":
			e.Forced = true
		case "supersedes":
			e.Supersede = true
		case "within":
			e.Within = "1m0s"
		default:
			return fmt.Errorf("unknown word %s", words[0])
		}
	}
	for _, e.From = range items(from) {
		d.Transitions = append(d.Transitions, e)
	}
	return nil
}

func (d *Document) addStates(kind string, words []string) error {
	s := State{Kind: kind}
	switch kind {
	case "absent":
		s.Kind, s.Absent = "stable", true
	case "failed":
		s.Kind = "error"
	}
	names := words[0]
	for words = words[1:]; strings.HasSuffix(names, ","); words = words[1:] {
		names += words[0]
	}
	for ; len(words) > 0; words = words[1:] {
		switch words[0] {
		case "heading":
			words = words[1:]
			s.Target = words[0]
		case "manual":
			s.Manual = "an operator"
		default:
			return fmt.Errorf("unknown word %s", words[0])
		}
	}
	for _, s.Name = range items(names) {
		d.States = append(d.States, s)
	}
	if d.Initial == "" {
		d.Initial = d.States[0].Name
	}
	return nil
}

// items returns the items of a list with commas.
func items(text string) (list []string) {
	for item := range strings.SplitSeq(text, ",") {
		list = append(list, strings.TrimSpace(item))
	}
	return list
}
