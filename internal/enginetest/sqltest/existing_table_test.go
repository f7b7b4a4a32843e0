package sqltest

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/fsm"
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

// userTable is a table for orders, whose history is in the library's own tables.
func userTable(t testing.TB, db *sql.DB, e engine) sqlstore.ExistingTable {
	table := users(t, db, e, "shop_")
	table.Machine, table.ExistingHistory = "order", sqlstore.ExistingHistory{}
	return table
}

func TestExistingTable(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, userTable(t, db, e))
		m := manage(store)
		never := get(t, store, orderA)

		create(t, m, "a")
		exec(t, db, "UPDATE shop_things SET price = 12 WHERE no = 'a'")
		r := fire(t, m, "a", pay, customer)
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
		last := fire(t, m, "a", drop, customer)
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
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT price FROM shop_things WHERE no = 'a'").Scan(&price))
		require.Equal(t, 7, price, "the row is a new one")
	})
}

// A write of the state without the library is a conflict for a caller that has read
// before. It is not overwritten.
func TestExistingTableSecondWriter(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, userTable(t, db, e))
		m := manage(store)
		create(t, m, "a")
		for _, bypass := range []string{
			"UPDATE shop_things SET status = 'paid' WHERE no = 'a'",
			"UPDATE shop_things SET rev = rev + 1 WHERE no = 'a'",
			"DELETE FROM shop_things WHERE no = 'a'",
		} {
			late := next(get(t, store, orderA), 0)
			exec(t, db, bypass)
			require.ErrorIs(t, store.Commit(t.Context(), late), lifecycle.ErrConflict, bypass)
		}
	})
}

// Another program writes a state and the next revision, and does not know the column of the
// origin: the object is in that state at rest, and the next operation returns there.
func TestExistingTableStateWithoutOrigin(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		m := manage(existing(t, db, e, userTable(t, db, e)))
		create(t, m, "a")
		exec(t, db, "UPDATE shop_things SET status = 'paid', rev = rev + 1 WHERE no = 'a'")
		got, err := m.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, fsm.Status[state]{State: paid, Origin: paid}, got.Status)
		list, err := m.List(t.Context(), lifecycle.Select[state]{States: []state{paid}})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, list[0].Err)
		fire(t, m, "a", reopen, customer)
		rows, err := m.History(t.Context(), "a", 1, 0)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Equal(t, [2]string{"paid", "paid"}, [2]string{rows[0].From, rows[0].FromOrigin})
	})
}

func get(t testing.TB, store lifecycle.Store, key lifecycle.Key) lifecycle.StoredRecord {
	t.Helper()
	r, err := store.Get(t.Context(), key)
	require.NoError(t, err)
	return r
}

// Another program deletes a row and inserts another one under its id: the error names what to
// do, and the object goes on once the row has the numbers.
func TestExistingTableRowInsertedAgain(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := fourColumns(t, db, "plain", "")
		exec(t, db, "INSERT INTO plain (id, state, rev, seq) VALUES ('a', 'open', 0, 0)")
		store := existing(t, db, e, table)
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, orderA), 0)))
		exec(t, db, "DELETE FROM plain")
		exec(t, db, "INSERT INTO plain (id, state, rev, seq) VALUES ('a', 'open', 0, 0)")
		err := store.Commit(t.Context(), next(get(t, store, orderA), 0))
		require.ErrorIs(t, err, sqlstore.ErrHistory)
		require.ErrorContains(t, err, `order "a" has a history row of sequence number 1 and no such record: `+
			"restore all tables from one backup, or continue the numbers in a row that another program has inserted")
		exec(t, db, "UPDATE plain SET seq = 1, rev = 2")
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, orderA), 0)))
		require.EqualValues(t, 2, get(t, store, orderA).Sequence)
	})
}

// A table of four columns: the store refuses what it cannot keep.
func TestExistingTableOfFourColumns(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := fourColumns(t, db, "plain", "")
		exec(t, db, "INSERT INTO plain (id, state, rev, seq) VALUES ('a', 'paid', 1, 1), ('C ', 'open', 1, 1), ('b', 'open', 1, 1)")
		store := existing(t, db, e, table)
		_, err := lifecycle.New(order, store, nil)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, "the store cannot keep the field Origin of machine order: the machine has transitional states")

		before := get(t, store, orderA)
		require.Equal(t, "paid", before.Origin)
		full := next(before, 0)
		full.Changes[0].To.Payload = []byte("two")
		require.ErrorIs(t, store.Commit(t.Context(), full), errors.ErrUnsupported, "a payload has no column")
		require.Equal(t, before, get(t, store, orderA))

		to := before
		to.State, to.Origin, to.Sequence = "open", "open", 2
		move := func(from, expect string) error {
			return store.Commit(t.Context(), &lifecycle.Commit{Token: lifecycle.NewToken(), Changes: []lifecycle.StoredChange{{
				Expect: lifecycle.Revision(expect), From: from, To: to,
			}}})
		}
		require.NoError(t, move("paid", "1"))
		require.ErrorIs(t, move("paid", "1"), lifecycle.ErrConflict)
		to.State, to.Operation, to.Sequence = "paying", 1, 3
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
	})
}

