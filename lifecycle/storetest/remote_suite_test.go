package storetest

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A store over a network that is sound passes, with everything that a harness
// can have: connections are cut, contexts end, the engine is killed.
func TestRemoteStorePasses(t *testing.T) {
	o := judge(t, (&fault{remote: func(*remote) {}}).harness(t))
	require.Empty(t, o.failed)
	require.Equal(t, []string{
		"Capabilities/undeclared_messages_are_refused", "Time/filters_combine",
	}, slices.Sorted(maps.Keys(o.skipped)))
}
