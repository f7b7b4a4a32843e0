package history

import (
	"fmt"
	"strconv"
	"strings"
)

// few is how many names or rows a text lists.
const few = 8

// some lists names for a text.
func some(names []string, word string) string {
	if len(names) > few {
		return strings.Join(names[:few], ", ") + fmt.Sprintf(" %s %d more", word, len(names)-few)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " " + word + " " + names[n-1]
	}
	return strings.Join(names, "")
}

// clip makes a text from outside fit to be quoted in a line for people.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}
