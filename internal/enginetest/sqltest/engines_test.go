package sqltest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
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
	// open returns a way to pools of an empty database of its own.
	open func(t testing.TB) way
	// address is where the server listens; nil for an engine without a network.
	address func(t testing.TB) string
}

// way leads to a database: the driver, and the DSN by an address, or by the
// server's own if that is empty.
type way struct {
	driver string
	dsn    func(address string) string
}

func engines() []engine {
	return []engine{
		{"sqlite", sqlstore.SQLite, openSQLite, nil},
		{"postgres", sqlstore.Postgres, openPostgres, postgresAddress},
		{"mysql", sqlstore.MySQL, openMySQL, mysqlAddress},
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

func openSQLite(t testing.TB) way {
	file := filepath.Join(t.TempDir(), "store.db")
	return way{"sqlite", func(string) string {
		return "file:" + file + "?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=busy_timeout(5000)"
	}}
}

var databases atomic.Int64

// database is a name that no other test uses.
func database() string {
	return fmt.Sprintf("interlock_test_%d_%d_%d", os.Getpid(), time.Now().UnixNano(), databases.Add(1))
}

const (
	postgresDSN = "INTERLOCK_POSTGRES_DSN" // a URL
	mysqlDSN    = "INTERLOCK_MYSQL_DSN"    // as go-sql-driver has it
)

func openPostgres(t testing.TB) way {
	dsn, err := url.Parse(missing(t, postgresDSN))
	require.NoError(t, err)
	name := database()
	around(t, "pgx", dsn.String(), name)
	return way{"pgx", func(address string) string {
		here := *dsn
		here.Path, here.Host = "/"+name, cmp.Or(address, dsn.Host)
		return here.String()
	}}
}

func postgresAddress(t testing.TB) string {
	dsn, err := url.Parse(missing(t, postgresDSN))
	require.NoError(t, err)
	return dsn.Host
}

func openMySQL(t testing.TB) way {
	config, err := mysql.ParseDSN(missing(t, mysqlDSN))
	require.NoError(t, err)
	config.DBName = ""
	name := database()
	around(t, "mysql", config.FormatDSN(), name)
	config.DBName = name
	return way{"mysql", func(address string) string {
		here := config.Clone()
		here.Addr = cmp.Or(address, here.Addr)
		return here.FormatDSN()
	}}
}

func mysqlAddress(t testing.TB) string {
	config, err := mysql.ParseDSN(missing(t, mysqlDSN))
	require.NoError(t, err)
	if config.Net != "tcp" {
		t.Skip("skipped: the server is not reached by TCP")
	}
	return config.Addr
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

// pool opens a pool of connections until the test ends.
func pool(t testing.TB, w way) *sql.DB { return dial(t, w.driver, w.dsn("")) }

func dial(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// stores makes stores in one database, each in tables of its own prefix.
type stores struct {
	e      engine
	config sqlstore.Config
	pool   way

	made map[lifecycle.Store]made
}

type made struct {
	db     *sql.DB
	prefix string
}

func newStores(t testing.TB, e engine, config sqlstore.Config) *stores {
	return &stores{e: e, config: config, pool: e.open(t), made: map[lifecycle.Store]made{}}
}

func (s *stores) new(t testing.TB) lifecycle.Store { return s.by(t, "") }

// by makes a store whose connections go by an address.
func (s *stores) by(t testing.TB, address string) lifecycle.Store {
	m := made{dial(t, s.pool.driver, s.pool.dsn(address)), fmt.Sprintf("t%d_", databases.Add(1))}
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
	h := storetest.Harness{New: s.new, Age: s.age, Reopen: s.reopen, Attempts: 20, Sequences: 20, WrongClock: s.e.address != nil}
	if s.e.address != nil {
		h.Through = func(t testing.TB, p *storetest.Proxy) lifecycle.Store {
			p.To("tcp", s.e.address(t))
			return s.by(t, p.Addr())
		}
	}
	return h
}
