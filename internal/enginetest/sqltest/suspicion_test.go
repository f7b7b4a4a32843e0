package sqltest

import (
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// In a transaction of the user, a precondition of absence holds at every isolation.
func TestExistingTableAbsenceWithTx(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		store := existing(t, db, e, users(t, db, e, ""))
		try := func(level sql.IsolationLevel) error {
			tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			require.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			c := next(lifecycle.StoredRecord{Key: lifecycle.Key{Machine: kind, ID: "a"}, Revision: "0"}, 0)
			c.Require = []lifecycle.Precondition{{Key: lifecycle.Key{Machine: kind, ID: "b"}, States: []string{""}}}
			return store.WithTx(tx).Commit(t.Context(), c)
		}
		require.NoError(t, try(0))
		if e.networked() {
			require.NoError(t, try(sql.LevelRepeatableRead))
			require.NoError(t, try(sql.LevelSerializable))
		}
	})
}

// failsAtOnce returns the error of a call, which would take ten seconds if the store tried
// the commit again. A machine that stalls may take as long, but not three times.
func failsAtOnce(t *testing.T, call func() error) (err error) {
	t.Helper()
	for range 3 {
		began := time.Now()
		err = call()
		require.Error(t, err)
		if time.Since(began) < 9*time.Second {
			return err
		}
	}
	t.Fatalf("the store has tried it for ten seconds: %v", err)
	return nil
}

// A violation of another unique index of the user is a failed precondition at once.
func TestExistingTableOtherUniqueIndex(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		a := users(t, db, e, "")
		exec(t, db, "CREATE UNIQUE INDEX lonely ON things (price)")
		store := existing(t, db, e, a)
		make := func(id string) error {
			return store.Commit(t.Context(), next(lifecycle.StoredRecord{Key: lifecycle.Key{Machine: kind, ID: id}, Revision: "0"}, 0))
		}
		require.NoError(t, make("a"))
		err := failsAtOnce(t, func() error { return make("b") }) // of the same price
		require.ErrorIs(t, err, lifecycle.ErrPrecondition)
		require.NotErrorIs(t, err, lifecycle.ErrConflict)
		require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome)
		require.Regexp(t, "price|lonely", err.Error())
		require.False(t, func() bool { r := get(t, store, lifecycle.Key{Machine: kind, ID: "b"}); return r.Exists() }())
	})
}

// Values that the user's table refuses are a bad request: by a check, a missing value, a small
// column and the type of a column. A foreign key is a failed precondition, because the same
// values fit later. The record stays as it was.
func TestExistingTableRefusesValues(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		exec(t, db, "CREATE TABLE zones (zone varchar(5) NOT NULL PRIMARY KEY)")
		exec(t, db, "INSERT INTO zones VALUES ('north')")
		size := "varchar(5) CHECK (size IN ('small', 'large'))"
		if e.name == "mysql" {
			size = "enum('small', 'large')"
		}
		table := fourColumns(t, db, "servers", `, cpus integer CHECK (cpus < 100), born date, size `+size+`,
			zone varchar(5) NOT NULL CHECK (length(zone) < 6), FOREIGN KEY (zone) REFERENCES zones (zone)`)
		table.Fields = map[string]string{"cpus": "cpus", "born": "born", "size": "size", "zone": "zone"}
		table.Types = map[string]sqlstore.Type{"cpus": sqlstore.Integer}
		if e.name == "sqlite" {
			db.SetMaxOpenConns(1) // the setting is that of a connection
			exec(t, db, "PRAGMA foreign_keys = on")
		}
		store := existing(t, db, e, table)
		with := func(r lifecycle.StoredRecord, payload string) *lifecycle.Commit {
			r.Payload = []byte(payload)
			return next(r, 0)
		}
		require.NoError(t, store.Commit(t.Context(), with(get(t, store, orderA), `{"cpus": 1, "zone": "north"}`)))
		before := get(t, store, orderA)
		refused := func(payload string, reason error) {
			t.Helper()
			err := failsAtOnce(t, func() error { return store.Commit(t.Context(), with(before, payload)) })
			require.ErrorIs(t, err, reason, payload)
			require.Equal(t, before, get(t, store, orderA))
		}
		for _, payload := range []string{
			`{"cpus": 100, "zone": "north"}`, `{"cpus": 1}`, `{"cpus": 1, "zone": "northern"}`, `{"size": "other", "zone": "north"}`,
		} {
			refused(payload, lifecycle.ErrInvalid)
		}
		if e.networked() { // SQLite has no type for dates
			refused(`{"born": "early", "zone": "north"}`, lifecycle.ErrInvalid)
		}
		refused(`{"zone": "south"}`, lifecycle.ErrPrecondition)
		exec(t, db, "INSERT INTO zones VALUES ('south')")
		require.NoError(t, store.Commit(t.Context(), with(before, `{"zone": "south"}`)))
	})
}

