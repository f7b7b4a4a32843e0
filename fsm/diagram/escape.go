package diagram

import (
	"fmt"
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

// escapeWith passes every character that keep refuses to write. The neighbours of a
// character are 0 at the ends.
func escapeWith(s string, keep func(before, r, after rune) bool, write func(*strings.Builder, rune)) string {
	var b strings.Builder
	rs := []rune(s)
	at := func(i int) rune {
		if i < 0 || i >= len(rs) {
			return 0
		}
		return rs[i]
	}
	for i, r := range rs {
		if keep(at(i-1), r, at(i+1)) {
			b.WriteRune(r)
		} else {
			write(&b, r)
		}
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
	numbered := strings.HasPrefix(strings.TrimLeftFunc(s, unicode.IsDigit), ")") // 1) begins a list
	return escapeWith(s, func(before, r, after rune) bool {
		switch r {
		case ' ':
			return inner(before, after)
		case '_', '-', '.', '/':
			return word(before) && word(after)
		case ')':
			return !numbered
		case '(', ',', '\'', '?':
			return true
		}
		return word(r)
	}, func(b *strings.Builder, r rune) {
		if r == ' ' {
			r = noBreak
		}
		fmt.Fprintf(b, "#%d;", r)
	})
}

// mermaidInternal separates, by a character without width, the pairs of characters
// that Mermaid uses internally for # and ;.
var mermaidInternal = strings.NewReplacer("\ufb02\u00b0", "\ufb02\u2060\u00b0", "\u00b6\u00df", "\u00b6\u2060\u00df")

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
	return escapeWith(s, func(before, r, after rune) bool {
		switch r {
		case ' ':
			return inner(before, after)
		case '_':
			return word(before) && word(after)
		}
		return !strings.ContainsRune("\\`*[<|~&$", r)
	}, func(b *strings.Builder, r rune) {
		switch r {
		case ' ':
			b.WriteString("&nbsp;")
		case '<': // some renderers read a tag after a backslash too
			b.WriteString("&lt;")
		default:
			b.WriteByte('\\')
			b.WriteRune(r)
		}
	})
}
