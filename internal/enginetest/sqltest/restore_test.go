package sqltest

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// backup copies tables, and returns a function that restores them.
func backup(t *testing.T, e engine, db *sql.DB, tables ...string) (restore func()) {
	t.Helper()
	for _, table := range tables {
		exec(t, db, "CREATE TABLE backup_"+table+" AS SELECT * FROM "+table)
	}
	return func() {
		for _, table := range tables {
			into := table
			if e.name == "postgres" && table == "interlock_messages" {
				into += " OVERRIDING SYSTEM VALUE"
			}
			exec(t, db, "DELETE FROM "+table)
			exec(t, db, "INSERT INTO "+into+" SELECT * FROM backup_"+table)
		}
	}
}

// ownTables are those of a restore.
var ownTables = []string{"interlock_schema", "interlock_objects", "interlock_history", "interlock_messages"}

// The database loses its newest commits. After AfterRestore nothing that was handed out
// before has an effect: reports by plain numbers, revisions, owners, for objects that the
// backup has, and for those that it never saw or has as removed.
func TestAfterRestore(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		for _, existing := range []bool{false, true} {
			t.Run(map[bool]string{false: "own tables", true: "existing table"}[existing], func(t *testing.T) {
				db := pool(t, e.open(t))
				require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
				tables := ownTables
				var table sqlstore.ExistingTable
				if existing {
					table = users(t, db, e, "")
					table.Machine, table.ExistingHistory = "order", sqlstore.ExistingHistory{}
					tables = append([]string{"things"}, ownTables...)
				}
				var config *sqlstore.Config
				if existing {
					config = &sqlstore.Config{Tables: []sqlstore.ExistingTable{table}}
				}
				open := func() (*sqlstore.Store, *orders) {
					store, err := sqlstore.Open(t.Context(), db, e.dialect, config)
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, store.Close()) })
					return store, manage(store)
				}
				must := func(r record, err error) record {
					t.Helper()
					require.NoError(t, err)
					return r
				}
				store, m := open()
				owner, err := lifecycle.Join(t.Context(), store, "alpha", 0)
				require.NoError(t, err)
				for _, id := range []string{"known", "removed"} {
					must(m.Create(t.Context(), id, place, customer, "one", nil))
				}
				must(m.Fire(t.Context(), "removed", drop, customer, nil))
				begun := ownedBy(owner, get(t, store, lifecycle.Key{Machine: "order", ID: "owned"}), 0)
				to := &begun.Changes[0].To // an operation in progress
				to.State, to.Owner, to.Epoch = "paying", owner.Name(), owner.Epoch()
				require.NoError(t, store.Commit(t.Context(), begun))
				restore := backup(t, e, db, tables...)

				// These commits are lost.
				must(m.Create(t.Context(), "removed", place, customer, "two", nil))
				must(m.Create(t.Context(), "unseen", place, customer, "one", nil))
				lost := map[string]record{}
				for _, id := range []string{"known", "removed", "unseen"} {
					lost[id] = must(m.Fire(t.Context(), id, pay, customer, nil))
				}
				restore()
				require.NoError(t, sqlstore.AfterRestore(t.Context(), db, e.dialect, config, 1000))

				store, m = open()
				require.ErrorIs(t, owner.Heartbeat(t.Context()), lifecycle.ErrStale, "an owner of before")
				rejoined, err := lifecycle.Join(t.Context(), store, "alpha", 0)
				require.NoError(t, err)
				require.Greater(t, rejoined.Epoch(), owner.Epoch()+999)
				results, err := m.Sweep(t.Context())
				require.NoError(t, err)
				require.Len(t, results, 1, "the operation of the owner of before is taken over")
				require.Equal(t, "owned", results[0].ID)
				for id, before := range lost {
					if id != "known" {
						must(m.Create(t.Context(), id, place, customer, "again", nil))
					}
					again := must(m.Fire(t.Context(), id, pay, customer, nil))
					require.Greater(t, again.Operation, before.Operation, id)
					verdict, err := m.Report(t.Context(), id, before.Operation, settled, bank, nil)
					require.NoError(t, err)
					require.Equal(t, lifecycle.Stale, verdict, id)
					_, err = m.Fire(t.Context(), id, settled, bank, &lifecycle.Change[string]{Expect: before.Revision})
					require.ErrorIs(t, err, lifecycle.ErrConflict, id)
					verdict, err = m.Report(t.Context(), id, again.Operation, settled, bank, nil)
					require.NoError(t, err)
					require.Equal(t, lifecycle.Applied, verdict, id)
					rows, err := m.History(t.Context(), id, 0, 0)
					require.NoError(t, err)
					for i := range rows {
						require.Equal(t, rows[0].Sequence+uint64(i), rows[i].Sequence, "the history has no gap")
					}
				}
				// A key that a commit has only required to be absent continues too.
				c := next(get(t, store, lifecycle.Key{Machine: "order", ID: "known"}), 0)
				never := lifecycle.Key{Machine: "order", ID: "never"}
				before := get(t, store, never)
				require.Greater(t, before.Operation, lifecycle.OpID(999))
				c.Require = []lifecycle.Precondition{{Key: never, States: []string{""}}}
				require.NoError(t, store.Commit(t.Context(), c))
				require.Equal(t, before, get(t, store, never))
				require.NoError(t, store.Commit(t.Context(), next(before, 0)))
				// A creation that was decided before the restore is a conflict.
				unseen := lifecycle.StoredRecord{Key: lifecycle.Key{Machine: "order", ID: "decided"}, Revision: "0"}
				require.ErrorIs(t, store.Commit(t.Context(), next(unseen, 0)), lifecycle.ErrConflict)
				require.NoError(t, sqlstore.AfterRestore(t.Context(), db, e.dialect, config, 0), "once more")
			})
		}
	})
}

