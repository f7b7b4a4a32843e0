package diagram

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/interlock-go/interlock/internal/visible"
)

// oneLine returns a text in one line, and "" for white space.
func oneLine(s string) string {
	words := strings.Fields(s)
	if len(words) == 0 {
		return ""
	}
	return visible.Text(strings.Join(words, " "))
}

// escapeWith replaces every character by what escape returns for it. The neighbours of a
// character are 0 at the ends.
func escapeWith(s string, escape func(before, r, after rune) string) string {
	var b strings.Builder
	rs := append([]rune(s), 0)
	before := rune(0)
	for i, r := range rs[:len(rs)-1] {
		b.WriteString(escape(before, r, rs[i+1]))
		before = r
	}
	return b.String()
}

func word(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// inner reports whether both neighbours are characters other than spaces. A layout
// program keeps a space between them.
func inner(before, after rune) bool {
	return before != 0 && before != ' ' && after != 0 && after != ' '
}

// mermaidText escapes a name for a Mermaid label. It keeps letters, digits and some
// punctuation where they cannot be markup. Every other character becomes #code;, which
// Mermaid replaces before it parses the text.
func mermaidText(s string) string {
	s = mermaidInternal.Replace(visible.Text(s))
	s = mermaidDirection.ReplaceAllString(s, "${1}"+string(noBreak)+"${2}")
	numbered := strings.HasPrefix(strings.TrimLeftFunc(s, unicode.IsDigit), ")") // 1) begins a list
	return escapeWith(s, func(before, r, after rune) string {
		keep := word(r)
		switch r {
		case ' ':
			if keep = inner(before, after); !keep {
				r = noBreak
			}
		case '_', '-', '.', '/':
			keep = word(before) && word(after)
		case ')':
			keep = !numbered
		case '(', ',', '\'', '?':
			keep = true
		}
		if keep {
			return string(r)
		}
		return fmt.Sprintf("#%d;", r)
	})
}

// mermaidInternal separates, by a character without width, the pairs of characters
// that Mermaid uses internally for # and ;.
var mermaidInternal = strings.NewReplacer("\ufb02\u00b0", "\ufb02\u2060\u00b0", "\u00b6\u00df", "\u00b6\u2060\u00df")

// mermaidDirection matches what Mermaid reads as a statement wherever it is in a line.
var mermaidDirection = regexp.MustCompile(`(?i)(direction) (TB|BT|LR|RL)`)

const noBreak = '\u00a0' // a space that a layout program keeps

// dotText escapes a name for a quoted DOT label. Graphviz reads HTML entities there,
// so that an ampersand becomes one.
func dotText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`).Replace(visible.Text(s))
}

// markdownText escapes a name for a cell of a Markdown table.
func markdownText(s string) string {
	return markdown(visible.Text(s))
}

func markdown(s string) string {
	return escapeWith(s, func(before, r, after rune) string {
		switch {
		case r == ' ' && !inner(before, after):
			return "&nbsp;"
		case r == '<': // some renderers read a tag after a backslash too
			return "&lt;"
		case r == '_' && !(word(before) && word(after)), strings.ContainsRune("\\`*[|~&$", r):
			return `\` + string(r)
		}
		return string(r)
	})
}
