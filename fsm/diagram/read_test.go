package diagram_test

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// picture is the content of a Mermaid or DOT source, with unescaped names.
type picture struct {
	states  map[string]string // by alias: s0
	looks   map[string]string // Mermaid: class, DOT: attributes
	current string            // the alias of the marked state
	entries []string
	arrows  []drawnArrow
	legend  string
}

type drawnArrow struct {
	from, to string
	labels   []string
	look     string
}

// mermaidSafe matches a text without characters that have a meaning in Mermaid or in
// the Markdown of its labels.
const mermaidSafe = `(?:[\p{L}\p{Nd} _./(),'?\[\]-]|#[0-9]+;)*`

var (
	mermaidTitle = regexp.MustCompile(`^---\ntitle: "([a-z:, ]+)"\n---\n`)
	mermaidState = regexp.MustCompile(`^    state "(` + mermaidSafe + `)" as (s[0-9]+)$`)
	mermaidEntry = regexp.MustCompile(`^    \[\*\] --> (s[0-9]+)$`)
	mermaidArrow = regexp.MustCompile(`^    (s[0-9]+) --> (s[0-9]+) : (` + mermaidSafe + `(?:<br/>` + mermaidSafe + `)*)$`)
	mermaidDef   = regexp.MustCompile(`^    classDef (transitional|failed|final|absent|undeclared|current) (?:[a-z-]+:[a-z0-9# ]+,?)+$`)
	mermaidClass = regexp.MustCompile(`^    class ((?:s[0-9]+,?)+) (transitional|failed|final|absent|undeclared|current)$`)
	mermaidLine  = regexp.MustCompile(`(?i)direction\s+(TB|BT|RL|LR)`) // in any line it is a statement
	mermaidCode  = regexp.MustCompile(`#([0-9]+);`)
	markdownList = regexp.MustCompile(`^([-+*]|[0-9]+[.)])( |$)`)
)

// readMermaid reads the output of [diagram.Mermaid]. It fails on a statement outside
// the subset of the language that Mermaid writes.
func readMermaid(t require.TestingT, source string) picture {
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	require.True(t, strings.HasSuffix(source, "\n"))
	p := picture{states: map[string]string{}, looks: map[string]string{}}
	if m := mermaidTitle.FindStringSubmatch(source); m != nil {
		p.legend, lines = m[1], lines[3:]
	}
	require.Equal(t, "stateDiagram-v2", lines[0])
	require.Equal(t, "    direction TB", lines[1])
	for _, l := range lines[2:] {
		require.NotRegexp(t, mermaidLine, l)
		if m := mermaidState.FindStringSubmatch(l); m != nil {
			require.NotContains(t, p.states, m[2], "declared twice")
			p.states[m[2]] = mermaidPlain(t, m[1])
		} else if m := mermaidEntry.FindStringSubmatch(l); m != nil {
			p.entries = append(p.entries, m[1])
		} else if m := mermaidArrow.FindStringSubmatch(l); m != nil {
			a := drawnArrow{from: m[1], to: m[2]}
			for text := range strings.SplitSeq(m[3], "<br/>") {
				a.labels = append(a.labels, mermaidPlain(t, text))
			}
			p.arrows = append(p.arrows, a)
		} else if m := mermaidClass.FindStringSubmatch(l); m != nil {
			for alias := range strings.SplitSeq(m[1], ",") {
				require.Contains(t, p.states, alias)
				if m[2] == "current" {
					p.current = alias
				} else {
					p.looks[alias] = m[2]
				}
			}
		} else {
			require.Regexp(t, mermaidDef, l)
		}
	}
	p.check(t)
	return p
}

// mermaidPlain undoes the escapes of a Mermaid text.
func mermaidPlain(t require.TestingT, text string) string {
	require.NotRegexp(t, markdownList, text, "read as a list")
	require.NotContains(t, text, "  ", "spaces that layout swallows")
	require.Equal(t, strings.TrimSpace(text), text)
	plain := mermaidCode.ReplaceAllStringFunc(text, func(code string) string {
		n, err := strconv.Atoi(code[1 : len(code)-1])
		require.NoError(t, err)
		return string(rune(n))
	})
	// Mermaid uses these pairs internally for #, & and ;.
	for _, internal := range []string{"\ufb02\u00b0", "\u00b6\u00df"} {
		require.NotContains(t, plain, internal)
	}
	return strings.NewReplacer("\u2060", "", "\u00a0", " ").Replace(plain)
}

var (
	dotTitle = regexp.MustCompile(`^\tgraph \[label="([a-z:, ]+)" fontname="[A-Za-z,-]+" fontsize=10\]$`)
	dotNode  = regexp.MustCompile(`^\t((?:s|start)[0-9]+) \[(.*)\]$`)
	dotArrow = regexp.MustCompile(`^\t((?:s|start)[0-9]+) -> (s[0-9]+)(?: \[(.*)\])?$`)
	dotAttr  = regexp.MustCompile(`^([a-z]+)=("(?:[^"\\]|\\.)*"|[a-z0-9.]+)(?: |$)`)
)

