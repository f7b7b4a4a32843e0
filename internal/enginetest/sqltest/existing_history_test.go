package sqltest

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/scale"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// names returns the type of a column whose collation distinguishes all names that the
// library distinguishes.
func names(t testing.TB, db *sql.DB, e engine) string {
	switch {
	case e.name != "mysql":
		return "varchar(600)"
	case isMariaDB(t, db):
		return "varchar(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
	}
	return "varchar(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin"
}

// users creates the tables of a user, one for objects and one for their history, with a
// prefix.
func users(t testing.TB, db *sql.DB, e engine, prefix string) sqlstore.ExistingTable {
	t.Helper()
	blob, moment := types(e)
	token, long := blob, "text"
	if e.name == "mysql" {
		token, long = "binary(16)", "mediumtext CHARACTER SET utf8mb4"
	}
	name := names(t, db, e)
	exec(t, db, fmt.Sprintf(`CREATE TABLE %[1]sthings (
		no %[2]s NOT NULL PRIMARY KEY, price bigint NOT NULL DEFAULT 7,
		status %[2]s NOT NULL, was %[2]s, rev bigint NOT NULL, seq bigint NOT NULL, op bigint,
		who %[2]s, life bigint, task %[5]s, task_args %[3]s, task_options %[3]s, due %[4]s, touched %[4]s,
		goal %[5]s, doer %[5]s, cause %[5]s, why %[5]s, body %[3]s, body_before %[3]s, token %[3]s, admitted %[3]s, moved_by %[3]s, fence bigint, form %[5]s)`, prefix, name, blob, moment, long))
	exec(t, db, fmt.Sprintf(`CREATE TABLE %[1]slog (
		line bigint NOT NULL DEFAULT 7, kind varchar(20) NOT NULL, thing %[2]s NOT NULL, n bigint NOT NULL, rev bigint,
		token %[3]s NOT NULL, op bigint, old %[5]s, old_was %[5]s, new %[5]s, new_was %[5]s,
		cause %[5]s, doer %[5]s, why %[5]s, happened %[4]s, form %[5]s, UNIQUE (thing, kind, n))`, prefix, name, token, moment, long))
	return sqlstore.ExistingTable{
		Machine: kind, Table: prefix + "things",
		Columns: sqlstore.ColumnMap{
			ID: "no", State: "status", Origin: "was", Revision: "rev", Sequence: "seq", Operation: "op", Owner: "who", Epoch: "life",
			Work: "task", Args: "task_args", WorkOptions: "task_options", Deadline: "due", ChangedAt: "touched", Target: "goal",
			Actor: "doer", Event: "cause", Reason: "why", Payload: "body", Saved: "body_before", Token: "token", Admission: "admitted", ChangeToken: "moved_by", Fence: "fence", Version: "form",
		},
		ExistingHistory: sqlstore.ExistingHistory{
			Table: prefix + "log", Machine: "kind", ID: "thing", Sequence: "n", Revision: "rev", Token: "token", Operation: "op",
			From: "old", FromOrigin: "old_was", To: "new", Origin: "new_was", Event: "cause", Actor: "doer", Reason: "why", At: "happened", Version: "form",
		},
	}
}

// usersStores opens stores over a user's tables.
type usersStores struct {
	stores
	mixed bool // only objects of one machine of the suite are in the user's table
	bare  bool // no history of the user's, no columns for Admission, ChangeToken, Fence and Version
}

func (s *usersStores) new(t testing.TB) lifecycle.Store { return s.by(t, s.way) }

func (s *usersStores) by(t testing.TB, w way) lifecycle.Store {
	t.Helper()
	m := made{way: w, db: pool(t, w), prefix: fmt.Sprintf("u%d_", prefixes.Add(1))}
	require.NoError(t, sqlstore.Migrate(t.Context(), m.db, s.e.dialect, &sqlstore.Config{Prefix: m.prefix}))
	m.table = users(t, m.db, s.e, m.prefix)
	if s.mixed {
		m.table.Machine = plain
	}
	if s.bare {
		m.table.ExistingHistory, m.table.Columns.Admission, m.table.Columns.ChangeToken = sqlstore.ExistingHistory{}, "", ""
		m.table.Columns.Fence, m.table.Columns.Version = "", ""
	}
	return s.over(t, m)
}

func (s *usersStores) second(t testing.TB, store lifecycle.Store) lifecycle.Store {
	t.Helper()
	m := s.made[store]
	m.db = pool(t, m.way)
	return s.over(t, m)
}

// testConfig enables every demand that needs no server of the test's own.
func (s *usersStores) testConfig() *storetest.Config {
	config := testConfig(s.e, s.age, s.by, s.way)
	config.Second, config.Bare = s.second, s.bare
	return config
}

