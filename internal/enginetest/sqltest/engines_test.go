package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
	"github.com/interlock-go/interlock/lifecycle/storetest"
)

// engine is one that tests run on.
type engine struct {
	name    string
	dialect sqlstore.Dialect
	// open returns an empty database of its own, with a way to more pools of it.
	open func(t testing.TB) (pool func() *sql.DB)
}

func engines() []engine {
	return []engine{
		{"sqlite", sqlstore.SQLite, openSQLite},
		{"postgres", sqlstore.Postgres, openPostgres},
		{"mysql", sqlstore.MySQL, openMySQL},
	}
}

// onEach runs a test on every engine that there is.
func onEach(t *testing.T, run func(t *testing.T, e engine)) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) { run(t, e) })
	}
}

// missing skips a test, or fails it where every engine is to be there.
func missing(t testing.TB, variable string) string {
	t.Helper()
	dsn := os.Getenv(variable)
	if dsn == "" {
		if os.Getenv("REQUIRE_ENGINES") == "1" {
			t.Fatalf("%s names no server, and REQUIRE_ENGINES=1 demands one", variable)
		}
		t.Skipf("skipped: %s names no server", variable)
	}
	return dsn
}

func openSQLite(t testing.TB) func() *sql.DB {
	file := filepath.Join(t.TempDir(), "store.db")
	return func() *sql.DB {
		return pool(t, "sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)")
	}
}

var databases atomic.Int64

// database is a name that no other test uses.
func database() string {
	return fmt.Sprintf("interlock_test_%d_%d_%d", os.Getpid(), time.Now().UnixNano(), databases.Add(1))
}

func openPostgres(t testing.TB) func() *sql.DB {
	dsn := missing(t, "INTERLOCK_POSTGRES_DSN")
	name := database()
	around(t, "pgx", dsn, name)
	require.True(t, strings.Contains(dsn, "://"), "the DSN of PostgreSQL is to be a URL")
	return func() *sql.DB { return pool(t, "pgx", postgresDatabase(dsn, name)) }
}

// postgresDatabase puts a database into a URL.
func postgresDatabase(dsn, name string) string {
	scheme, rest, _ := strings.Cut(dsn, "://")
	rest, query, _ := strings.Cut(rest, "?")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host + "/" + name + "?" + query
}

func openMySQL(t testing.TB) func() *sql.DB {
	config, err := mysql.ParseDSN(missing(t, "INTERLOCK_MYSQL_DSN"))
	require.NoError(t, err)
	config.DBName = ""
	name := database()
	around(t, "mysql", config.FormatDSN(), name)
	config.DBName = name
	return func() *sql.DB { return pool(t, "mysql", config.FormatDSN()) }
}

// around makes a database for the time of a test.
func around(t testing.TB, driver, dsn, name string) {
	t.Helper()
	admin, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	_, err = admin.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	drop := "DROP DATABASE " + name
	if driver == "pgx" {
		drop += " WITH (FORCE)"
	}
	t.Cleanup(func() {
		_, err := admin.ExecContext(context.Background(), drop)
		require.NoError(t, err)
		require.NoError(t, admin.Close())
	})
}

// pool opens a database until the test ends.
func pool(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// stores remembers the database of each store of a harness.
type stores struct {
	e      engine
	config *sqlstore.Config
	dbs    map[lifecycle.Store]*sql.DB
}

func (s *stores) new(t testing.TB) lifecycle.Store {
	db := s.e.open(t)()
	require.NoError(t, sqlstore.Migrate(t.Context(), db, s.e.dialect, s.config))
	return s.over(t, db)
}

func (s *stores) over(t testing.TB, db *sql.DB) lifecycle.Store {
	store, err := sqlstore.Open(t.Context(), db, s.e.dialect, s.config)
	require.NoError(t, err)
	s.dbs[store] = db
	return store
}

// age moves all that is stored into the past.
func (s *stores) age(t testing.TB, store lifecycle.Store, d time.Duration) {
	t.Helper()
	for _, text := range []string{
		"UPDATE interlock_objects SET changed_at = changed_at - %d", "UPDATE interlock_objects SET deadline = deadline - %d",
	} {
		_, err := s.dbs[store].ExecContext(t.Context(), fmt.Sprintf(text, d.Microseconds()))
		require.NoError(t, err)
	}
	if store.Capabilities().History {
		_, err := s.dbs[store].ExecContext(t.Context(), fmt.Sprintf("UPDATE interlock_history SET at = at - %d", d.Microseconds()))
		require.NoError(t, err)
	}
}

func (s *stores) harness() storetest.Harness {
	return storetest.Harness{
		New: s.new, Age: s.age, Attempts: 20, Sequences: 20,
		Reopen: func(t testing.TB, store lifecycle.Store) lifecycle.Store { return s.over(t, s.dbs[store]) },
	}
}

func newStores(e engine, config *sqlstore.Config) *stores {
	return &stores{e: e, config: config, dbs: map[lifecycle.Store]*sql.DB{}}
}
