package check_test

import "os"

// full: what is at the limits of tables is tried there. The race detector makes
// that ten times as slow and has little to say about it; with INTERLOCK_LONG set it
// is tried all the same.
var full = !raceDetector || os.Getenv("INTERLOCK_LONG") != ""

// sized is a limit, or an eighth of it.
func sized(limit int) int {
	if full {
		return limit
	}
	return limit / 8
}
