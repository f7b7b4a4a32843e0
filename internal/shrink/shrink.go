// Package shrink shortens random sequences of steps that fail.
package shrink

import (
	"fmt"
	"slices"
	"strings"
)

// Report shortens a sequence that fails and returns its error and its steps as text, with
// the seed that it was drawn from.
func Report[S fmt.Stringer](seed uint64, steps []S, err error, play func([]S) error) string {
	steps, err = Shorten(steps, err, play)
	var b strings.Builder
	fmt.Fprintf(&b, "a random sequence (Seed %d) fails: %v\n", seed, err)
	for i, s := range steps {
		fmt.Fprintf(&b, "%3d %s\n", i+1, s)
	}
	return b.String()
}

// Shorten removes steps as long as the rest fails too, and returns the rest and its error.
// play must not keep the sequences that it is called with.
func Shorten[S any](steps []S, err error, play func([]S) error) ([]S, error) {
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps); {
			fewer := slices.Concat(steps[:at], steps[at+size:])
			if shorter := play(fewer); shorter != nil {
				steps, err = fewer, shorter
			} else {
				at += size
			}
		}
	}
	return steps, err
}
