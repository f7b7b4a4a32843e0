package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// TestTxRequire: a condition of the whole transaction does not hold, and nothing is written.
// The error is about the first change.
func TestTxRequire(t *testing.T) {
	m, leases, store := two(t)
	ends := func() *lifecycle.Tx {
		tx := txOf(firing(leases, "l", "end", user, nil), firing(m, "v", "update", user, nil))
		tx.Require(m.Require("w", "Ready"))
		return tx
	}
	before := everythingOf(t, store)
	err := ends().Commit(t.Context())
	require.ErrorIs(t, err, lifecycle.ErrPrecondition)
	failed, ok := errors.AsType[*lifecycle.Error](err)
	require.True(t, ok)
	require.Equal(t, "l", failed.ID)
	require.Equal(t, before, everythingOf(t, store))

	ready(t, m, "w")
	require.NoError(t, ends().Commit(t.Context()))
	require.Equal(t, state("Updating"), get(t, m, "v").State)
}
