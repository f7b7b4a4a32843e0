package sqltest

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// The tables that Schema describes fit.
func TestExistingTableSchema(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := users(t, db, e, "unused_")
		table.Machine, table.Table, table.ExistingHistory.Table = "order", "orders", "orders_log"
		text, err := table.Schema(e.dialect)
		require.NoError(t, err)
		_, err = openTable(t, db, e, table)
		fault := requireTableError(t, err)
		require.Equal(t, []string{"the user of the connection finds no table orders"}, fault.Faults)
		require.True(t, strings.HasPrefix(text, fault.Fix), text)
		execAll(t, db, text)
		store := existing(t, db, e, table)
		m := manage(store)
		create(t, m, "a")
		paying := fire(t, m, "a", pay, customer)
		got, err := m.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, paying, got)
		_, err = sqlstore.ExistingTable{}.Schema(e.dialect)
		require.ErrorIs(t, err, lifecycle.ErrInvalid)
		_, err = table.Schema(sqlstore.Dialect{})
		require.ErrorIs(t, err, sqlstore.ErrSchema)
	})
}

// execAll executes statements that end with a semicolon and a new line.
func execAll(t testing.TB, db *sql.DB, text string) {
	t.Helper()
	for st := range strings.SplitSeq(text, ";\n") {
		if st != "" {
			exec(t, db, st)
		}
	}
}

func requireTableError(t testing.TB, err error) *sqlstore.TableError {
	t.Helper()
	require.ErrorIs(t, err, sqlstore.ErrSchema)
	var fault *sqlstore.TableError
	require.ErrorAs(t, err, &fault)
	return fault
}

// Open names every column that does not fit, and why. The statements in the error make the
// table fit, where the engine can change columns.
func TestExistingTableFix(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		_, moment := types(e)
		number := map[string]string{"sqlite": "TEXT", "mysql": "int(11)", "postgres": "integer"}[e.name]
		body := map[string]string{"sqlite": "blob", "mysql": "longtext", "postgres": "text"}[e.name]
		exec(t, db, "CREATE TABLE bad (id varchar(100) NOT NULL, state varchar(50) NOT NULL, rev bigint, op "+number+
			", region varchar(9) NOT NULL, zone varchar(9) NOT NULL DEFAULT 'z', due "+moment+" NOT NULL, body "+body+")")
		table := sqlstore.ExistingTable{Machine: "order", Table: "bad", Columns: sqlstore.ColumnMap{
			ID: "id", State: "state", Origin: "was", Revision: "rev", Sequence: "seq", Operation: "op", Deadline: "due", Payload: "body",
		}}
		_, err := openTable(t, db, e, table)
		fault := requireTableError(t, err)
		require.Equal(t, "bad", fault.Table)
		bigint := map[string]string{"sqlite": "INTEGER"}[e.name]
		if bigint == "" {
			bigint = "bigint"
		}
		want := []string{
			"table bad lacks was",
			"column rev of table bad may be NULL, which equals no value that a commit expects",
			"table bad lacks seq",
			"column op of table bad is " + number + ", not " + bigint,
			"column due of table bad is NOT NULL, and the store writes NULL where a record has no value",
			"column body of table bad is " + body + ", not " + map[string]string{"mysql": "longblob", "postgres": "bytea"}[e.name],
			"column region of table bad is NOT NULL without a default, and the store writes no value into it: name it in Fields, give it a default, or allow NULL",
			"table bad has no unique index on (id)",
		}
		if e.name == "sqlite" { // it keeps bytes in every column
			want = append(want[:5], want[6:]...)
		}
		require.Equal(t, want, fault.Faults)
		require.ErrorContains(t, err, strings.Join(want, "; "))
		require.ErrorContains(t, err, "this corrects what a statement can: ALTER TABLE ")
		execAll(t, db, fault.Fix)
		_, err = openTable(t, db, e, table)
		if e.name == "sqlite" {
			require.ErrorContains(t, err, "SQLite cannot change a column: name a new column")
			require.Len(t, requireTableError(t, err).Faults, 4)
			require.Empty(t, requireTableError(t, err).Fix)
			return
		}
		require.Equal(t, []string{want[6]}, requireTableError(t, err).Faults)
		require.Empty(t, requireTableError(t, err).Fix)
		exec(t, db, "ALTER TABLE bad ALTER COLUMN region SET DEFAULT 'eu'")
		create(t, manage(existing(t, db, e, table)), "a")
	})
}

