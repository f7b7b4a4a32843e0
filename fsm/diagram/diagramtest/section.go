package diagramtest

import (
	"slices"
	"strings"
	"unicode"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

// section is the text below one heading.
type section struct {
	title string   // "Table of NAME"
	lines []string // of the comment; the first is the heading
}

const (
	titlePrefix = "Table of "
	heading     = "// # "
	intro       = "// Generated from the machine; a test fails when it differs."
)

func newSection(t *fsm.Table) section {
	s := section{title: titleOf(t)}
	s.lines = []string{heading + s.title, "//", intro}
	preformatted := func(text string) {
		s.lines = append(s.lines, "//")
		for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			if l != "" {
				l = "\t" + l
			}
			s.lines = append(s.lines, "//"+l)
		}
	}
	preformatted(diagram.Text(t, nil))
	s.lines = append(s.lines, "//", "// As a picture, in Mermaid:")
	preformatted(diagram.Mermaid(t, nil))
	return s
}

// titleOf returns the heading of a table. A character with a meaning in a heading
// becomes a dash. A missing name is a dash too.
func titleOf(t *fsm.Table) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" ._/-", r) {
			return r
		}
		return '-'
	}, t.Name)
	name = strings.Join(strings.Fields(name), " ")
	if name == "" {
		name = "-"
	}
	return titlePrefix + name
}

// replace puts the sections below their headings, drops generated sections of other
// tables and repeated ones, and appends the sections that have no heading yet.
func replace(lines []string, sections []section) (out []string) {
	done := make(map[string]bool)
	add := func(part []string) {
		if out = trimBlank(out); len(out) > 0 {
			out = append(out, "//")
		}
		out = append(out, part...)
	}
	for i := 0; i < len(lines); {
		end := i + 1
		for end < len(lines) && !isHeading(lines, end) {
			end++
		}
		title := strings.TrimSpace(strings.TrimPrefix(lines[i], heading))
		at := slices.IndexFunc(sections, func(s section) bool { return s.title == title })
		switch {
		case !isHeading(lines, i):
			out = append(out, lines[i:end]...)
		case at >= 0 && !done[title]:
			done[title] = true
			add(sections[at].lines)
		case at >= 0 || strings.HasPrefix(title, titlePrefix) && slices.Contains(lines[i+1:end], intro):
			out = trimBlank(out)
		default:
			add(lines[i:end])
		}
		i = end
	}
	for _, s := range sections {
		if !done[s.title] {
			add(s.lines)
		}
	}
	return out
}

// isHeading reports whether line i is a heading: blank lines surround it.
func isHeading(lines []string, i int) bool {
	blank := func(i int) bool { return i < 0 || i >= len(lines) || lines[i] == "//" }
	return strings.HasPrefix(lines[i], heading) && blank(i-1) && blank(i+1)
}

// trimBlank removes the blank lines at the end.
func trimBlank(lines []string) []string {
	for len(lines) > 0 && lines[len(lines)-1] == "//" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
