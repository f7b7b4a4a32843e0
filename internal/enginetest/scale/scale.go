// Package scale has the sizes of the tests on engines: they are short, and full if the
// variable INTERLOCK_LONG is set.
package scale

import "os"

// Full reports whether tests may take minutes each.
var Full = os.Getenv("INTERLOCK_LONG") != ""

// Of returns one of two sizes.
func Of(short, full int) int {
	if Full {
		return full
	}
	return short
}
