package servers_test

import (
	"database/sql"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
)

// databases are the engines behind a DSN.
var databases = []struct {
	name, driver string
	database     func(testing.TB) string
	current      string // query: the name of the database
}{
	{"SQLite", "sqlite", servers.SQLite, "SELECT file FROM pragma_database_list"},
	{"SQLite fast", "sqlite", servers.SQLiteFast, "SELECT file FROM pragma_database_list"},
	{"PostgreSQL", "pgx", servers.Postgres, "SELECT current_database()"},
	{"MySQL", "mysql", servers.MySQL, "SELECT database()"},
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// Databases are independent, and are dropped after their tests, also if a connection is
// still open.
func TestEveryTestHasItsOwn(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			outer := t
			var dsn string
			t.Run("use", func(t *testing.T) {
				dsn = d.database(t)
				require.NoError(t, open(outer, d.driver, dsn).Ping())
				one, two := open(t, d.driver, dsn), open(t, d.driver, d.database(t))
				var nameOne, nameTwo string
				require.NoError(t, one.QueryRow(d.current).Scan(&nameOne))
				require.NoError(t, two.QueryRow(d.current).Scan(&nameTwo))
				require.NotEqual(t, nameOne, nameTwo)
				for _, db := range []*sql.DB{one, two} {
					_, err := db.Exec("CREATE TABLE mine (id INT)")
					require.NoError(t, err)
				}
				_, err := one.Exec("INSERT INTO mine VALUES (1)")
				require.NoError(t, err)
				count := -1
				require.NoError(t, two.QueryRow("SELECT count(*) FROM mine").Scan(&count))
				require.Zero(t, count)
			})
			if dsn == "" {
				return // skipped
			}
			if file, ok := strings.CutPrefix(dsn, "file:"); ok {
				file, _, _ = strings.Cut(file, "?")
				require.NoFileExists(t, file)
				return
			}
			require.Error(t, open(t, d.driver, dsn).Ping())
		})
	}
}

// The parameters of a DSN are kept. It is a URL, with or without the name of a database.
func TestPostgresDSN(t *testing.T) {
	s := servers.PrivatePostgres(t, &private.Config{Fast: true})
	for name, dsn := range map[string]string{
		"database":    s.DSN() + "&application_name=interlock",
		"no database": "postgresql://postgres@" + s.Addr() + "?sslmode=disable&application_name=interlock",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("INTERLOCK_POSTGRES_DSN", dsn)
			var database, application string
			require.NoError(t, open(t, "pgx", servers.Postgres(t)).
				QueryRow("SELECT current_database(), current_setting('application_name')").Scan(&database, &application))
			require.Regexp(t, "^interlock_[0-9a-z]{26}$", database)
			require.Equal(t, "interlock", application)
		})
	}
}

func TestMySQLDSN(t *testing.T) {
	s := servers.PrivateMariaDB(t, &private.Config{Fast: true})
	t.Setenv("INTERLOCK_MYSQL_DSN", s.DSN()+"?clientFoundRows=true&sql_mode=ANSI")
	dsn := servers.MySQL(t)
	require.Contains(t, dsn, "clientFoundRows=true")
	var database, mode string
	require.NoError(t, open(t, "mysql", dsn).QueryRow("SELECT database(), @@sql_mode").Scan(&database, &mode))
	require.Regexp(t, "^interlock_[0-9a-z]{26}$", database)
	require.Contains(t, mode, "ANSI")
}

