package sqlstore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// AfterRestore refuses what it cannot work on before it sends a statement. The module of
// the engines tests the rest.
func TestAfterRestoreRefused(t *testing.T) {
	require.ErrorContains(t, AfterRestore(t.Context(), nil, SQLite, nil, 0), "a database and a dialect are required")
	bad := &Config{Prefix: "a;"}
	require.ErrorIs(t, AfterRestore(t.Context(), nil, SQLite, bad, 0), lifecycle.ErrInvalid)
}