func (s *usersStores) over(t testing.TB, m made) lifecycle.Store {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), m.db, s.e.dialect, &sqlstore.Config{Prefix: m.prefix, Tables: []sqlstore.ExistingTable{m.table}})
	require.NoError(t, err)
	if s.mixed {
		s.made[store] = m
		return store
	}
	s.made[oneKind{store}] = m
	return oneKind{store}
}

func (s *usersStores) age(t testing.TB, store lifecycle.Store, d time.Duration) {
	t.Helper()
	m := s.made[store]
	back := map[string]string{
		"sqlite": "%[1]s - %[2]d", "postgres": "%[1]s - %[2]d * interval '1 microsecond'", "mysql": "TIMESTAMPADD(MICROSECOND, -%[2]d, %[1]s)",
	}[s.e.name]
	for _, c := range []struct{ table, column string }{{"things", "touched"}, {"things", "due"}, {"log", "happened"}} {
		exec(t, m.db, fmt.Sprintf("UPDATE "+m.prefix+c.table+" SET "+c.column+" = "+back, c.column, d.Microseconds()))
	}
	s.stores.age(t, store, d)
}

// A user's table with a user's history passes the conformance suite.
func TestExistingTableStore(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		if !scale.Full {
			e = unhurried(e)
		}
		s := usersStores{stores: *newStores(t, e, sqlstore.Config{})}
		storetest.Run(t, s.new, s.testConfig())
	})
}

// A history without some columns loses these fields only.
func TestSmallestExistingHistory(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		a := users(t, db, e, "")
		blob, _ := types(e)
		if e.name == "mysql" {
			blob = "binary(16)"
		}
		exec(t, db, "CREATE TABLE small (id varchar(100) NOT NULL, n bigint NOT NULL, rev bigint, token "+blob+" NOT NULL, state varchar(50) NOT NULL, at bigint NOT NULL, PRIMARY KEY (id, n))")
		a.Machine, a.Micros = "order", true
		a.ExistingHistory = sqlstore.ExistingHistory{Table: "small", ID: "id", Sequence: "n", Revision: "rev", Token: "token", To: "state", At: "at"}
		a.Columns.ChangedAt, a.Columns.Deadline, a.Columns.Operation = "", "", ""
		store := existing(t, db, e, a)
		c := next(get(t, store, orderA), 0)
		require.NoError(t, store.Commit(t.Context(), c))
		c2 := next(c.Changes[0].To, 0)
		require.NoError(t, store.Commit(t.Context(), c2))
		first := c.Changes[0].To
		require.NoError(t, store.Commit(t.Context(), c), "the history has it")
		require.Equal(t, first, c.Changes[0].To)
		rows, err := store.History(t.Context(), first.Key, 0, 9)
		require.NoError(t, err)
		require.Len(t, rows, 2)
		require.Equal(t, lifecycle.HistoryRow{
			Key: first.Key, Sequence: 1, Revision: first.Revision, Token: c.Token, To: "open", Origin: "open", At: first.ChangedAt,
		}, rows[0])
		require.WithinDuration(t, time.Now(), rows[0].At, time.Minute)
	})
}

// A history has rows from before the library. They stay, and the numbers begin at 1 beside them,
// also for an object that has no row of its own.
func TestExistingHistoryWithRows(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		table := fourColumns(t, db, "plain", ", op bigint")
		exec(t, db, "INSERT INTO plain (id, state, rev, seq) VALUES ('a', 'open', 0, 0)")
		_, moment := types(e)
		exec(t, db, "CREATE TABLE events (thing varchar(20) NOT NULL, what varchar(20), at "+moment+")")
		for _, id := range []string{"a", "a", "b", "b", "b"} {
			exec(t, db, "INSERT INTO events (thing, what) VALUES ('"+id+"', 'open')")
		}
		table.Columns.Operation = "op"
		table.ExistingHistory = sqlstore.ExistingHistory{Table: "events", ID: "thing", Sequence: "n", Revision: "rev", Token: "token", Operation: "op", To: "what", At: "at"}
		_, err := openTable(t, db, e, table)
		fault := requireTableError(t, err)
		require.Contains(t, fault.Faults, "table events lacks n: number the rows that each object has, 0 and -1 and so on from the newest")
		statements := strings.SplitAfter(fault.Fix, ";\n")
		execAll(t, db, strings.Join(statements[:len(statements)-2], ""))
		exec(t, db, "CREATE TABLE numbered AS SELECT thing, what, at, rev, op, token, 1 - row_number() OVER (PARTITION BY thing) AS n FROM events")
		exec(t, db, "DELETE FROM events")
		exec(t, db, "INSERT INTO events (thing, what, at, rev, op, token, n) SELECT thing, what, at, rev, op, token, n FROM numbered")
		execAll(t, db, statements[len(statements)-2])

		store := existing(t, db, e, table)
		for _, id := range []string{"a", "b"} {
			key := lifecycle.Key{Machine: "order", ID: id}
			require.Zero(t, get(t, store, key).Sequence)
			for range 12 {
				require.NoError(t, store.Commit(t.Context(), next(get(t, store, key), 0)))
			}
			rows, err := store.History(t.Context(), key, 0, 99)
			require.NoError(t, err)
			require.Len(t, rows, 12)
			require.EqualValues(t, 1, rows[0].Sequence)
		}
		_, err = store.Trim(t.Context(), time.Microsecond, 0)
		require.NoError(t, err)
		var n, least int
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT count(*), min(n) FROM events").Scan(&n, &least))
		require.Equal(t, [2]int{16, 5}, [2]int{n, least})
	})
}

