package sqlstore

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// Trim deletes the rows of every object below a number, a few hundred per statement. It
// retries when the engine is busy, and returns the number of deleted rows also with an
// error.
func TestTrim(t *testing.T) {
	var deleted []any
	busy := true
	var refused error
	var reports []string
	config := &Config{Progress: func(what string, done, total int) {
		reports = append(reports, fmt.Sprintf("%s: %d of %d", what, done, total))
	}}
	store, _, _ := opened(t, MySQL, config, func(query string, args []driver.NamedValue) reply {
		switch {
		case strings.HasPrefix(query, "SELECT TIMESTAMPDIFF"):
			return reply{rows: [][]driver.Value{{int64(1e15)}}}
		case strings.HasPrefix(query, "SELECT older.`id`, MAX("):
			return reply{rows: [][]driver.Value{{"a", int64(1293), "crane"}, {"b", int64(9), "crane"}, {"d", int64(1293), "truck"}}}
		case strings.HasPrefix(query, "SELECT COALESCE(MIN("):
			return reply{rows: [][]driver.Value{{map[any]int64{"a": 1, "b": 5, "d": 1292}[args[1].Value]}}}
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
	require.Equal(t, []string{
		"delete rows of interlock_history: 21 of 0", "delete rows of interlock_history: 28 of 0", "delete rows of interlock_history: 35 of 0",
	}, reports)

	refused = &numberError{Number: 1142}
	n, err = store.Trim(t.Context(), time.Hour, 3)
	require.ErrorIs(t, err, refused)
	require.Zero(t, n)
	_, err = store.Trim(t.Context(), 0, 3)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
}

// Trim reports the deleted rows of each table, and returns those of all.
func TestTrimReportsEachTable(t *testing.T) {
	var reports []string
	config := &Config{Progress: func(what string, done, _ int) { reports = append(reports, fmt.Sprintf("%s: %d", what, done)) }}
	store, _, _ := opened(t, MySQL, config, func(query string, args []driver.NamedValue) reply {
		switch {
		case strings.HasPrefix(query, "SELECT TIMESTAMPDIFF"):
			return reply{rows: [][]driver.Value{{int64(1e15)}}}
		case strings.Contains(query, "MAX(older."):
			return reply{rows: [][]driver.Value{{"a", int64(9), "crane"}}}
		case strings.HasPrefix(query, "DELETE"):
			return reply{affected: 7}
		}
		return reply{rows: [][]driver.Value{{int64(1)}}[:min(1, strings.Count(query, "COALESCE(MIN("))]}
	})
	cranes := ExistingTable{
		Machine: "crane", Table: "cranes",
		Columns:         ColumnMap{ID: "id", State: "state", Revision: "revision", Sequence: "sequence"},
		ExistingHistory: ExistingHistory{Table: "crane_log", ID: "id", Sequence: "sequence", Revision: "revision", Token: "token", To: "to", At: "at"},
	}
	l, err := cranes.layout(store.e, store.own)
	require.NoError(t, err)
	store.layouts = append(store.layouts, l)
	n, err := store.Trim(t.Context(), time.Hour, 3)
	require.NoError(t, err)
	require.Equal(t, 14, n)
	require.Equal(t, []string{"delete rows of interlock_history: 7", "delete rows of crane_log: 7"}, reports)
}

// Trim names the index on the time, and no other: SQLite permits one.
func TestTrimNamesOneIndex(t *testing.T) {
	s := &Store{shared: &shared{e: sqlite}}
	st := s.excess(sqlite.own("interlock_", Version), &trimmed{at: 2, to: 1, keep: 8}, "newer", 1)
	require.Equal(t, 1, strings.Count(st.text, "INDEXED BY"), st.text)
	require.Contains(t, st.text, "INDEXED BY `interlock_history_at`")
}
