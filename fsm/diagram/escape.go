package diagram

import (
	"fmt"
	"strings"
	"unicode"
)

// visible makes every character of a name one that can be seen: what is not
// printable (control and format characters, among them the ones that turn the
// direction of writing) becomes <U+XXXX>, the empty name <empty>.
func visible(s string) string {
	if s == "" {
		return "<empty>"
	}
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// oneLine makes a line of a text for people; of spaces alone it makes nothing.
func oneLine(s string) string {
	words := strings.Fields(s)
	if len(words) == 0 {
		return ""
	}
	return visible(strings.Join(words, " "))
}

// escapeWith writes every character of s that keep refuses with write. keep
// sees the neighbours; they are 0 at the ends.
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

// inner reports whether r stands between two characters that are no spaces:
// a space there is not swallowed by what lays out text.
func inner(before, after rune) bool {
	return before != 0 && before != ' ' && after != 0 && after != ' '
}

// mermaidText escapes a name for a Mermaid label. Letters, digits and what names
// are full of stay where they cannot be read as markup; all else becomes
// Mermaid's #code; form, which is gone before the parser sees the text.
func mermaidText(s string) string {
	s = mermaidInternal.Replace(visible(s))
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

// mermaidInternal parts, with a character that has no width, the pairs of
// characters that Mermaid itself writes for # and ; while it works.
var mermaidInternal = strings.NewReplacer("\ufb02\u00b0", "\ufb02\u2060\u00b0", "\u00b6\u00df", "\u00b6\u2060\u00df")

const noBreak = '\u00a0' // a space that layout keeps

// dotText escapes a name for a quoted DOT label. Graphviz reads HTML entities
// even there, so an ampersand is one.
func dotText(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`).Replace(visible(s))
}

// markdownText escapes a name for a cell of a Markdown table.
func markdownText(s string) string {
	return markdown(visible(s))
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
		if r == ' ' {
			b.WriteString("&nbsp;")
			return
		}
		b.WriteByte('\\')
		b.WriteRune(r)
	})
}