// An AUTO_INCREMENT number of the user's row is not taken for the time.
func TestExistingTableOfNumberedRows(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		number := map[string]string{
			"sqlite": "number integer PRIMARY KEY AUTOINCREMENT", "postgres": "number bigserial PRIMARY KEY", "mysql": "number bigint AUTO_INCREMENT PRIMARY KEY",
		}[e.name]
		_, moment := types(e)
		exec(t, db, "CREATE TABLE numbered ("+number+", id varchar(100) NOT NULL UNIQUE, state varchar(50) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL, touched "+moment+")")
		store := existing(t, db, e, sqlstore.ExistingTable{
			Machine: "order", Table: "numbered", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq", ChangedAt: "touched"},
		})
		c := next(lifecycle.StoredRecord{Key: orderA, Revision: "0"}, 0)
		require.NoError(t, store.Commit(t.Context(), c))
		require.WithinDuration(t, time.Now(), c.Changes[0].To.ChangedAt, time.Minute)
		require.Equal(t, get(t, store, c.Changes[0].To.Key).ChangedAt, c.Changes[0].To.ChangedAt)
	})
}

// Names that a user's collation does not distinguish are different names. If the unique
// index permits only one of them, the other is refused.
func TestExistingTableCollations(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		id := map[string]string{
			"sqlite": "varchar(100) COLLATE NOCASE", "mysql": "varchar(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
			"postgres": `varchar(100) COLLATE "any_case"`,
		}[e.name]
		if e.name == "postgres" {
			exec(t, db, "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
		}
		exec(t, db, "CREATE TABLE named (id "+id+" NOT NULL PRIMARY KEY, state varchar(50) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL)")
		store := existing(t, db, e, sqlstore.ExistingTable{
			Machine: "order", Table: "named", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
		})
		a := next(lifecycle.StoredRecord{Key: orderA, Revision: "0"}, 0)
		require.NoError(t, store.Commit(t.Context(), a))
		capital := lifecycle.Key{Machine: "order", ID: "A"}
		never := get(t, store, capital)
		require.False(t, never.Exists())
		_ = failsAtOnce(t, func() error { return store.Commit(t.Context(), next(never, 0)) })
		require.Equal(t, a.Changes[0].To.Revision, get(t, store, a.Changes[0].To.Key).Revision)
		list, err := store.List(t.Context(), lifecycle.Query{Machine: "order", States: []string{"OPEN"}, Limit: 9})
		require.NoError(t, err)
		require.Empty(t, list)
	})
}