// readDOT reads the output of [diagram.DOT].
func readDOT(t require.TestingT, source string) picture {
	lines := strings.Split(strings.TrimSuffix(source, "\n"), "\n")
	require.Regexp(t, `^digraph "(?:[^"\\]|\\.)*" \{$`, lines[0])
	require.Regexp(t, `^\trankdir=(TB|LR) nodesep=\S+ ranksep=\S+$`, lines[1])
	require.Regexp(t, `^\tnode \[`, lines[2])
	require.Regexp(t, `^\tedge \[`, lines[3])
	require.Equal(t, "}", lines[len(lines)-1])
	p := picture{states: map[string]string{}, looks: map[string]string{}}
	for _, l := range lines[4 : len(lines)-1] {
		if m := dotArrow.FindStringSubmatch(l); m != nil {
			if strings.HasPrefix(m[1], "start") {
				require.Empty(t, m[3])
				p.entries = append(p.entries, m[2])
				continue
			}
			label, look := dotAttributes(t, m[3])
			p.arrows = append(p.arrows, drawnArrow{m[1], m[2], dotPlain(t, label), look})
			continue
		}
		if m := dotTitle.FindStringSubmatch(l); m != nil {
			p.legend = m[1]
			continue
		}
		m := dotNode.FindStringSubmatch(l)
		require.NotNil(t, m, l)
		if strings.HasPrefix(m[1], "start") {
			continue
		}
		label, look := dotAttributes(t, m[2])
		require.NotContains(t, p.states, m[1], "declared twice")
		look, marked := strings.CutSuffix(look, `fillcolor="#ffe08a" fontcolor=black penwidth=3`)
		if marked {
			p.current = m[1]
		}
		p.states[m[1]], p.looks[m[1]] = strings.Join(dotPlain(t, label), "\n"), look
	}
	p.check(t)
	return p
}

// dotAttributes separates the label from the other attributes.
func dotAttributes(t require.TestingT, list string) (label, rest string) {
	for left := list; left != ""; {
		m := dotAttr.FindStringSubmatch(left)
		require.NotNil(t, m, list)
		left = left[len(m[0]):]
		if m[1] == "label" {
			label = m[2][1 : len(m[2])-1]
			continue
		}
		rest += " " + m[1] + "=" + m[2]
	}
	return label, strings.TrimSpace(rest)
}

// dotPlain undoes the escapes of a label and returns its lines.
func dotPlain(t require.TestingT, label string) []string {
	var b strings.Builder
	for i := 0; i < len(label); i++ {
		switch label[i] {
		case '\\':
			i++
			require.Contains(t, `\"n`, label[i:i+1])
			if label[i] == 'n' {
				b.WriteByte('\n')
			} else {
				b.WriteByte(label[i])
			}
		case '&':
			require.True(t, strings.HasPrefix(label[i:], "&amp;"), label)
			b.WriteByte('&')
			i += len("amp;")
		default:
			b.WriteByte(label[i])
		}
	}
	return strings.Split(b.String(), "\n")
}

// check requires that every arrow joins declared states.
func (p picture) check(t require.TestingT) {
	for _, a := range p.arrows {
		require.Contains(t, p.states, a.from)
		require.Contains(t, p.states, a.to)
	}
	for _, s := range p.entries {
		require.Contains(t, p.states, s)
	}
}

// readMarkdown reads the tables of [diagram.Markdown] or [diagram.Text] as
// rows of unescaped cells, heads included. Every row has as many cells as the
// head. In an aligned table every line is as wide as the first.
func readMarkdown(t require.TestingT, source string, aligned bool) (tables [][][]string) {
	for block := range strings.SplitSeq(strings.TrimSuffix(source, "\n"), "\n\n") {
		if strings.HasPrefix(block, "[1]") {
			break // notes
		}
		var table [][]string
		lines := strings.Split(block, "\n")
		for i, l := range lines {
			if aligned {
				require.Equal(t, utf8.RuneCountInString(lines[0]), utf8.RuneCountInString(l), "aligned")
			}
			cells := markdownCells(t, l)
			if i == 1 {
				for _, c := range cells {
					require.Regexp(t, `^---+$`, c)
				}
			} else {
				table = append(table, cells)
			}
			require.Len(t, cells, len(table[0]), l)
		}
		tables = append(tables, table)
	}
	return tables
}

var noteMark = regexp.MustCompile(`^\[[0-9]+\]`)

func alphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// markdownCells splits a line at its unescaped pipes and undoes the escapes.
func markdownCells(t require.TestingT, line string) (cells []string) {
	require.True(t, strings.HasPrefix(line, "|") && strings.HasSuffix(line, " |"), line)
	var b strings.Builder
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\':
			i++
			require.Contains(t, "\\`*_[|~&$", line[i:i+1], "escape of %q", line)
			b.WriteByte(line[i])
		case c == '|':
			cell := strings.Trim(b.String(), " ")
			cells = append(cells, strings.ReplaceAll(cell, "\u00a0", " "))
			b.Reset()
		case noteMark.MatchString(line[i:]): // no link: nothing defines one
			b.WriteString(noteMark.FindString(line[i:]))
			i += len(noteMark.FindString(line[i:])) - 1
		case c == '_':
			before, _ := utf8.DecodeLastRuneInString(line[:i])
			after, _ := utf8.DecodeRuneInString(line[i+1:])
			require.True(t, alphanumeric(before) && alphanumeric(after), "bare _ in %q", line)
			b.WriteByte(c)
		case strings.HasPrefix(line[i:], "&nbsp;"):
			b.WriteString("\u00a0")
			i += len("nbsp;")
		case strings.HasPrefix(line[i:], "&lt;"):
			b.WriteByte('<')
			i += len("lt;")
		default:
			require.NotContains(t, "`*[<~&$", string(c), "bare in %q", line)
			b.WriteByte(c)
		}
	}
	require.Empty(t, b.String(), "text after the last pipe")
	return cells
}
