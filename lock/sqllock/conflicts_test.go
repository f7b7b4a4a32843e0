package sqllock

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lock"
)

// The ranges of a request contain exactly the requests that conflict with it, also where names
// sort next to a slash.
func TestConflicts(t *testing.T) {
	var all []lock.Request
	for _, p := range []string{"/", "/a", "/a/b", "/a/b/c", "/a!", "/a-b", "/a0", "/a0/b", "/ab", "/a/b0", "/ä", "/0", "/~"} {
		for _, m := range lock.Modes {
			all = append(all, lock.Request{Path: lock.MustParse(p), Mode: m})
		}
	}
	for _, a := range all {
		for _, b := range all {
			r, found := conflicts([]lock.Request{a}), false
			for i := range r.low {
				found = found || key(b.Path) >= r.low[i] && key(b.Path) < r.high[i] && r.mask[i]>>b.Mode&1 == 1
			}
			require.Equal(t, a.Conflicts(b), found, "%s and %s", a, b)
		}
	}
}
