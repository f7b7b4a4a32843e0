package diagramtest

import (
	"strings"
	"unicode"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/fsm/diagram"
)

// section is what belongs under one heading.
type section struct {
	title string   // "Table of NAME"
	lines []string // of the body, as they stand in the file
}

// titlePrefix begins the heading of every section.
const titlePrefix = "Table of "

const intro = "Generated from the machine; a test fails when it differs."

// titleOf is the heading of a table. A character that may mean something in a
// heading becomes a dash, and so does a missing name.
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

func docSection(t *fsm.Table) section {
	s := section{title: titleOf(t)}
	preformatted := func(text string) {
		s.lines = append(s.lines, "//")
		for _, l := range split(text) {
			if l != "" {
				l = "\t" + l
			}
			s.lines = append(s.lines, "//"+l)
		}
	}
	s.lines = append(s.lines, "//", "// "+intro)
	preformatted(diagram.Text(t, nil))
	s.lines = append(s.lines, "//", "// As a picture, in Mermaid:")
	preformatted(diagram.Mermaid(t, nil))
	return s
}

func markdownSection(t *fsm.Table) section {
	s := section{title: titleOf(t)}
	s.lines = append(s.lines, "", intro, "")
	s.lines = append(s.lines, split(diagram.Markdown(t, nil))...)
	s.lines = append(s.lines, "", "```mermaid")
	s.lines = append(s.lines, split(diagram.Mermaid(t, nil))...)
	s.lines = append(s.lines, "```")
	return s
}

// split returns the lines of a text that ends with a newline.
func split(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }
