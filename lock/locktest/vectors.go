package locktest

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

//go:embed testdata/locktree.json
var vectors []byte

// RunVectors runs a file of vectors: sequences of calls with their answers, each in
// a subtest. Run calls it with the file of the suite, testdata/locktree.json, whose
// rules explain the steps. RunVectors refuses a file with an unknown field. An unknown
// operation or answer fails its sequence.
//
// A handle of the file is the owner of its requests; "with" compares owners.
func RunVectors(t *testing.T, h Harness, data []byte) {
	t.Helper()
	h.check("RunVectors")
	sequences, err := parseVectors(data)
	if err != nil {
		t.Fatalf("locktest: read vectors: %v", err)
	}
	for _, s := range sequences {
		t.Run(s.name, func(t *testing.T) { s.run(t, &h) })
	}
}

type vectorLock struct {
	Mode string `json:"mode"`
	Path string `json:"path"`
}

type vectorStep struct {
	Op     string `json:"op"`
	System string `json:"system"`
	Handle string `json:"h"`
	vectorLock
	Locks   []vectorLock `json:"locks"`
	Want    string       `json:"want"`
	With    []string     `json:"with"`
	Granted []string     `json:"granted"`
	Held    int          `json:"held"`
	Waiting int          `json:"waiting"`
}

// parseVectors makes a demand of every sequence.
func parseVectors(data []byte) (list []demand, err error) {
	var file struct {
		Format                   int
		About, Rules, Compatible any
		Groups                   map[string]string
		Sequences                []struct {
			Name, Group, Note string
			Steps             []vectorStep
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
		steps := make([]step, len(s.Steps))
		for i := range s.Steps {
			steps[i] = s.Steps[i].step()
		}
		list = append(list, demand{name: s.Name, test: func(e *env) {
			e.Helper()
			require.NoError(e, e.play(steps), "%s", file.Groups[s.Group])
		}})
	}
	return list, nil
}

// step converts the step.
func (v *vectorStep) step() step {
	s := step{
		op: v.Op, system: v.System, client: v.Handle, want: cmp.Or(v.Want, "ok"), names: v.With, granted: v.Granted,
		held: v.Held, waiting: v.Waiting,
	}
	switch locks := v.Locks; v.Op {
	case "convert":
		mode, err := lock.ParseMode(v.Mode)
		s.mode, s.bad = mode, err != nil
	case "try", "lock":
		if locks == nil {
			locks = []vectorLock{v.vectorLock}
		}
		for _, l := range locks {
			path, err := lock.Parse(l.Path)
			mode, modeErr := lock.ParseMode(l.Mode)
			s.bad = s.bad || err != nil || modeErr != nil
			s.rs = append(s.rs, lock.Request{Path: path, Mode: mode})
		}
	}
	return s
}
