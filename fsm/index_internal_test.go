package fsm

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever the keys are, no lookup walks far: where the hash cannot tell them
// apart, something else must.
func TestIndexWalksAreShort(t *testing.T) {
	sorts := map[string]func(int) string{
		"numbered":          func(i int) string { return fmt.Sprintf("state%d", i) },
		"alike at the ends": func(i int) string { return fmt.Sprintf("cluster-%06d-requested", i) },
		"alike in front":    func(i int) string { return fmt.Sprintf("cluster-requested-%06d", i) },
	}
	for name, key := range sorts {
		for _, n := range []int{1, 10, 100, 1000} {
			var keys []string
			for i := range n {
				keys = append(keys, key(i))
			}
			x := newIndex(keys)
			if x.kind != byString {
				continue // a map, which looks after itself
			}
			run, longest := 0, 0
			for i := range 2 * len(x.slots) { // twice: runs go round the end
				run++
				if x.slots[i%len(x.slots)].number < 0 {
					run = 0
				}
				longest = max(longest, run)
			}
			require.LessOrEqual(t, longest, 32, "%d keys %s", n, name)
		}
	}
}
