// Package visible shows names that contain characters which a reader would not see.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Text replaces every character that is not printable by its number, such as <U+202E>,
// and the empty text by <empty>. Among them are the characters that reverse the
// direction of text.
func Text(s string) string {
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

// Escaped replaces every character that is not printable by its escape in JSON, such as
// \u202e. A string in a JSON text keeps its value.
func Escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// EscapedLines is [Escaped] for every line of a text.
func EscapedLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Escaped(lines[i])
	}
	return strings.Join(lines, "\n")
}
