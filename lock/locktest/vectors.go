package locktest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lock"
)

//go:embed testdata/locktree.json
var vectors []byte

// vector is a step of the file of vectors, testdata/locktree.json, whose rules explain it.
// A handle of the file is the owner of its requests; "with" compares owners.
type vector struct {
	System, H, Op string
	Mode, Path    string // of a conversion, of holders, or the only request
	Locks         []struct{ Mode, Path string }
	Held, Waiting int
	Want          string
	With, Granted []string
}

// parseVectors makes a demand of every sequence. It refuses a file with an unknown field.
func parseVectors(data []byte) (list []demand, err error) {
	var file struct {
		Format                   int
		About, Rules, Compatible any
		Groups                   map[string]string
		Sequences                []struct {
			Name, Group, Note string
			Steps             []vector
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, err
	}
	if file.Format != 1 || len(file.Sequences) == 0 {
		return nil, fmt.Errorf("format %d with %d sequences: format 1 is required", file.Format, len(file.Sequences))
	}
	for _, s := range file.Sequences {
		d := demand{name: "Vectors/" + s.Name}
		for _, v := range s.Steps {
			d.steps = append(d.steps, v.step())
		}
		list = append(list, d)
	}
	return list, nil
}

// text returns the call as a script states it, after the name of its system.
func (v *vector) text() string {
	words := []string{v.System, v.H, v.Op, v.Mode, v.Path}
	for _, r := range v.Locks {
		words = append(words, r.Mode, r.Path)
	}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}

func (v *vector) step() step {
	s := step{
		text: v.text(), system: v.System, client: v.H, op: v.Op, options: optionsOf(v.H, ""),
		held: v.Held, waiting: v.Waiting, want: v.Want, with: v.With, granted: v.Granted,
	}
	only := request(v.Mode, v.Path)
	s.mode, s.path = only.Mode, only.Path
	for _, r := range v.Locks {
		s.requests = append(s.requests, request(r.Mode, r.Path))
	}
	if v.Locks == nil {
		s.requests = []lock.Request{only}
	}
	return s
}