// The engine takes the statements for a table whose key has several columns. A generated column
// is the id, unless the engine refuses every INSERT that names one.
func TestFixOfAKeyOfSeveralColumns(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE bad (region varchar(9) NOT NULL, n integer NOT NULL, state varchar(9) NOT NULL, PRIMARY KEY (region, n))")
		exec(t, db, "ALTER TABLE bad ADD COLUMN name varchar(20) GENERATED ALWAYS AS ("+
			map[string]string{"sqlite": "region || n) VIRTUAL", "mysql": "CONCAT(region, n)) STORED", "postgres": "region || n) STORED"}[e.name])
		exec(t, db, "INSERT INTO bad (region, n, state) VALUES ('eu', 1, 'open')")
		table := sqlstore.ExistingTable{
			Machine: "order", Table: "bad",
			Columns: sqlstore.ColumnMap{ID: "name", State: "state", Revision: "rev", Sequence: "seq", Operation: "op", Origin: "was", Deadline: "due"},
		}
		_, err := openTable(t, db, e, table)
		fault := requireTableError(t, err)
		require.NotContains(t, fault.Faults, "table bad lacks name")
		execAll(t, db, fault.Fix)
		_, err = openTable(t, db, e, table)
		require.Len(t, requireTableError(t, err).Faults, 2)
		table.Fields, table.Types = map[string]string{"region": "region", "n": "n"}, map[string]sqlstore.Type{"n": sqlstore.Integer}
		store, err := openTable(t, db, e, table)
		if e.name == "sqlite" {
			require.ErrorContains(t, err, "cannot INSERT into generated column")
			return
		}
		require.NoError(t, err)
		defer store.Close()
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, lifecycle.Key{Machine: "order", ID: "eu1"}), 0)))
	})
}

// On PostgreSQL, two names of columns that differ in case are two columns.
func TestExistingTableNamesInCase(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		state := map[string]string{"postgres": `"State"`}[e.name]
		if state == "" {
			state = "State"
		}
		exec(t, db, "CREATE TABLE orders (id varchar(9) NOT NULL PRIMARY KEY, "+state+" varchar(9) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL)")
		table := sqlstore.ExistingTable{Machine: "order", Table: "orders", Columns: sqlstore.ColumnMap{ID: "id", State: "State", Revision: "rev", Sequence: "seq"}}
		store := existing(t, db, e, table)
		require.NoError(t, store.Commit(t.Context(), next(get(t, store, orderA), 0)))
		table.Columns.State = "state"
		other, err := openTable(t, db, e, table)
		if e.name == "postgres" {
			require.Contains(t, requireTableError(t, err).Faults, "table orders lacks state")
			return
		}
		require.NoError(t, err)
		defer other.Close()
		require.Equal(t, "open", get(t, other, orderA).State)
	})
}

// Open refuses a column in which a value of its type would be another one, or would be
// refused by the engine at every commit. SQLite keeps such values.
func TestExistingTableWrongTypes(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		blob, _ := types(e)
		exec(t, db, "CREATE TABLE bad (id bigint PRIMARY KEY, state bigint NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL,"+
			" cpus varchar(9), spot "+blob+", spec "+blob+")")
		_, err := openTable(t, db, e, sqlstore.ExistingTable{
			Machine: "vm", Table: "bad",
			Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq", Payload: "spec"},
			Fields:  map[string]string{"cpus": "cpus", "spot": "spot"},
			Types: map[string]sqlstore.Type{
				"id": sqlstore.UUID, "state": sqlstore.Enum("vm_state", "open"), "spec": sqlstore.JSON,
				"cpus": sqlstore.Integer, "spot": sqlstore.Bool,
			},
		})
		if e.name == "sqlite" {
			require.NoError(t, err)
			return
		}
		fault := requireTableError(t, err)
		require.Empty(t, fault.Fix)
		require.Len(t, fault.Faults, 5, "%v", fault.Faults)
		for i, column := range []string{"id", "state", "spec", "cpus", "spot"} {
			require.Contains(t, fault.Faults[i], "column "+column+" of table bad is ")
			require.Contains(t, fault.Faults[i], "or its type in Types")
		}
	})
}

