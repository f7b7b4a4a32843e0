package sqlstore

import (
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Trim deletes the rows of every object below a number, a few hundred per statement
// and none of the newest eight. It retries when the engine is busy, and returns the
// number of deleted rows also with an error.
func TestTrim(t *testing.T) {
	var deleted []any
	busy := true
	var refused error
	store, _, _ := opened(t, MySQL, nil, func(query string, args []driver.NamedValue) reply {
		switch {
		case strings.HasPrefix(query, "SELECT `machine`, `id`"):
			require.Contains(t, query, "FROM `interlock_history` GROUP BY `machine`, `id`")
			return reply{rows: [][]driver.Value{
				{"crane", "a", int64(1), int64(1300), int64(maxNumber)},    // all rows are old
				{"crane", "b", int64(5), int64(1300), int64(9)},            // the first four are old
				{"crane", "c", int64(1290), int64(1300), int64(1)},         // none is old any more
				{"truck", "d", int64(1292), int64(1300), int64(maxNumber)}, // one is old
			}}
		case strings.HasPrefix(query, "DELETE"):
			if busy {
				busy = false
				return reply{err: &numberError{Number: 1213}}
			}
			if refused != nil {
				return reply{err: refused}
			}
			deleted = append(deleted, args[0].Value, args[1].Value, args[2].Value)
			return reply{affected: 7}
		}
		return reply{}
	})
	n, err := store.Trim(t.Context(), time.Hour, 3)
	require.NoError(t, err)
	require.Equal(t, []any{
		"crane", "a", int64(501), "crane", "a", int64(1001), "crane", "a", int64(1293), "crane", "b", int64(9), "truck", "d", int64(1293),
	}, deleted)
	require.Equal(t, 5*7, n)

	refused = &numberError{Number: 1142}
	n, err = store.Trim(t.Context(), time.Hour, 3)
	require.ErrorIs(t, err, refused)
	require.Zero(t, n)
	_, err = store.Trim(t.Context(), 0, 3)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}