// An id that the character set of the column lacks is a bad request.
func TestExistingTableOfFewCharacters(t *testing.T) {
	e := engines()[2]
	db := pool(t, e.open(t))
	exec(t, db, "CREATE TABLE western (id varchar(100) NOT NULL PRIMARY KEY, state varchar(50) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL) CHARACTER SET latin1")
	store := existing(t, db, e, sqlstore.ExistingTable{
		Machine: "order", Table: "western", Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq"},
	})
	require.NoError(t, store.Commit(t.Context(), next(get(t, store, lifecycle.Key{Machine: "order", ID: "ä"}), 0)))
	east := lifecycle.Key{Machine: "order", ID: "я"}
	_, err := store.Get(t.Context(), east)
	require.ErrorIs(t, err, lifecycle.ErrInvalid)
	require.ErrorIs(t, store.Commit(t.Context(), next(lifecycle.StoredRecord{Key: east, Revision: "0"}, 0)), lifecycle.ErrInvalid)
}

// Tables and connections that would change what they are given are refused.
func TestExistingTableRefusesWhatChangesNames(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		w := e.open(t)
		db := pool(t, w)
		_, moment := types(e)
		open := func(db *sql.DB, table string) error {
			store, err := openTable(t, db, e, sqlstore.ExistingTable{
				Machine: "order", Table: table, Columns: sqlstore.ColumnMap{ID: "id", State: "state", Revision: "rev", Sequence: "seq", ChangedAt: "touched"},
			})
			if err == nil {
				require.NoError(t, store.Close())
			}
			return err
		}
		table := func(name, id, touched, more string) {
			exec(t, db, "CREATE TABLE "+name+" (id "+id+" NOT NULL PRIMARY KEY, state varchar(50) NOT NULL, rev bigint NOT NULL, seq bigint NOT NULL, touched "+touched+")"+more)
		}
		table("fine", "varchar(100)", moment, "")
		require.NoError(t, open(db, "fine"))
		switch e.name {
		case "sqlite":
			table("strings", "STRING", moment, "")
			err := open(db, "strings")
			require.ErrorIs(t, err, sqlstore.ErrSchema)
			require.ErrorContains(t, err, "column id of table strings is STRING")
		case "postgres":
			table("zoneless", "text", "timestamp", "")
			err := open(db, "zoneless")
			require.ErrorIs(t, err, sqlstore.ErrSchema)
			require.ErrorContains(t, err, "column touched of table zoneless is timestamp without time zone")
		case "mysql":
			table("seconds", "varchar(100)", "datetime", "")
			require.ErrorIs(t, open(db, "seconds"), sqlstore.ErrSchema)
			table("loose", "varchar(100)", moment, " ENGINE=MyISAM")
			require.ErrorContains(t, open(db, "loose"), "has no transactions")
			require.ErrorIs(t, open(pool(t, w.with(t, "sql_mode=%27%27")), "fine"), lifecycle.ErrInvalid)
			require.ErrorIs(t, open(pool(t, w.with(t, "charset=latin1")), "fine"), lifecycle.ErrInvalid)
		}
	})
}

// A read-only engine, such as a replica, returns an error that is not an unknown outcome.
func TestReadOnly(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		w := e.open(t)
		store, db := (*sqlstore.Store)(nil), pool(t, w)
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		query := map[string]string{
			"sqlite": "_pragma=query_only(1)", "postgres": "default_transaction_read_only=on", "mysql": "tx_read_only=1",
		}[e.name]
		store, err := sqlstore.Open(t.Context(), pool(t, w.with(t, query)), e.dialect, nil)
		if e.name == "mysql" && err != nil { // it prepares no writes, or calls the variable otherwise
			require.Regexp(t, "READ ONLY|1193", err.Error())
			return
		}
		require.NoError(t, err)
		defer store.Close()
		c := next(get(t, store, orderA), 1)
		err = store.Commit(t.Context(), c)
		require.Error(t, err)
		require.NotErrorIs(t, err, lifecycle.ErrUnknownOutcome)
		require.NotErrorIs(t, err, lifecycle.ErrConflict)
		require.Equal(t, lifecycle.StoredRecord{Key: orderA, Revision: "0"}, get(t, store, orderA))
	})
}