// lamps have no operations, so their table needs no column for the number.
var lamps = fsm.Must[struct{}](fsm.Spec[state, event]{
	Name: "lamp", Initial: none, Actors: []fsm.Actor{customer},
	States: []fsm.State[state]{{Name: none, Kind: fsm.Absent}, {Name: open}},
	Rows:   fsm.Rows(fsm.Move(none, place, open).By(customer), fsm.Move(open, drop, none).By(customer)),
})

// After AfterRestore, objects of a table without a column for operations are still created.
func TestAfterRestoreWithoutOperations(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := sqlstore.ExistingTable{
			Machine: "lamp", Table: "lamps", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
		}
		text, err := table.Schema(e.dialect)
		require.NoError(t, err)
		execAll(t, db, text)
		m := lifecycle.Must(lamps, existing(t, db, e, table), nil)
		_, err = m.Create(t.Context(), "removed", place, customer, struct{}{}, nil)
		require.NoError(t, err)
		fire(t, m, "removed", drop, customer)

		config := &sqlstore.Config{Tables: []sqlstore.ExistingTable{table}}
		require.NoError(t, sqlstore.AfterRestore(t.Context(), db, e.dialect, config, 1000))
		m = lifecycle.Must(lamps, existing(t, db, e, table), nil)
		for id, last := range map[string]uint64{"removed": 2, "unseen": 1000} {
			rec, err := m.Create(t.Context(), id, place, customer, struct{}{}, nil)
			require.NoError(t, err, id)
			require.Greater(t, rec.Sequence, last, id)
		}
	})
}

// Without AfterRestore the numbers repeat. The token of the operation shows that a report
// is about another one.
func TestReportAfterALoss(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		m := manage(store)
		create(t, m, "a")
		restore := backup(t, e, db, ownTables...)
		lost := fire(t, m, "a", pay, customer)
		restore()
		again := fire(t, m, "a", pay, customer)
		require.Equal(t, lost.Operation, again.Operation)
		verdict, err := m.Report(t.Context(), "a", lost.Operation, settled, bank, &lifecycle.Change[string]{Admission: lost.Admission})
		require.NoError(t, err)
		require.Equal(t, lifecycle.Stale, verdict)
		verdict, err = m.Report(t.Context(), "a", again.Operation, settled, bank, &lifecycle.Change[string]{Admission: again.Admission})
		require.NoError(t, err)
		require.Equal(t, lifecycle.Applied, verdict)
	})
}

// Numbers of messages do not repeat either: a late Discard removes no new message.
func TestMessagesAfterRestore(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		numbers := func() (list []uint64) {
			messages, err := store.Messages(t.Context(), 10)
			require.NoError(t, err)
			for _, m := range messages {
				list = append(list, m.Number)
			}
			return list
		}
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, orderA), 2)))
		require.NoError(t, store.Discard(t.Context(), numbers()...))
		require.NoError(t, store.Close())
		require.NoError(t, sqlstore.AfterRestore(t.Context(), db, e.dialect, nil, 1000))
		store = existing(t, db, e)
		require.Empty(t, numbers())
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, orderA), 1)))
		require.Greater(t, numbers()[0], uint64(1000))
	})
}

// A restore of one of the tables is reported by the name of an object.
func TestPartialRestore(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		for _, c := range []struct{ lost, text string }{
			{"DELETE FROM interlock_objects", `order "a" has a history row of sequence number 1 and no such record`},
			{"DELETE FROM interlock_objects WHERE id = 'a'", `order "a" has a history row of sequence number`},
			{"DELETE FROM interlock_history", `order "a" has no history row of sequence number 2`},
			{"UPDATE interlock_objects SET sequence = 1, revision = 1, state = 'open' WHERE id = 'a'", `order "a" has a history row of sequence number 2`},
		} {
			t.Run(c.lost, func(t *testing.T) {
				store, db := fresh(t, e)
				m := manage(store)
				for _, id := range []string{"a", "b"} {
					create(t, m, id)
					fire(t, m, id, note, customer)
				}
				exec(t, db, c.lost)
				err := sqlstore.AfterRestore(t.Context(), db, e.dialect, nil, 0)
				if c.lost != "DELETE FROM interlock_objects" { // an existing table could have the objects
					require.ErrorIs(t, err, sqlstore.ErrHistory)
					require.ErrorContains(t, err, `order "a" has`)
				}
				if strings.Contains(c.lost, "history") {
					require.ErrorContains(t, err, c.text)
					return
				}
				if r := get(t, store, orderA); r.Exists() {
					err = store.Commit(t.Context(), next(r, 0))
				} else {
					_, err = m.Create(t.Context(), "a", place, customer, "one", nil)
				}
				require.ErrorIs(t, err, sqlstore.ErrHistory)
				require.ErrorContains(t, err, c.text)
			})
		}
	})
}

// A transaction that loses no more commits than that can be restored.
func TestAfterRestoreOfTooMany(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		store, db := fresh(t, e)
		create(t, manage(store), "a")
		before := get(t, store, orderA)
		require.ErrorIs(t, sqlstore.AfterRestore(t.Context(), db, e.dialect, nil, 1<<40+1), lifecycle.ErrInvalid)
		require.Equal(t, before, get(t, store, orderA))
		require.NoError(t, sqlstore.AfterRestore(t.Context(), db, e.dialect, nil, 1<<40))
	})
}
