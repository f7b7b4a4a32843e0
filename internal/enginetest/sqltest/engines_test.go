package sqltest

import (
	"database/sql"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/internal/enginetest/proxy"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// engine is one that tests run on.
type engine struct {
	name    string
	dialect sqlstore.Dialect
	// open returns the way to an empty database of the test's own.
	open func(t testing.TB) way
}

// way is a driver and a DSN.
type way struct{ driver, dsn string }

// networked reports whether the engine is not in this process.
func (e engine) networked() bool { return e.name != "sqlite" }

func engines() []engine {
	return []engine{
		onSQLite(),
		{"postgres", sqlstore.Postgres, func(t testing.TB) way { return way{"pgx", servers.Postgres(t)} }},
		{"mysql", sqlstore.MySQL, func(t testing.TB) way { return way{"mysql", servers.MySQL(t)} }},
	}
}

func onSQLite() engine { return engine{"sqlite", sqlstore.SQLite, openSQLite} }

// openSQLite does not set _txlock: the store takes the write lock itself.
func openSQLite(t testing.TB) way {
	return way{"sqlite", servers.SQLiteFast(t)}.with(t, "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
}

// onEach runs a test on every engine, at the same time.
func onEach(t *testing.T, run func(t *testing.T, e engine)) {
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			run(t, e)
		})
	}
}

// unhurried returns the engine with commits that do not wait for the disk, if a setting of
// the connection allows that.
func unhurried(e engine) engine {
	if e.name != "postgres" {
		return e
	}
	inner := e.open
	e.open = func(t testing.TB) way { return inner(t).with(t, "synchronous_commit=off") }
	return e
}

// durable returns the engine on a durable server of the test's own: nil for SQLite, which has
// none.
func durable(t testing.TB, e engine) (engine, *private.Server) {
	t.Helper()
	var server *private.Server
	switch e.name {
	case "postgres":
		server = servers.PrivatePostgres(t, nil)
		e.open = func(testing.TB) way { return way{"pgx", server.DSN()} }
	case "mysql":
		server = servers.PrivateMariaDB(t, nil)
		e.open = func(testing.TB) way { return way{"mysql", server.DSN()} }
	default:
		e.open = func(t testing.TB) way { return way{"sqlite", servers.SQLite(t)} }
	}
	return e, server
}

// through returns the way to the same database through a proxy.
func (w way) through(t testing.TB) (way, *proxy.Proxy) {
	t.Helper()
	switch w.driver {
	case "pgx":
		config, err := pgx.ParseConfig(w.dsn)
		require.NoError(t, err)
		network, address := pgconn.NetworkAddress(config.Host, config.Port)
		p := proxy.New(t, network, address)
		host, port, _ := strings.Cut(p.Addr(), ":")
		return w.with(t, "host="+host+"&port="+port), p
	case "mysql":
		config, err := mysql.ParseDSN(w.dsn)
		require.NoError(t, err)
		p := proxy.New(t, config.Net, config.Addr)
		config.Net, config.Addr = "tcp", p.Addr()
		return way{w.driver, config.FormatDSN()}, p
	}
	t.Fatal("the engine is in this process")
	return w, nil
}

// with returns the way with settings of the connection, as in the query of a URL. They
// replace the settings of SQLite and are added to those of other engines.
func (w way) with(t testing.TB, query string) way {
	t.Helper()
	if w.driver == "pgx" {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		query = strings.ReplaceAll(values.Encode(), "+", "%20")
	}
	before, there, _ := strings.Cut(w.dsn, "?")
	if w.driver != "sqlite" && there != "" {
		query = there + "&" + query
	}
	return way{w.driver, before + "?" + query}
}

// file returns the file of a SQLite database.
func (w way) file(t testing.TB) string {
	t.Helper()
	name, _, _ := strings.Cut(strings.TrimPrefix(w.dsn, "file:"), "?")
	path, err := url.PathUnescape(name)
	require.NoError(t, err)
	return filepath.FromSlash(path)
}

// pool opens a pool of connections until the test ends.
func pool(t testing.TB, w way) *sql.DB {
	t.Helper()
	db, err := sql.Open(w.driver, w.dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

const connections = 16