// A column that rounds times would change them.
func TestFitRoundedTimes(t *testing.T) {
	e := engines()[1]
	db := pool(t, e.open(t))
	a := fourColumns(t, db, "timed", ", due timestamptz(3), changed timestamptz(6)")
	a.Columns.Deadline, a.Columns.ChangedAt = "due", "changed"
	_, err := openTable(t, db, e, a)
	fault := requireTableError(t, err)
	require.Equal(t, []string{"column due of table timed is timestamp(3) with time zone, not timestamp with time zone"}, fault.Faults)
	exec(t, db, fault.Fix)
	existing(t, db, e, a)
}

// A state may not be NULL, and no statement can know the states of the rows that have none.
func TestFixOfStatesThatAreNull(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE bad (id varchar(100) NOT NULL PRIMARY KEY, state varchar(50), rev bigint NOT NULL, seq bigint NOT NULL)")
		exec(t, db, "INSERT INTO bad (id, rev, seq) VALUES ('a', 0, 0)")
		table := sqlstore.ExistingTable{Machine: "order", Table: "bad", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"}}
		_, err := openTable(t, db, e, table)
		fault := requireTableError(t, err)
		require.Equal(t, []string{
			"column state of table bad may be NULL, which equals no value that a commit expects: write a state into all rows first",
		}, fault.Faults)
		if fault.Fix == "" { // SQLite cannot change a column
			require.Equal(t, "sqlite", e.name)
			return
		}
		exec(t, db, "UPDATE bad SET state = 'open'")
		execAll(t, db, fault.Fix)
		require.Equal(t, "open", get(t, existing(t, db, e, table), orderA).State)
	})
}

// Open refuses a column that must not be NULL, where the store writes NULL for an empty name of a
// type: for no target, and for the state before a creation.
func TestTypedNamesThatMayNotBeNull(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		blob, moment := types(e)
		if e.name == "mysql" {
			blob = "binary(16)"
		}
		exec(t, db, "CREATE TABLE things (id varchar(20) NOT NULL PRIMARY KEY, state smallint NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL, goal smallint NOT NULL)")
		exec(t, db, "CREATE TABLE things_log (id varchar(20) NOT NULL, n bigint NOT NULL, rev bigint NOT NULL, token "+blob+" NOT NULL,"+
			" old smallint NOT NULL, new smallint NOT NULL, at "+moment+" NOT NULL, PRIMARY KEY (id, n))")
		codes := sqlstore.Codes(map[string]int64{"none": 0, "open": 1})
		table := sqlstore.ExistingTable{
			Machine: "lamp", Table: "things",
			Columns:         sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq", Target: "goal"},
			ExistingHistory: sqlstore.ExistingHistory{Table: "things_log", ID: "id", Sequence: "n", Revision: "rev", Token: "token", From: "old", To: "new", At: "at"},
			Types:           map[string]sqlstore.Type{"state": codes, "goal": codes, "old": codes, "new": codes},
		}
		const fault = "column %s of table %s is NOT NULL, and the store writes NULL where a record has no value"
		_, err := openTable(t, db, e, table)
		require.Equal(t, []string{fmt.Sprintf(fault, "goal", "things")}, requireTableError(t, err).Faults)
		table.Columns.Target = ""
		exec(t, db, map[bool]string{true: "ALTER TABLE things DROP COLUMN goal", false: requireTableError(t, err).Fix}[e.name == "sqlite"])
		delete(table.Types, "goal")
		_, err = openTable(t, db, e, table)
		require.Equal(t, []string{fmt.Sprintf(fault, "old", "things_log")}, requireTableError(t, err).Faults)
		if e.name == "sqlite" { // it cannot change a column
			return
		}
		execAll(t, db, requireTableError(t, err).Fix)
		m := lifecycle.Must(lamps, existing(t, db, e, table), nil)
		_, err = m.Create(t.Context(), "a", place, customer, struct{}{}, nil)
		require.NoError(t, err)
		fire(t, m, "a", drop, customer)
	})
}
