package sqltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// The row of a removed object is not an object: no query lists it, also not one that names its
// state, and reads return a record without a state.
func TestRemovedRows(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		own, db := fresh(t, e)
		table := users(t, db, e, "")
		table.Machine = "order"
		existing := existing(t, db, e, table)
		for name, store := range map[string]*sqlstore.Store{"own": own, "existing": existing} {
			t.Run(name, func(t *testing.T) {
				m := manage(store)
				for _, id := range []string{"a", "b", "c"} {
					create(t, m, id)
				}
				fire(t, m, "b", drop, customer)
				for _, q := range []lifecycle.Query{
					{},
					{States: []string{"open"}},
					{States: []string{"", "gone", "open"}},
					{States: []string{""}},
					{States: []string{"gone"}},
					{States: []string{"", "gone"}, UnchangedFor: 1},
					{States: []string{"", "gone"}, NoDeadline: true, Unowned: true},
					{NoDeadline: true},
					{Unowned: true},
					{UnchangedFor: 1},
				} {
					q.Machine, q.Limit = "order", 10
					list, err := store.List(t.Context(), q)
					require.NoError(t, err)
					var ids []string
					for _, r := range list {
						require.Equal(t, "open", r.State)
						ids = append(ids, r.ID)
					}
					want := []string{"a", "c"}
					if len(q.States) > 0 && q.States[len(q.States)-1] != "open" {
						want = nil
					}
					require.Equal(t, want, ids, "%+v", q)
				}
				removed := get(t, store, lifecycle.Key{Machine: "order", ID: "b"})
				require.False(t, removed.Exists())
				require.Empty(t, removed.Origin)
				require.Zero(t, removed.Admission)
				require.EqualValues(t, 2, removed.Sequence)
			})
		}
	})
}
