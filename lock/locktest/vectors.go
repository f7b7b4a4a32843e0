package locktest

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

//go:embed testdata/locktree.json
var vectors []byte

// RunVectors runs a file of vectors: sequences of calls with their answers, each in
// a subtest. Run calls it with the file of the suite, testdata/locktree.json, whose
// rules explain the steps. RunVectors refuses a file with anything unknown in it.
//
// A handle of the file is the owner of its requests; "with" compares owners.
func RunVectors(t *testing.T, h Harness, data []byte) {
	t.Helper()
	h.check("RunVectors")
	sequences, err := parseVectors(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sequences {
		t.Run(s.name, func(t *testing.T) { s.run(t, &h) })
	}
}

type vectorLock struct {
	Mode string  `json:"mode"`
	Path *string `json:"path"`
}

type vectorStep struct {
	Op     string  `json:"op"`
	System *string `json:"system"`
	Handle string  `json:"h"`
	vectorLock
	Locks   []vectorLock `json:"locks"`
	Want    string       `json:"want"`
	With    []string     `json:"with"`
	Granted []string     `json:"granted"`
	Held    int          `json:"held"`
	Waiting int          `json:"waiting"`
}

// parseVectors makes a demand of every sequence.
func parseVectors(data []byte) ([]demand, error) {
	var file struct {
		Format     int                       `json:"format"`
		About      string                    `json:"about"`
		Rules      []string                  `json:"rules"`
		Groups     map[string]string         `json:"groups"`
		Compatible map[lock.Mode][]lock.Mode `json:"compatible"`
		Sequences  []struct {
			Name  string       `json:"name"`
			Group string       `json:"group"`
			Note  string       `json:"note"`
			Steps []vectorStep `json:"steps"`
		} `json:"sequences"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("locktest: read vectors: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("locktest: read vectors: the file goes on after its end")
	}
	if file.Format != 1 || len(file.Sequences) == 0 {
		return nil, fmt.Errorf("locktest: read vectors: format %d with %d sequences: format 1 is required",
			file.Format, len(file.Sequences))
	}
	for _, a := range lock.Modes {
		for _, b := range lock.Modes {
			if file.Compatible != nil && slices.Contains(file.Compatible[a], b) != lock.Compatible(a, b) {
				return nil, fmt.Errorf("locktest: read vectors: another matrix at %s and %s", a, b)
			}
		}
	}
	var list []demand
	for _, s := range file.Sequences {
		if s.Name == "" || slices.ContainsFunc(list, func(d demand) bool { return d.name == s.Name }) {
			return nil, fmt.Errorf("locktest: read vectors: sequence name %q is empty or repeated", s.Name)
		}
		if _, ok := file.Groups[s.Group]; !ok {
			return nil, fmt.Errorf("locktest: read vectors: %q: unknown group %q", s.Name, s.Group)
		}
		var steps []step
		for i := range s.Steps {
			step, err := s.Steps[i].step()
			if err != nil {
				return nil, fmt.Errorf("locktest: read vectors: %q, step %d: %w", s.Name, i+1, err)
			}
			steps = append(steps, step)
		}
		list = append(list, demand{name: s.Name, test: func(e *env) {
			e.Helper()
			require.NoError(e, e.play(steps), "%s", file.Groups[s.Group])
		}})
	}
	return list, nil
}

// step converts the step. It refuses what it does not know.
func (v *vectorStep) step() (step, error) {
	s := step{
		op: v.Op, client: v.Handle, every: v.System == nil, want: cmp.Or(v.Want, "ok"), names: v.With, granted: v.Granted,
		held: v.Held, waiting: v.Waiting,
	}
	if v.System != nil {
		s.system = *v.System
	}
	locker := v.Op == "count" || v.Op == "idle" // these are about a locker, the others about a handle
	switch err := s.check(); {
	case err != nil:
		return s, err
	case (v.Handle == "") != locker || (v.Want == "") != (v.Op == "count"):
		return s, errors.New("h or want is missing or superfluous")
	case s.want == "conflict" && v.With == nil:
		return s, errors.New("with is missing")
	}
	switch v.Op {
	case "unlock", "cancel", "count", "idle":
	case "convert":
		mode, err := lock.ParseMode(v.Mode)
		s.mode, s.bad = mode, err != nil
	case "try", "lock":
		locks := v.Locks
		if locks == nil {
			locks = []vectorLock{v.vectorLock}
		}
		for _, l := range locks {
			if l.Path == nil {
				return s, errors.New("path is missing")
			}
			path, err := lock.Parse(*l.Path)
			mode, modeErr := lock.ParseMode(l.Mode)
			s.bad = s.bad || err != nil || modeErr != nil
			s.rs = append(s.rs, lock.Request{Path: path, Mode: mode})
		}
	default:
		return s, fmt.Errorf("operation %q is for scripts only", v.Op)
	}
	return s, nil
}
