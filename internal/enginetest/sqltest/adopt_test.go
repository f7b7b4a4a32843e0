package sqltest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
)

// The rows of a table that exists already are adopted, whatever state they are in. What fits
// no state is reported and stays as it was. A second run changes nothing.
func TestAdoptRowsOfAnExistingTable(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, userTable(t, db, e))
		for i, row := range []struct{ state, was string }{
			{"open", ""}, {"paid", "paid"}, {"paying", "open"}, {"paying", ""}, {"shipped", ""}, {"none", ""},
		} {
			exec(t, db, fmt.Sprintf("INSERT INTO shop_things (no, status, was, rev, seq) VALUES ('%d', '%s', '%s', 0, 0)", i, row.state, row.was))
		}
		m := manage(store)
		for _, want := range []int{3, 0} {
			adopted, unplaced, err := lifecycle.Adopt(t.Context(), m, "migration", "ticket 7")
			require.NoError(t, err)
			require.Equal(t, want, adopted)
			require.Len(t, unplaced, 3)
			require.Equal(t, []string{"3", "4", "5"}, []string{unplaced[0].ID, unplaced[1].ID, unplaced[2].ID})
			require.ErrorContains(t, unplaced[0].Err, "has no origin")
			require.ErrorIs(t, unplaced[1].Err, lifecycle.ErrForeign)
			require.ErrorContains(t, unplaced[2].Err, "absent state none")
		}
		paying, err := m.Get(t.Context(), "2")
		require.NoError(t, err)
		require.Equal(t, open, paying.Origin)
		require.False(t, paying.Deadline.IsZero())
		rows, err := m.History(t.Context(), "2", 0, 0)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, "ticket 7", rows[0].Reason)
		v, err := m.Report(t.Context(), "2", paying.Operation, settled, bank, nil)
		require.NoError(t, err)
		require.Equal(t, lifecycle.Applied, v)
		fire(t, m, "0", pay, customer)
		var rest int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM shop_things WHERE seq = 0 AND rev = 0").Scan(&rest))
		require.Equal(t, 3, rest)
	})
}
