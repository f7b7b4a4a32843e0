// Package visible shows names that contain characters which a reader would not see.
package visible

import (
	"fmt"
	"strings"
	"unicode"
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
