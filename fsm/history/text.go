package history

import (
	"fmt"
	"strconv"
	"strings"
)

// few is the number of names that a text lists.
const few = 8

// some lists names as text.
func some(names []string, word string) string {
	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" %s %d more", word, len(names)-few)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " " + word + " " + names[n-1]
	}
	return strings.Join(names, "")
}

// clip quotes a text and shortens it.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
