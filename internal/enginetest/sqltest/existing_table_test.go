package sqltest

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// The types of a user's columns, by engine.
func types(e engine) (blob, moment string) {
	switch e.name {
	case "postgres":
		return "bytea", "timestamptz"
	case "mysql":
		return "longblob", "datetime(6)"
	}
	return "blob", "integer"
}

// A user's table with all columns under other names, and with a column that the library
// does not use.
func userTable(t testing.TB, db *sql.DB, e engine) sqlstore.ExistingTable {
	blob, moment := types(e)
	exec(t, db, fmt.Sprintf(`CREATE TABLE shop_orders (
		no varchar(100) NOT NULL PRIMARY KEY, price bigint NOT NULL DEFAULT 7,
		status varchar(50) NOT NULL, was varchar(50), rev bigint NOT NULL, seq bigint NOT NULL, op bigint,
		who varchar(50), life bigint, task varchar(50), task_args %[1]s, task_options %[1]s, due %[2]s, touched %[2]s,
		goal varchar(50), doer varchar(50), cause varchar(50), why varchar(500), body %[1]s, body_before %[1]s, token %[1]s, begun %[1]s, moved_by %[1]s, form varchar(50))`, blob, moment))
	return sqlstore.ExistingTable{
		Machine: "order", Table: "shop_orders", History: true,
		Columns: sqlstore.ColumnMap{
			ID: "no", State: "status", Origin: "was", Revision: "rev", Sequence: "seq", Operation: "op", Owner: "who", Epoch: "life",
			Work: "task", Args: "task_args", WorkOptions: "task_options", Deadline: "due", ChangedAt: "touched", Target: "goal",
			Actor: "doer", Event: "cause", Reason: "why", Payload: "body", Saved: "body_before", Token: "token", Admission: "begun", ChangeToken: "moved_by", Version: "form",
		},
	}
}

func TestExistingTable(t *testing.T) {
	for _, removed := range []string{"", "gone"} {
		t.Run("removed="+removed, func(t *testing.T) {
			onEach(t, func(t *testing.T, e engine) {
				db := pool(t, e.open(t))
				require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
				a := userTable(t, db, e)
				a.Removed = removed
				store, err := a.Open(t.Context(), db, e.dialect, nil)
				require.NoError(t, err)
				defer store.Close()
				m := manage(store)
				never := get(t, store, lifecycle.Key{Machine: "order", ID: "a"})

				_, err = m.Create(t.Context(), "a", place, customer, "one", nil)
				require.NoError(t, err)
				exec(t, db, "UPDATE shop_orders SET price = 12 WHERE no = 'a'")
				r, err := m.Fire(t.Context(), "a", pay, customer, nil)
				require.NoError(t, err)
				require.False(t, r.Deadline.IsZero())
				got, err := m.Get(t.Context(), "a")
				require.NoError(t, err)
				require.Equal(t, r, got)
				list, err := m.List(t.Context(), lifecycle.Select[state]{States: []state{paying}})
				require.NoError(t, err)
				require.Len(t, list, 1)
				v, err := m.Report(t.Context(), "a", r.Operation, settled, bank, nil)
				require.NoError(t, err)
				require.Equal(t, lifecycle.Applied, v)
				last, err := m.Fire(t.Context(), "a", drop, customer, nil)
				require.NoError(t, err)
				_, err = m.Get(t.Context(), "a")
				require.ErrorIs(t, err, lifecycle.ErrNotFound)

				require.ErrorIs(t, store.Commit(t.Context(), next(never, 0)), lifecycle.ErrConflict, "decided before it was made and removed")
				made, err := m.Create(t.Context(), "a", place, customer, "two", nil)
				require.NoError(t, err)
				require.Equal(t, last.Sequence+1, made.Sequence)
				require.NotEqual(t, last.Revision, made.Revision)
				rows, err := m.History(t.Context(), "a", 0, 0)
				require.NoError(t, err)
				require.Len(t, rows, 5)

				var price int
				require.NoError(t, db.QueryRowContext(t.Context(), "SELECT price FROM shop_orders WHERE no = 'a'").Scan(&price))
				require.Equal(t, map[string]int{"": 7, "gone": 12}[removed], price)
			})
		})
	}
}

