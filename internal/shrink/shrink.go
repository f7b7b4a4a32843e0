// Package shrink makes random sequences of steps short that fail, so that
// people can read them.
package shrink

import (
	"fmt"
	"slices"
	"strings"
)

// Report tells a failing sequence, and how it was drawn, after it was made short.
func Report[S fmt.Stringer](seed uint64, steps []S, err error, play func([]S) error) string {
	steps, err = Shorten(steps, err, play)
	var b strings.Builder
	fmt.Fprintf(&b, "a random sequence (Seed %d) fails: %v\n", seed, err)
	for i, s := range steps {
		fmt.Fprintf(&b, "%3d %s\n", i+1, s)
	}
	return b.String()
}

// Shorten takes steps away as long as what is left fails too, and returns what is
// left and its error. Play is called with sequences that it must not keep.
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
