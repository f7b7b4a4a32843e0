package sqltest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// An engine that was killed may have lost a record that a caller has read, and another
// commit may have written a record with the same sequence number. A change of the lost
// record is a conflict: alone, with another object, and as a removal. TestRestart finds
// this only now and then.
func TestLostRecordIsNotTakenForItsTwin(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		config := &sqlstore.Config{Prefix: "own_"} // else the two have one history
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, config))
		own, err := sqlstore.Open(t.Context(), db, e.dialect, config)
		require.NoError(t, err)
		defer own.Close()
		users := existing(t, db, e, userTable(t, db, e))
		for table, store := range map[string]*sqlstore.Store{"own_objects": own, "shop_things": users} {
			t.Run(table, func(t *testing.T) {
				a, b := orderA, lifecycle.Key{Machine: "order", ID: "b"}
				require.NoError(t, store.Commit(t.Context(), next(get(t, store, a), 0)))
				lost := get(t, store, a)
				exec(t, db, "UPDATE "+table+" SET token = "+map[string]string{
					"sqlite": "x'000102030405060708090a0b0c0d0e0f'", "mysql": "x'000102030405060708090a0b0c0d0e0f'",
					"postgres": `'\x000102030405060708090a0b0c0d0e0f'`,
				}[e.name])
				twin := get(t, store, a)
				require.Equal(t, lost.Sequence, twin.Sequence)
				require.NotEqual(t, lost.Revision, twin.Revision)

				both := next(lost, 0)
				both.Changes = append(both.Changes, next(get(t, store, b), 0).Changes...)
				removal := next(lost, 0)
				removal.Changes[0].Remove, removal.Changes[0].To.State = true, "none"
				quiet := next(lost, 0)
				quiet.Changes[0].MetadataOnly, quiet.Changes[0].To.Sequence = true, lost.Sequence
				for what, c := range map[string]*lifecycle.Commit{"alone": next(lost, 0), "two": both, "removal": removal, "quiet": quiet} {
					t.Run(what, func(t *testing.T) {
						var conflict *lifecycle.ConflictError
						require.ErrorAs(t, store.Commit(t.Context(), c), &conflict)
						require.Equal(t, twin, conflict.Current)
					})
				}
				require.NoError(t, store.Commit(t.Context(), next(twin, 0)))
			})
		}
	})
}

// Rows that the user has inserted have no token.
func TestExistingTableRowsWithoutToken(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, userTable(t, db, e))
		exec(t, db, "INSERT INTO shop_things (no, status, rev, seq) VALUES ('null', 'open', 1, 1)")
		exec(t, db, "INSERT INTO shop_things (no, status, rev, seq, token) VALUES ('empty', 'open', 0, 0, '')")
		for _, id := range []string{"null", "empty"} {
			r := get(t, store, lifecycle.Key{Machine: "order", ID: id})
			require.NoError(t, store.Commit(t.Context(), next(r, 0)), id)
			require.ErrorIs(t, store.Commit(t.Context(), next(r, 0)), lifecycle.ErrConflict, id)
			require.NoError(t, store.Commit(t.Context(), next(get(t, store, r.Key), 0)), id)
		}
	})
}
