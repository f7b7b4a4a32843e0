package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one way to break a package. Its file has a head and hunks:
//
//	class: unfair
//	breaks: what comes later is asked first
//	survives: why no test can see it, only where that is so
//
//	@@ class.go
//	 a line that stays
//	-a line that goes
//	+a line that comes
//
// A value of the head may go on in the next lines. The lines that stay and go
// are found by their text, which must occur exactly once in the file: numbers of
// lines would be out of date with the next change.
type mutant struct {
	name, class, breaks, survives string
	hunks                         []hunk
}

type hunk struct{ file, old, new string }

// read returns the mutants of a directory in the order of their names.
func read(dir string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no mutants in %s", dir)
	}
	var mutants []*mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		m, err := parse(strings.TrimSuffix(filepath.Base(path), ".txt"), string(text))
		if err != nil {
			return nil, err
		}
		mutants = append(mutants, m)
	}
	return mutants, nil
}

func parse(name, text string) (*mutant, error) {
	m := &mutant{name: name}
	heads := map[string]*string{"class": &m.class, "breaks": &m.breaks, "survives": &m.survives}
	var head *string
	var h *hunk
	empty := 0 // lines that stay, unless the hunk ends with them
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		wrong := func(what string) error { return fmt.Errorf("%s, line %d: %s: %q", name, i+1, what, line) }
		if file, ok := strings.CutPrefix(line, "@@ "); ok {
			m.hunks = append(m.hunks, hunk{file: file})
			h, empty = &m.hunks[len(m.hunks)-1], 0
			continue
		}
		if h == nil {
			key, value, _ := strings.Cut(line, ":")
			switch {
			case heads[key] != nil:
				head = heads[key]
				*head = strings.TrimSpace(value)
			case line == "":
			case head == nil:
				return nil, wrong("unknown head")
			default:
				*head += " " + strings.TrimSpace(line)
			}
			continue
		}
		if line == "" {
			empty++
			continue
		}
		h.old += strings.Repeat("\n", empty)
		h.new += strings.Repeat("\n", empty)
		empty = 0
		rest := line[1:] + "\n"
		switch line[0] {
		case ' ':
			h.old += rest
			h.new += rest
		case '-':
			h.old += rest
		case '+':
			h.new += rest
		default:
			return nil, wrong("a line of a hunk begins with a space, - or +")
		}
	}
	if m.class == "" || m.breaks == "" || len(m.hunks) == 0 {
		return nil, fmt.Errorf("%s: class, breaks and a hunk are needed", name)
	}
	for _, h := range m.hunks {
		if h.old == "" || h.old == h.new {
			return nil, fmt.Errorf("%s: a hunk in %s that finds or changes nothing", name, h.file)
		}
	}
	return m, nil
}

// apply returns the changed files of the directory by their names.
func (m *mutant) apply(dir string) (map[string]string, error) {
	files := map[string]string{}
	for _, h := range m.hunks {
		text, ok := files[h.file]
		if !ok {
			data, err := os.ReadFile(filepath.Join(dir, h.file))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.name, err)
			}
			text = string(data)
		}
		// With a line break in front, so that only whole lines are found.
		text = "\n" + text
		at := strings.Index(text, "\n"+h.old)
		switch {
		case at < 0:
			return nil, fmt.Errorf("%s: the old lines are not in %s:\n%s", m.name, h.file, h.old)
		case strings.Contains(text[at+1:], "\n"+h.old):
			return nil, fmt.Errorf("%s: the old lines are more than once in %s:\n%s", m.name, h.file, h.old)
		}
		files[h.file] = (text[:at+1] + h.new + text[at+1+len(h.old):])[1:]
	}
	return files, nil
}