func TestExistingTableRefusesAtOpen(t *testing.T) {
	ok := sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"}
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
			{"a hostile table", sqlstore.ExistingTable{Machine: "m", Table: `plain"; DROP TABLE plain; --`, Columns: ok}, lifecycle.ErrInvalid},
			{"a table of a table", sqlstore.ExistingTable{Machine: "m", Table: "a.b.plain", Columns: ok}, lifecycle.ErrInvalid},
			{"a hostile column", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Reason = "x, y" })}, lifecycle.ErrInvalid},
			{"no table", sqlstore.ExistingTable{Machine: "m", Table: "plein", Columns: ok}, sqlstore.ErrSchema},
			{"no column", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Reason = "why" })}, sqlstore.ErrSchema},
			{"one column twice", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Reason = "State" })}, lifecycle.ErrInvalid},
			{"operations without revision", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Operation: "seq"}}, lifecycle.ErrInvalid},
			{"no sequence", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Sequence = "" })}, lifecycle.ErrInvalid},
			{"owner without epoch", sqlstore.ExistingTable{Machine: "m", Table: "plain", Columns: with(func(c *sqlstore.ColumnMap) { c.Owner = "state" })}, lifecycle.ErrInvalid},
			{"the machine of owners", sqlstore.ExistingTable{Machine: "interlock.owner", Table: "plain", Columns: ok}, lifecycle.ErrInvalid},
		} {
			t.Run(c.name, func(t *testing.T) {
				_, err := openTable(t, db, e, c.a)
				require.ErrorIs(t, err, c.want)
			})
		}
	})
}

// PostgreSQL has infinite times. They are read as none.
func TestExistingTableWithInfiniteTimes(t *testing.T) {
	e := engines()[1]
	db := pool(t, e.open(t))
	table := fourColumns(t, db, "timed", ", due timestamptz, changed timestamptz")
	table.Columns.Deadline, table.Columns.ChangedAt = "due", "changed"
	exec(t, db, "INSERT INTO timed VALUES ('a', 'open', 1, 1, 'infinity', '-infinity')")
	store := existing(t, db, e, table)
	now := get(t, store, orderA)
	require.Zero(t, now.Deadline)
	require.Zero(t, now.ChangedAt)
	list, err := store.List(t.Context(), lifecycle.Query{Machine: "order", Limit: 9})
	require.NoError(t, err)
	require.Equal(t, []lifecycle.StoredRecord{now}, list)
	list, err = store.List(t.Context(), lifecycle.Query{Machine: "order", Overdue: true, Limit: 9})
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoError(t, store.Commit(t.Context(), next(now, 0)))
}

// SQLite does not commit to several files at once: a table in another file is refused.
func TestExistingTableOfAttachedDatabase(t *testing.T) {
	e := onSQLite()
	db := pool(t, e.open(t))
	db.SetMaxOpenConns(1)
	exec(t, db, "ATTACH DATABASE ? AS other", "file:"+filepath.ToSlash(filepath.Join(t.TempDir(), "other.db")))
	const columns = " (id text PRIMARY KEY NOT NULL, state text NOT NULL, rev integer NOT NULL, seq integer NOT NULL)"
	exec(t, db, "CREATE TABLE other.there"+columns)
	exec(t, db, "CREATE TABLE main.here"+columns)
	a := sqlstore.ExistingTable{Machine: "order", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"}}
	for _, a.Table = range []string{"other.there", "main.here"} {
		_, err := openTable(t, db, e, a)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		require.ErrorContains(t, err, "table \""+a.Table+"\": SQLite commits to one file: name a table of the main database, without a schema")
		_, err = a.Schema(e.dialect)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
	}
	a.Table = "there"
	_, err := openTable(t, db, e, a)
	require.ErrorIs(t, err, sqlstore.ErrSchema)
	require.ErrorContains(t, err, "finds no table there")
	a.Table = "here"
	existing(t, db, e, a)
}

// Two rows of one key are refused if the table has no unique index. Behind a view, whose
// indexes are unknown, only one of them is written.
func TestExistingTableWithoutUniqueIndex(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE plain (id varchar(100) NOT NULL, state varchar(50) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL)")
		exec(t, db, "INSERT INTO plain (id, state, rev, seq) VALUES ('a', 'open', 1, 1), ('a', 'open', 1, 1)")
		exec(t, db, "CREATE VIEW viewed AS SELECT * FROM plain")
		a := sqlstore.ExistingTable{
			Machine: "order", Table: "plain", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
		}
		_, err := openTable(t, db, e, a)
		require.ErrorIs(t, err, sqlstore.ErrSchema)
		require.ErrorContains(t, err, "no unique index on (id)")
		if e.name == "sqlite" { // which writes through no view
			return
		}
		a.Table = "viewed"
		store := existing(t, db, e, a)
		err = store.Commit(t.Context(), next(get(t, store, orderA), 0))
		require.Error(t, err)
		require.NotErrorIs(t, err, lifecycle.ErrConflict)
		var n int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*) FROM plain WHERE rev = 1").Scan(&n))
		require.Equal(t, 2, n)
	})
}

// fourColumns makes a table for orders with the columns that every existing table has, and more.
func fourColumns(t testing.TB, db *sql.DB, table, more string) sqlstore.ExistingTable {
	t.Helper()
	exec(t, db, "CREATE TABLE "+table+" (id varchar(100) NOT NULL PRIMARY KEY, state varchar(50) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL"+more+")")
	return sqlstore.ExistingTable{Machine: "order", Table: table, Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"}}
}

// openTable opens a store in the library's own tables, which it makes, and in existing ones.
func openTable(t testing.TB, db *sql.DB, e engine, tables ...sqlstore.ExistingTable) (*sqlstore.Store, error) {
	t.Helper()
	require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	return sqlstore.Open(t.Context(), db, e.dialect, &sqlstore.Config{Tables: tables})
}

// existing is openTable for a store that is closed at the end of the test.
func existing(t testing.TB, db *sql.DB, e engine, tables ...sqlstore.ExistingTable) *sqlstore.Store {
	t.Helper()
	store, err := openTable(t, db, e, tables...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}
