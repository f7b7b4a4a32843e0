package sqlstore

import (
	"database/sql/driver"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Of every object the rows before a number are deleted, a few hundred at once and
// none of the newest eight; an engine that is busy is asked again, and what was
// deleted before an error is told.
func TestTrim(t *testing.T) {
	machines := [][][]driver.Value{{{"crane"}}, {{"truck"}}, {{nil}}}
	var asked, deleted []any
	busy := true
	var refused error
	store, _, _ := opened(t, MySQL, nil, func(query string, args []driver.NamedValue) reply {
		switch {
		case strings.HasPrefix(query, "SELECT MIN(`machine`)"):
			asked = append(asked, args[0].Value)
			rows := machines[0]
			machines = machines[1:]
			return reply{rows: rows}
		case strings.HasPrefix(query, "SELECT `id`"):
			require.Contains(t, query, "FROM `interlock_history` WHERE `machine` = ? AND `id` > ?")
			for _, a := range args {
				if a.Value == "truck" {
					return reply{}
				}
			}
			return reply{rows: [][]driver.Value{
				{"a", int64(1), int64(1300), int64(maxNumber)},    // all of it is old
				{"b", int64(5), int64(1300), int64(9)},            // but the first four
				{"c", int64(1290), int64(1300), int64(1)},         // but none, when it was looked at again
				{"d", int64(1292), int64(1300), int64(maxNumber)}, // but one
			}}
		case strings.HasPrefix(query, "DELETE"):
			if busy {
				busy = false
				return reply{err: &numberError{Number: 1213}}
			}
			if refused != nil {
				return reply{err: refused}
			}
			deleted = append(deleted, args[1].Value, args[2].Value)
			return reply{affected: 7}
		}
		return reply{}
	})
	n, err := store.Trim(t.Context(), time.Hour, 3)
	require.NoError(t, err)
	require.Equal(t, []any{"", "crane", "truck"}, asked)
	require.Equal(t, []any{"a", int64(501), "a", int64(1001), "a", int64(1293), "b", int64(9), "d", int64(1293)}, deleted)
	require.Equal(t, 5*7, n)

	machines = [][][]driver.Value{{{"crane"}}}
	refused = &numberError{Number: 1142}
	n, err = store.Trim(t.Context(), time.Hour, 3)
	require.ErrorIs(t, err, refused)
	require.Zero(t, n)
	_, err = store.Trim(t.Context(), 0, 3)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}
