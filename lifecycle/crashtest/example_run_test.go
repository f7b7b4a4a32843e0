package crashtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The code of the example is a test that passes.
func TestExample(t *testing.T) {
	require.Equal(t, "4 writes, 36 points found, 36 covered", crashes(t).String())
}