func TestExistingHistoryIsRefusedAtOpen(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		db := pool(t, e.open(t))
		ok := users(t, db, e, "")
		blob, moment := types(e)
		token := map[string]string{"mysql": "binary(16)"}[e.name]
		if token == "" {
			token = blob
		}
		table := func(name, keys, at string) {
			exec(t, db, fmt.Sprintf("CREATE TABLE %s (kind varchar(20) NOT NULL, thing varchar(100) NOT NULL, n bigint NOT NULL, rev bigint, token %s NOT NULL, new varchar(50), happened %s%s)", name, token, at, keys))
		}
		table("keyless", "", moment)
		table("otherwise", ", UNIQUE (kind, thing), UNIQUE (thing, n)", moment)
		table("fine", ", PRIMARY KEY (n, thing, kind)", moment)
		exec(t, db, "CREATE VIEW viewed AS SELECT * FROM keyless")
		with := func(change func(*sqlstore.ExistingTable)) sqlstore.ExistingTable {
			a := ok
			a.Columns.Operation = ""
			a.ExistingHistory = sqlstore.ExistingHistory{Table: "fine", Machine: "kind", ID: "thing", Sequence: "n", Revision: "rev", Token: "token", To: "new", At: "happened"}
			change(&a)
			return a
		}
		for _, c := range []struct {
			name string
			a    sqlstore.ExistingTable
			want error
			text string
		}{
			{"nothing", with(func(*sqlstore.ExistingTable) {}), nil, ""},
			{"a view", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Table = "viewed" }), nil, ""},
			{"no table", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Table = "none" }), sqlstore.ErrSchema, "the user of the connection finds no table none"},
			{"a hostile table", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Table = "fine; DROP TABLE fine" }), lifecycle.ErrInvalid, ""},
			{"a hostile column", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Reason = `new" --` }), lifecycle.ErrInvalid, ""},
			{"a column that is not there", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Reason = "why" }), sqlstore.ErrSchema, "table fine lacks why"},
			{"a column twice", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.From = "NEW" }), lifecycle.ErrInvalid, "is named twice"},
			{"no token", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Token = "" }), lifecycle.ErrInvalid, "token"},
			{"the table of the objects", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Table = ok.Table }), lifecycle.ErrInvalid, "of its own"},
			{"no unique index", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Table = "keyless" }), sqlstore.ErrSchema, "table keyless has no unique index on (kind, n, thing)"},
			{"other unique indexes", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Table = "otherwise" }), sqlstore.ErrSchema, "no unique index"},
			{"an index on more", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Machine = "" }), sqlstore.ErrSchema, "no unique index on (n, thing)"},
			{"numbers that go on nowhere", with(func(a *sqlstore.ExistingTable) { a.ExistingHistory.Revision = "" }), lifecycle.ErrInvalid, "revision"},
			{"operations that go on nowhere", with(func(a *sqlstore.ExistingTable) { a.Columns.Operation = "op" }), lifecycle.ErrInvalid, "operations"},
			{"no sequence", with(func(a *sqlstore.ExistingTable) {
				a.Columns = sqlstore.ColumnMap{ID: "no", State: "status", Revision: "rev"}
			}), lifecycle.ErrInvalid, "Sequence"},
		} {
			if c.name == "a view" && e.name == "sqlite" {
				continue // it writes through none
			}
			t.Run(c.name, func(t *testing.T) {
				store, err := openTable(t, db, e, c.a)
				require.ErrorIs(t, err, c.want)
				if c.want == nil {
					require.NoError(t, store.Close())
					return
				}
				require.ErrorContains(t, err, c.text)
			})
		}
	})
}
