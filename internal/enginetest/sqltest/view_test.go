package sqltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// The view shows names, times and payloads as text.
func TestReadableView(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		m := manage(store)
		_, err := m.Create(t.Context(), "a", place, customer, "zwölf Lampen", nil)
		require.NoError(t, err)
		_, err = m.Fire(t.Context(), "a", pay, customer, &lifecycle.Change[string]{Reason: "now"})
		require.NoError(t, err)
		create(t, m, "b")
		fire(t, m, "b", drop, customer)
		var id, state, payload, reason, year string
		query := "SELECT id, state, payload, reason, " + map[string]string{
			"sqlite": "strftime('%Y', deadline)", "postgres": "to_char(deadline, 'YYYY')", "mysql": "date_format(deadline, '%Y')",
		}[e.name] + " FROM interlock_readable"
		rows, err := db.QueryContext(t.Context(), query)
		require.NoError(t, err)
		defer rows.Close()
		require.True(t, rows.Next())
		require.NoError(t, rows.Scan(&id, &state, &payload, &reason, &year))
		require.Equal(t, []string{"a", "paying", `"zwölf Lampen"`, "now"}, []string{id, state, payload, reason})
		require.Contains(t, []string{time.Now().Format("2006"), time.Now().AddDate(0, 0, 1).Format("2006")}, year)
		require.False(t, rows.Next(), "a removed object")
		require.NoError(t, rows.Err())
	})
}
