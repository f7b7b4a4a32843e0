package locktest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/lock"
)

//go:embed testdata/locktree.json
var vectors []byte

// RunVectors runs a file of vectors, one subtest for each of its sequences. Run
// does so with the file of the suite, testdata/locktree.json, which says what
// its steps mean; this is for more of the same form. A file that has anything
// unknown in it fails as a whole.
//
// A handle is the owner of its request, and with compares owners. A wait names
// nobody while it lasts: whom it has to name is asked by a TryLock of the same
// owner, just before it begins.
func RunVectors(t *testing.T, h Harness, data []byte) {
	t.Helper()
	h.check("RunVectors")
	list, err := parseVectors(data)
	if err != nil {
		t.Fatal(err)
	}
	runAll(t, &h, list)
}

// sequence is one vector.
type sequence struct {
	Name  string       `json:"name"`
	Group string       `json:"group"`
	Note  string       `json:"note"`
	Steps []vectorStep `json:"steps"`
}

type vectorLock struct {
	Mode *string `json:"mode"`
	Path *string `json:"path"`
}

type vectorStep struct {
	Op     string  `json:"op"`
	System *string `json:"system"` // the locker; nil is one of its own
	Handle *string `json:"h"`
	vectorLock
	Locks   []vectorLock `json:"locks"`
	Want    *string      `json:"want"`
	With    []string     `json:"with"`
	Granted []string     `json:"granted"`
	Held    *int         `json:"held"`
	Waiting *int         `json:"waiting"`
}

// parseVectors makes a demand of every sequence.
func parseVectors(data []byte) ([]demand, error) {
	var file struct {
		Format     int                       `json:"format"`
		About      string                    `json:"about"`
		Rules      []string                  `json:"rules"`
		Groups     map[string]string         `json:"groups"`
		Compatible map[lock.Mode][]lock.Mode `json:"compatible"`
		Sequences  []sequence                `json:"sequences"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("locktest: the vectors cannot be read: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("locktest: something follows the vectors")
	}
	if file.Format != 1 {
		return nil, fmt.Errorf("locktest: the vectors are of format %d, not 1", file.Format)
	}
	for _, a := range lock.Modes {
		for _, b := range lock.Modes {
			if file.Compatible != nil && slices.Contains(file.Compatible[a], b) != goTogether(a, b) {
				return nil, fmt.Errorf("locktest: the vectors have another matrix: %s and %s", a, b)
			}
		}
	}
	if len(file.Sequences) == 0 {
		return nil, errors.New("locktest: the vectors have no sequence")
	}
	var list []demand
	seen := map[string]bool{}
	for _, s := range file.Sequences {
		if s.Name == "" || seen[s.Name] {
			return nil, fmt.Errorf("locktest: no name, or one that was there before: %q", s.Name)
		}
		seen[s.Name] = true
		if _, ok := file.Groups[s.Group]; !ok {
			return nil, fmt.Errorf("locktest: %q is of group %q, which the file does not explain", s.Name, s.Group)
		}
		for i := range s.Steps {
			if fault := s.Steps[i].malformed(); fault != "" {
				return nil, fmt.Errorf("locktest: %q, step %d: %s", s.Name, i+1, fault)
			}
		}
		says := file.Groups[s.Group] + ": " + s.Name
		if s.Note != "" {
			says += " (" + s.Note + ")"
		}
		list = append(list, demand{name: "Vectors/" + s.Name, says: says, run: s.run})
	}
	return list, nil
}

// form is which fields a step of an op has, and which answers.
type form struct {
	wants            []string // nil: none
	handle, requests bool
	mode, counts     bool
}

var forms = map[string]form{
	"try":     {wants: []string{"ok", "conflict", "invalid"}, handle: true, requests: true},
	"lock":    {wants: []string{"ok", "waiting", "invalid"}, handle: true, requests: true},
	"unlock":  {wants: []string{"ok", "not-held"}, handle: true},
	"cancel":  {wants: []string{"ok", "not-held"}, handle: true},
	"convert": {wants: []string{"ok", "conflict", "not-held", "invalid"}, handle: true, mode: true},
	"count":   {counts: true},
	"idle":    {wants: []string{"ok"}},
}

func (s *vectorStep) malformed() string {
	f, ok := forms[s.Op]
	single := s.Path != nil && s.Mode != nil && s.Locks == nil
	list := s.Path == nil && s.Mode == nil && s.Locks != nil
	whole := func(l vectorLock) bool { return l.Path != nil && l.Mode != nil }
	switch {
	case !ok:
		return fmt.Sprintf("there is no op %q", s.Op)
	case (s.Handle != nil) != f.handle:
		return "a handle is missing, or too much"
	case f.requests && !single && !list:
		return "it wants either mode and path, or locks"
	case f.requests && list && slices.ContainsFunc(s.Locks, func(l vectorLock) bool { return !whole(l) }):
		return "a member of locks wants mode and path"
	case !f.requests && (s.Path != nil || s.Locks != nil || (s.Mode != nil) != f.mode):
		return "a mode is missing, or it has no use for mode, path or locks"
	case (s.Held != nil) != f.counts || (s.Waiting != nil) != f.counts:
		return "held and waiting are missing, or too much"
	case (s.Want != nil) != (f.wants != nil):
		return "want is missing, or too much"
	case s.Want != nil && !slices.Contains(f.wants, *s.Want):
		return fmt.Sprintf("%s has no answer %q", s.Op, *s.Want)
	case s.With != nil && s.want() != "conflict" && s.want() != "waiting":
		return "only a conflict and a wait have names"
	case s.With == nil && s.want() == "conflict":
		return "a conflict has names"
	case s.Granted != nil && s.want() != "ok":
		return "only what is done grants anything"
	}
	return ""
}

func (s *vectorStep) want() string {
	if s.Want == nil {
		return ""
	}
	return *s.Want
}

// requests returns what the step asks for. A path or mode that cannot be parsed
// is an error; it is refused before the locker hears of it.
func (s *vectorStep) requests() ([]lock.Request, error) {
	list := s.Locks
	if list == nil {
		list = []vectorLock{s.vectorLock}
	}
	var rs []lock.Request
	for _, l := range list {
		path, err := lock.Parse(*l.Path)
		if err != nil {
			return nil, err
		}
		mode, err := lock.ParseMode(*l.Mode)
		if err != nil {
			return nil, err
		}
		rs = append(rs, lock.Request{Path: path, Mode: mode})
	}
	return rs, nil
}