// The settings of SQLite are those that are documented, on every connection.
func TestSQLiteSettings(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "an odd? name#%20&")
	require.NoError(t, os.Mkdir(odd, 0o755))
	for name, test := range map[string]struct {
		database    func(testing.TB) string
		synchronous int
	}{
		"durable": {servers.SQLite, 2},
		"fast":    {servers.SQLiteFast, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", odd)
			db := open(t, "sqlite", test.database(t))
			_, err := db.Exec("CREATE TABLE t (id INT)")
			require.NoError(t, err)
			one, err := db.Begin()
			require.NoError(t, err)
			defer one.Rollback()
			conn, err := db.Conn(t.Context()) // another connection
			require.NoError(t, err)
			defer conn.Close()
			var file string
			require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT file FROM pragma_database_list").Scan(&file))
			require.True(t, strings.HasPrefix(file, odd+string(filepath.Separator)), file)
			require.FileExists(t, file)
			for pragma, want := range map[string]any{
				"journal_mode": "wal", "synchronous": int64(test.synchronous), "busy_timeout": int64(10_000), "foreign_keys": int64(1),
			} {
				var got any
				require.NoError(t, conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got))
				require.Equal(t, want, got, pragma)
			}
			// Only one transaction may write, also before it has written.
			_, err = conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 0")
			require.NoError(t, err)
			_, err = conn.ExecContext(t.Context(), "INSERT INTO t VALUES (1)")
			require.ErrorContains(t, err, "locked")
		})
	}
}

// This test binary runs itself where engines are missing.
func TestMissing(t *testing.T) {
	empty := t.TempDir()
	nothing := []string{
		"INTERLOCK_POSTGRES_DSN=", "INTERLOCK_MYSQL_DSN=",
		"INTERLOCK_POSTGRES_BIN=" + empty, "INTERLOCK_MARIADB_BIN=" + empty,
	}
	for _, test := range []struct {
		name  string
		env   []string
		want  string // of every engine
		texts map[string]string
	}{
		{"missing", append(nothing, "REQUIRE_ENGINES="), "SKIP", map[string]string{
			"Postgres":        "not run on PostgreSQL: set INTERLOCK_POSTGRES_DSN, or call make engines",
			"MySQL":           "not run on MySQL or MariaDB: set INTERLOCK_MYSQL_DSN, or call make engines",
			"PrivatePostgres": "not run on a private PostgreSQL: install the package postgresql",
			"PrivateMariaDB":  "not run on a private MariaDB: install the package mariadb-server",
		}},
		{"required", append(nothing, "REQUIRE_ENGINES=1"), "FAIL", map[string]string{
			"Postgres":        "PostgreSQL is missing, and REQUIRE_ENGINES=1: set INTERLOCK_POSTGRES_DSN",
			"MySQL":           "MySQL or MariaDB is missing, and REQUIRE_ENGINES=1: set INTERLOCK_MYSQL_DSN",
			"PrivatePostgres": "a private PostgreSQL is missing, and REQUIRE_ENGINES=1: install",
			"PrivateMariaDB":  "a private MariaDB is missing, and REQUIRE_ENGINES=1: install",
		}},
		{"not reached", []string{
			"INTERLOCK_POSTGRES_DSN=postgres://postgres@127.0.0.1:1/postgres",
			"INTERLOCK_MYSQL_DSN=root@tcp(127.0.0.1:1)/", "REQUIRE_ENGINES=",
		}, "FAIL", map[string]string{
			"Postgres": "connection refused",
			"MySQL":    "connection refused",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for engine, text := range test.texts {
				cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^TestOneEngine$/^"+engine+"$")
				cmd.Env = append(os.Environ(), append(test.env, asked+"=1")...)
				out, err := cmd.CombinedOutput()
				require.Equal(t, test.want == "FAIL", err != nil, "%s", out)
				require.Contains(t, string(out), "--- "+test.want+": TestOneEngine/"+engine+" ")
				require.Contains(t, string(out), text)
				require.NotContains(t, string(out), "went on")
			}
		})
	}
}

// With this variable TestOneEngine runs the cases of TestMissing.
const asked = "SERVERS_TEST_ASKED"

func TestOneEngine(t *testing.T) {
	if os.Getenv(asked) == "" {
		return // not called by TestMissing
	}
	for name, ask := range map[string]func(t *testing.T){
		"Postgres":        func(t *testing.T) { servers.Postgres(t) },
		"MySQL":           func(t *testing.T) { servers.MySQL(t) },
		"PrivatePostgres": func(t *testing.T) { servers.PrivatePostgres(t, nil) },
		"PrivateMariaDB":  func(t *testing.T) { servers.PrivateMariaDB(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			ask(t)
			t.Log("went on")
		})
	}
}
