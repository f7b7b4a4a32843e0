package private_test

import (
	"database/sql"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
)

// engines are all that can be started, durable and fast.
var engines = []struct {
	name   string
	driver string
	start  func(testing.TB, *private.Config) *private.Server
	config *private.Config
	synced string // query: "1" or "on" if a commit waits for the disk
}{
	{"PostgreSQL", "pgx", servers.PrivatePostgres, nil, "SHOW fsync"},
	{"PostgreSQL fast", "pgx", servers.PrivatePostgres, &private.Config{Fast: true}, "SHOW fsync"},
	{"MariaDB", "mysql", servers.PrivateMariaDB, nil, "SELECT @@innodb_flush_log_at_trx_commit"},
	{"MariaDB fast", "mysql", servers.PrivateMariaDB, &private.Config{Fast: true}, "SELECT @@innodb_flush_log_at_trx_commit"},
}

func open(t *testing.T, driver string, s *private.Server) *sql.DB {
	db, err := sql.Open(driver, s.DSN())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// What was acknowledged is there after every Kill, at the same address, and nothing is left
// after Close.
func TestServer(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			s := e.start(t, e.config)
			addr, dsn := s.Addr(), s.DSN()
			require.Contains(t, dsn, addr)
			require.Error(t, s.Start(), "it runs already")
			var synced string
			require.NoError(t, open(t, e.driver, s).QueryRow(e.synced).Scan(&synced))
			require.Equal(t, e.config == nil, synced == "on" || synced == "1", "%s: %s", e.synced, synced)
			_, err := open(t, e.driver, s).Exec("CREATE TABLE kept (id INT PRIMARY KEY)")
			require.NoError(t, err)
			for rows := 1; rows <= 2; rows++ {
				db := open(t, e.driver, s)
				_, err := db.Exec("INSERT INTO kept SELECT count(*) FROM kept")
				require.NoError(t, err)
				tx, err := db.Begin() // in the middle of a transaction
				require.NoError(t, err)
				_, err = tx.Exec("DELETE FROM kept")
				require.NoError(t, err)
				require.NotEmpty(t, private.Processes(s))
				require.NoError(t, s.Kill())
				require.NoError(t, s.Kill(), "again")
				require.False(t, private.Running(s))
				require.Empty(t, private.Processes(s))
				require.Error(t, tx.Commit())
				require.Error(t, open(t, e.driver, s).Ping())

				require.NoError(t, s.Start())
				require.Equal(t, []string{addr, dsn}, []string{s.Addr(), s.DSN()})
				count := 0
				require.NoError(t, open(t, e.driver, s).QueryRow("SELECT count(*) FROM kept").Scan(&count))
				require.Equal(t, rows, count)
			}
			dir := private.Dir(s)
			require.NoError(t, s.Close())
			require.Empty(t, private.Processes(s))
			require.NoDirExists(t, dir)
			require.NoError(t, s.Close(), "again")
		})
	}
}

// A server does not start on the port of another server, and does not take its answers for
// its own.
func TestPortIsTaken(t *testing.T) {
	e := engines[1]
	s, other := e.start(t, e.config), e.start(t, e.config)
	require.NotEqual(t, s.Addr(), other.Addr())
	require.NoError(t, other.Kill())
	private.MoveTo(other, s)
	require.Error(t, other.Start())
	require.False(t, private.Running(other))
	require.NoError(t, open(t, e.driver, s).Ping())
}

// A server that cannot be created leaves nothing.
func TestCreateFails(t *testing.T) {
	temp, programs := t.TempDir(), t.TempDir()
	require.NoError(t, os.Chmod(temp, 0o755))
	for _, name := range []string{"initdb", "postgres"} {
		require.NoError(t, os.WriteFile(programs+"/"+name, []byte("#!/bin/sh\necho no space left\nexit 3\n"), 0o755))
	}
	t.Setenv("TMPDIR", temp)
	t.Setenv("INTERLOCK_POSTGRES_BIN", programs)
	_, err := private.StartPostgres(nil)
	require.Error(t, err)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left)
}
