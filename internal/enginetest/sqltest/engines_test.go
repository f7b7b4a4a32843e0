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
		return dial(t, "sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)")
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
	return func() *sql.DB { return dial(t, "pgx", postgresDatabase(dsn, name)) }
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
	return func() *sql.DB { return dial(t, "mysql", config.FormatDSN()) }
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

func dial(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	return db
}

// pool opens a pool until the test ends.
func pool(t testing.TB, open func() *sql.DB) *sql.DB {
	db := open()
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// stores makes stores in one database, each in tables of its own prefix.
type stores struct {
	e      engine
	config sqlstore.Config
	pool   func() *sql.DB
	made   map[lifecycle.Store]made
}

type made struct {
	db     *sql.DB
	prefix string
}

func newStores(t testing.TB, e engine, config sqlstore.Config) *stores {
	return &stores{e: e, config: config, pool: e.open(t), made: map[lifecycle.Store]made{}}
}

func (s *stores) new(t testing.TB) lifecycle.Store {
	m := made{pool(t, s.pool), fmt.Sprintf("t%d_", databases.Add(1))}
	config := s.config
	config.Prefix = m.prefix
	require.NoError(t, sqlstore.Migrate(t.Context(), m.db, s.e.dialect, &config))
	return s.over(t, m)
}

func (s *stores) over(t testing.TB, m made) lifecycle.Store {
	config := s.config
	config.Prefix = m.prefix
	store, err := sqlstore.Open(t.Context(), m.db, s.e.dialect, &config)
	require.NoError(t, err)
	s.made[store] = m
	return store
}

// age moves all that is stored into the past.
func (s *stores) age(t testing.TB, store lifecycle.Store, d time.Duration) {
	t.Helper()
	m := s.made[store]
	texts := []string{
		"UPDATE %sobjects SET changed_at = changed_at - %d", "UPDATE %sobjects SET deadline = deadline - %d",
	}
	if store.Capabilities().History {
		texts = append(texts, "UPDATE %shistory SET at = at - %d")
	}
	for _, text := range texts {
		_, err := m.db.ExecContext(t.Context(), fmt.Sprintf(text, m.prefix, d.Microseconds()))
		require.NoError(t, err)
	}
}

// reopen opens a store anew, by other connections.
func (s *stores) reopen(t testing.TB, store lifecycle.Store) lifecycle.Store {
	return s.over(t, made{pool(t, s.pool), s.made[store].prefix})
}

func (s *stores) harness() storetest.Harness {
	return storetest.Harness{New: s.new, Age: s.age, Reopen: s.reopen, Attempts: 20, Sequences: 20}
}