// A write of the state without the library is a conflict for a caller that has read
// before. It is not overwritten.
func TestExistingTableSecondWriter(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		store, err := userTable(t, db, e).Open(t.Context(), db, e.dialect, nil)
		require.NoError(t, err)
		defer store.Close()
		m := manage(store)
		_, err = m.Create(t.Context(), "a", place, customer, "one", nil)
		require.NoError(t, err)
		for _, bypass := range []string{
			"UPDATE shop_orders SET status = 'paid' WHERE no = 'a'",
			"UPDATE shop_orders SET rev = rev + 1 WHERE no = 'a'",
			"DELETE FROM shop_orders WHERE no = 'a'",
		} {
			now, err := store.Get(t.Context(), lifecycle.Key{Machine: "order", ID: "a"})
			require.NoError(t, err)
			exec(t, db, bypass)
			to := now
			to.Sequence++
			commit := &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{Expect: now.Revision, From: now.State, To: to}}}
			require.ErrorIs(t, store.Commit(t.Context(), commit), lifecycle.ErrConflict, bypass)
		}
	})
}

func get(t testing.TB, store lifecycle.Store, key lifecycle.Key) lifecycle.StoredRecord {
	t.Helper()
	r, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	return r
}

// A table of three columns: the store refuses what it cannot keep.
func TestExistingTableOfThreeColumns(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE plain (id varchar(100) NOT NULL PRIMARY KEY, state varchar(50) NOT NULL, rev bigint NOT NULL)")
		exec(t, db, "INSERT INTO plain (id, state, rev) VALUES ('a', 'paid', 1), ('C ', 'open', 1), ('b', 'open', 1)")
		store, err := sqlstore.ExistingTable{
			Machine: "order", Table: "plain", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev"},
		}.Open(t.Context(), db, e.dialect, nil)
		require.NoError(t, err)
		defer store.Close()
		require.False(t, store.Capabilities().History)
		m := lifecycle.Must(order, store, nil)
		key := lifecycle.Key{Machine: "order", ID: "a"}

		before, err := store.Get(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, "paid", before.Origin)
		_, err = m.Fire(t.Context(), "a", reopen, customer, &lifecycle.Change[string]{Edit: func(p *string) error {
			*p = "two"
			return nil
		}})
		require.ErrorIs(t, err, errors.ErrUnsupported, "a payload has no column")
		require.Equal(t, before, get(t, store, key))

		to := before
		to.State, to.Origin = "open", "open"
		move := func(from, expect string) error {
			return store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{
				Expect: lifecycle.Revision(expect), From: from, To: to,
			}}})
		}
		require.NoError(t, move("paid", "1"))
		require.ErrorIs(t, move("paid", "1"), lifecycle.ErrConflict)
		to.State, to.Operation = "paying", 1
		require.ErrorIs(t, move("open", "2"), errors.ErrUnsupported, "an operation has no column")

		list, err := store.List(t.Context(), lifecycle.Query{Machine: "order", States: []string{"open"}, Limit: 9})
		require.NoError(t, err)
		require.Len(t, list, 3)
		require.Equal(t, []string{"C ", "a", "b"}, []string{list[0].ID, list[1].ID, list[2].ID})
		list, err = store.List(t.Context(), lifecycle.Query{Machine: "order", States: []string{"OPEN"}, After: "C ", Limit: 9})
		require.NoError(t, err)
		require.Empty(t, list)
		_, err = store.List(t.Context(), lifecycle.Query{Machine: "order", UnchangedFor: time.Hour, Limit: 9})
		require.ErrorIs(t, err, errors.ErrUnsupported)
		// No record has a deadline or an owner where the table has no column for it.
		for _, q := range []lifecycle.Query{{Overdue: true}, {NotOwnedBy: []lifecycle.OwnerRef{}}} {
			q.Machine, q.Limit = "order", 9
			list, err = store.List(t.Context(), q)
			require.NoError(t, err)
			require.Empty(t, list)
		}
		list, err = store.List(t.Context(), lifecycle.Query{Machine: "order", NoDeadline: true, Unowned: true, Limit: 9})
		require.NoError(t, err)
		require.Len(t, list, 3)
		for _, id := range []string{"B", "C", "a "} { // in any collation
			never := get(t, store, lifecycle.Key{Machine: "order", ID: id})
			require.False(t, never.Exists())
		}
		_, err = store.Get(t.Context(), lifecycle.Key{Machine: "truck", ID: "a"})
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	})
}

