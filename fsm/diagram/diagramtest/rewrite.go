package diagramtest

import (
	"errors"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// rewriteGo replaces sections in the package comment of a Go source.
func rewriteGo(text string, sections []section) (string, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", text, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		return "", err
	}
	if f.Doc == nil {
		return "", errors.New("no package comment")
	}
	for _, c := range f.Doc.List {
		if !strings.HasPrefix(c.Text, "//") {
			return "", errors.New("the package comment must consist of // lines")
		}
	}
	lines := strings.Split(text, "\n")
	first := fset.PositionFor(f.Doc.Pos(), false).Line - 1
	last := fset.PositionFor(f.Doc.End(), false).Line // exclusive
	comment := replace(lines[first:last], sections, shape{
		title: func(lines []string, i int) (string, bool) {
			title, ok := strings.CutPrefix(lines[i], "// # ")
			blank := func(i int) bool { return i < 0 || i >= len(lines) || lines[i] == "//" }
			return strings.TrimSpace(title), ok && blank(i-1) && blank(i+1)
		},
		heading: "// # ", blank: "//",
	})
	return strings.Join(slices.Concat(lines[:first], comment, lines[last:]), "\n"), nil
}

// rewriteMarkdown replaces sections in a Markdown text.
func rewriteMarkdown(text string, sections []section) (string, error) {
	lines := split(text)
	fenced := fences(lines)
	lines = replace(lines, sections, shape{
		title: func(lines []string, i int) (string, bool) {
			title := strings.TrimLeft(lines[i], "#")
			level := len(lines[i]) - len(title)
			return strings.TrimSpace(title), level >= 1 && level <= 6 && !fenced[i] && strings.HasPrefix(title, " ")
		},
		heading: "## ", blank: "",
	})
	return strings.Join(lines, "\n") + "\n", nil
}

// fences reports for every line whether it is inside a fenced block.
func fences(lines []string) []bool {
	inside := make([]bool, len(lines))
	fence := ""
	for i, l := range lines {
		l = strings.TrimLeft(l, " ")
		run := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		if run == "" {
			run = l[:len(l)-len(strings.TrimLeft(l, "~"))]
		}
		inside[i] = fence != ""
		switch {
		case fence == "" && len(run) >= 3:
			fence = run
		case fence != "" && strings.HasPrefix(run, fence) && strings.TrimSpace(l) == run:
			fence = ""
		}
	}
	return inside
}

// shape is what [replace] knows of a kind of file.
type shape struct {
	// title returns the title of the heading in line i, if there is one.
	title   func(lines []string, i int) (string, bool)
	heading string // what a new heading begins with
	blank   string // line
}

// replace puts the sections where their headings stand, drops generated
// sections of other tables and repetitions, and appends those that have no
// heading yet.
func replace(lines []string, sections []section, s shape) []string {
	done := make(map[string]bool)
	var out []string
	trim := func() {
		for len(out) > 0 && out[len(out)-1] == s.blank {
			out = out[:len(out)-1]
		}
	}
	part := func() { // a blank line, unless nothing is before it
		trim()
		if len(out) > 0 {
			out = append(out, s.blank)
		}
	}
	for i := 0; i < len(lines); {
		title, ok := s.title(lines, i)
		if !ok {
			out = append(out, lines[i])
			i++
			continue
		}
		end := i + 1
		for end < len(lines) {
			if _, ok := s.title(lines, end); ok {
				break
			}
			end++
		}
		at := slices.IndexFunc(sections, func(x section) bool { return x.title == title })
		switch {
		case at >= 0 && !done[title]:
			done[title] = true
			part()
			out = append(out, lines[i])
			out = append(out, sections[at].lines...)
		case at >= 0 || generated(title, lines[i+1:end]):
			trim()
		default: // not ours
			out = append(out, lines[i:end]...)
			i = end
			continue
		}
		if end < len(lines) {
			part()
		}
		i = end
	}
	for _, x := range sections {
		if !done[x.title] {
			part()
			out = append(out, s.heading+x.title)
			out = append(out, x.lines...)
		}
	}
	return out
}

// generated reports whether a section is one that a test has written: "Table
// of contents" is not.
func generated(title string, body []string) bool {
	return strings.HasPrefix(title, titlePrefix) &&
		slices.ContainsFunc(body, func(l string) bool { return strings.TrimPrefix(l, "// ") == intro })
}
