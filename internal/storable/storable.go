// Package storable makes the text of an error acceptable for every store.
package storable

import (
	"strings"
	"unicode/utf8"
)

// MaxReason is how long the reason of a change may be by default, in bytes.
const MaxReason = 4 << 10

// Reason returns the text as the reason of a change.
func Reason(text string) string { return Text(text, MaxReason) }

// Text returns at most limit bytes of a text. It replaces NUL and what is not UTF-8,
// because not every store can keep them, and ends a text that it has cut with "...".
func Text(text string, limit int) string {
	const replacement, dots = string(utf8.RuneError), "..."
	text = strings.ReplaceAll(strings.ToValidUTF8(text, replacement), "\x00", replacement)
	if len(text) <= limit {
		return text
	}
	end := limit - len(dots)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + dots
}