func TestExistingTableRefusesAtOpen(t *testing.T) {
	ok := sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev"}
	with := func(change func(*sqlstore.ColumnMap)) sqlstore.ColumnMap {
		c := ok
		change(&c)
		return c
	}
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE plain (id varchar(100) NOT NULL PRIMARY KEY, state varchar(50) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL)")
		for _, c := range []struct {
			name string
			a    sqlstore.ExistingTable
			want error
		}{
			{"no machine", sqlstore.ExistingTable{Table: "plain", Columns: ok}, lifecycle.ErrInvalid},
			{"no state", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: sqlstore.ColumnMap{ID: "id"}}, lifecycle.ErrInvalid},
			{"a hostile table", sqlstore.ExistingTable{Machine: "m", Table: `plain"; DROP TABLE plain; --`, Columns: ok}, sqlstore.ErrIdentifier},
			{"a table of a table", sqlstore.ExistingTable{Machine: "m", Table: "a.b.plain", Columns: ok}, sqlstore.ErrIdentifier},
			{"a hostile column", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Reason = "x, y" })}, sqlstore.ErrIdentifier},
			{"no table", sqlstore.ExistingTable{Machine: "m", Table: "plein", Columns: ok}, sqlstore.ErrSchema},
			{"no column", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Reason = "why" })}, sqlstore.ErrSchema},
			{"one column twice", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Reason = "State" })}, lifecycle.ErrInvalid},
			{"operations without revision", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Operation: "seq"}}, lifecycle.ErrInvalid},
			{"deadline without sequence", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Deadline = "seq" })}, lifecycle.ErrInvalid},
			{"owner without epoch", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Sequence, c.Owner = "seq", "state" })}, lifecycle.ErrInvalid},
			{"history without tables", sqlstore.ExistingTable{Machine: "m", Table: "plain", History: true, Columns: with(func(c *sqlstore.ColumnMap) { c.Sequence = "seq" })}, sqlstore.ErrSchema},
		} {
			_, err := c.a.Open(t.Context(), db, e.dialect, nil)
			require.ErrorIs(t, err, c.want, c.name)
		}
	})
}

// Two rows of one key are refused if the table has no unique index. Behind a view, whose
// indexes are unknown, only one of them is written.
func TestExistingTableWithoutUniqueIndex(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE plain (id varchar(100) NOT NULL, state varchar(50) NOT NULL, rev bigint NOT NULL)")
		exec(t, db, "INSERT INTO plain (id, state, rev) VALUES ('a', 'open', 1), ('a', 'open', 1)")
		exec(t, db, "CREATE VIEW viewed AS SELECT * FROM plain")
		a := sqlstore.ExistingTable{
			Machine: "order", Table: "plain", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev"},
		}
		_, err := a.Open(t.Context(), db, e.dialect, nil)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
		require.ErrorContains(t, err, "no unique index on (id)")
		if e.name == "sqlite" { // which writes through no view
			return
		}
		a.Table = "viewed"
		store, err := a.Open(t.Context(), db, e.dialect, nil)
		require.NoError(t, err)
		defer store.Close()
		r, err := store.Get(t.Context(), lifecycle.Key{Machine: "order", ID: "a"})
		require.NoError(t, err)
		to := r
		to.State, to.Origin = "paid", "paid"
		err = store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{Expect: r.Revision, From: "open", To: to}}})
		require.Error(t, err)
		require.NotErrorIs(t, err, lifecycle.ErrConflict)
		var n int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM plain WHERE rev = 1").Scan(&n))
		require.Equal(t, 2, n)
	})
}
