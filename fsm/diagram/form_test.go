package diagram_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/fsm"
)

// parseForm reads a machine from a text with one declaration per line. Names with
// spaces are quoted as in Go:
//
//	machine NAME
//	actors A...
//	state NAME [KIND] [initial] [manual=TEXT] [target=STATE] [doc=TEXT]
//	row FROM EVENT TO [by=A,B] [if=GUARD] [origin=S,T] [after=5m] [forced] [supersedes] [doc=TEXT]
//
// FROM is S,T or * or *-S,T; TO is a state, return or ignore.
func parseForm(text string) (*fsm.Table, error) {
	var spec fsm.Spec[string, string]
	for line := range strings.Lines(text) {
		words, options, err := fields(line)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "machine":
			spec.Name = words[1]
		case "actors":
			for _, a := range words[1:] {
				spec.Actors = append(spec.Actors, fsm.Actor(a))
			}
		case "state":
			err = addState(&spec, words[1:], options)
		case "row":
			err = addRow(&spec, words[1:], options)
		default:
			err = fmt.Errorf("unknown word %q", words[0])
		}
		if err != nil {
			return nil, err
		}
	}
	m, err := fsm.New[struct{}](spec)
	if err != nil {
		return nil, err
	}
	return m.Table(), nil
}

var kinds = map[string]fsm.Kind{
	"stable": fsm.Stable, "transitional": fsm.Transitional, "failed": fsm.Failed, "final": fsm.Final, "absent": fsm.Absent,
}

func addState(spec *fsm.Spec[string, string], words []string, options map[string]string) error {
	s := fsm.State[string]{Name: words[0], Manual: options["manual"], Doc: options["doc"]}
	if target, ok := options["target"]; ok {
		s.Target = &target
	}
	for _, w := range words[1:] {
		kind, ok := kinds[w]
		switch {
		case ok:
			s.Kind = kind
		case w == "initial":
			spec.Initial = s.Name
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	spec.States = append(spec.States, s)
	return nil
}

func addRow(spec *fsm.Spec[string, string], words []string, options map[string]string) error {
	from, event, to := words[0], words[1], words[2]
	r := fsm.Row[string, string]{Event: event, To: to, Doc: options["doc"]}
	switch except, ok := strings.CutPrefix(from, "*-"); {
	case ok:
		r.Any, r.Except = true, strings.Split(except, ",")
	case from == "*":
		r.Any = true
	default:
		r.From = strings.Split(from, ",")
	}
	switch to {
	case "return":
		r.Then = fsm.ThenReturn
	case "ignore":
		r.Then = fsm.ThenIgnore
	}
	if by := options["by"]; by != "" {
		for a := range strings.SplitSeq(by, ",") {
			r.Actors = append(r.Actors, fsm.Actor(a))
		}
	}
	if origin := options["origin"]; origin != "" {
		r.Origin = strings.Split(origin, ",")
	}
	if guard := options["if"]; guard != "" {
		r.Guard = fsm.When(guard, func(context.Context, *struct{}, *struct{}) error { return nil })
	}
	if after := options["after"]; after != "" {
		d, err := time.ParseDuration(after)
		if err != nil {
			return err
		}
		r.Timeout = d
	}
	for _, w := range words[3:] {
		switch w {
		case "forced":
			r.Forced = true
		case "supersedes":
			r.Supersede = true
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	spec.Rows = append(spec.Rows, r)
	return nil
}

// fields splits a line into words and key=value options. Both may be quoted.
func fields(line string) (words []string, options map[string]string, err error) {
	options = make(map[string]string)
	take := func() (string, error) {
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			line = line[len(quoted):]
			return strconv.Unquote(quoted)
		}
		n := strings.IndexAny(line+" ", " =")
		word := line[:n]
		line = line[n:]
		return word, nil
	}
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		word, err := take()
		if err != nil {
			return nil, nil, err
		}
		if !strings.HasPrefix(line, "=") {
			words = append(words, word)
			continue
		}
		line = line[1:]
		if options[word], err = take(); err != nil {
			return nil, nil, err
		}
	}
	return words, options, nil
}
