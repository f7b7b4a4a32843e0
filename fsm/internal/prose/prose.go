// Package prose writes lists of names and texts of callers into findings.
package prose

import (
	"fmt"
	"strconv"
	"strings"
)

// Most is the number of names that a list has.
const Most = 8

// List joins names, with a word such as "or" before the last one. It counts the names
// after the first ones.
func List(names []string, word string) string {
	if len(names) > Most {
		return strings.Join(names[:Most], ", ") + fmt.Sprintf(" %s %d more", word, len(names)-Most)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " " + word + " " + names[n-1]
	}
	return strings.Join(names, "")
}

// Quote quotes a text and shortens it.
func Quote(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "..."
	}
	return strconv.Quote(s)
}
