package private_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"testing"
	"time"

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
	synced string // query: does a commit wait for the disk, and "1" or "on" if so
	bad    string // what it says of a setting that it does not know
}{
	{"PostgreSQL", "pgx", servers.PrivatePostgres, nil, "SHOW fsync", `unrecognized configuration parameter "no_such"`},
	{"PostgreSQL fast", "pgx", servers.PrivatePostgres, &private.Config{Fast: true}, "SHOW fsync", ""},
	{"MariaDB", "mysql", servers.PrivateMariaDB, nil, "SELECT @@innodb_flush_log_at_trx_commit", "unknown variable 'no_such=1'"},
	{"MariaDB fast", "mysql", servers.PrivateMariaDB, &private.Config{Fast: true}, "SELECT @@innodb_flush_log_at_trx_commit", ""},
}

func open(t *testing.T, driver string, s *private.Server) *sql.DB {
	db, err := sql.Open(driver, s.DSN())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// One life of a server: what was acknowledged is there after each of its ends,
// at the same address.
func TestLife(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			s := e.start(t, e.config)
			addr, dsn := s.Addr(), s.DSN()
			require.Contains(t, dsn, addr)
			var synced string
			require.NoError(t, open(t, e.driver, s).QueryRow(e.synced).Scan(&synced))
			require.Equal(t, e.config == nil, synced == "on" || synced == "1", "%s: %s", e.synced, synced)

			rows := 0
			write := func() {
				db := open(t, e.driver, s)
				if rows == 0 {
					_, err := db.Exec("CREATE TABLE kept (id INT PRIMARY KEY)")
					require.NoError(t, err)
				}
				for range 20 {
					_, err := db.Exec("INSERT INTO kept SELECT count(*) FROM kept")
					require.NoError(t, err)
					rows++
				}
			}
			for _, end := range []struct {
				name string
				end  func() error
			}{
				{"kill", s.Kill},
				{"stop", s.Stop},
				{"kill, paused", func() error { require.NoError(t, s.Pause()); return s.Kill() }},
				{"stop, paused", func() error { require.NoError(t, s.Pause()); return s.Stop() }},
			} {
				write()
				held := open(t, e.driver, s) // with a connection in the middle of a transaction
				tx, err := held.Begin()
				require.NoError(t, err, end.name)
				_, err = tx.Exec("DELETE FROM kept")
				require.NoError(t, err, end.name)
				pids, err := private.Processes(s)
				require.NoError(t, err, end.name)

				require.NoError(t, end.end(), end.name)
				require.False(t, s.Running(), end.name)
				for _, pid := range pids {
					require.True(t, private.Gone(pid), "%s: process %d", end.name, pid)
				}
				require.Error(t, tx.Commit(), end.name)
				require.Error(t, open(t, e.driver, s).Ping(), end.name)

				require.NoError(t, s.Start(), end.name)
				require.Equal(t, []string{addr, dsn}, []string{s.Addr(), s.DSN()})
				var count int
				require.NoError(t, open(t, e.driver, s).QueryRow("SELECT count(*) FROM kept").Scan(&count), end.name)
				require.Equal(t, rows, count, end.name)
			}

			dir := private.Dir(s)
			require.DirExists(t, dir)
			require.NoError(t, s.Close())
			require.NoDirExists(t, dir)
			require.NoError(t, s.Close(), "again")
		})
	}
}

// What a server does on the way, in one go: to make one takes a second.
func TestStates(t *testing.T) {
	for _, e := range engines {
		if e.config == nil {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			s := e.start(t, e.config)

			// Every method in a state that it is not for changes nothing.
			require.ErrorIs(t, s.Start(), private.ErrState)
			require.ErrorIs(t, s.Continue(), private.ErrState)
			db := open(t, e.driver, s)
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.Pause())
			require.True(t, s.Running())
			require.ErrorIs(t, s.Pause(), private.ErrState)
			require.ErrorIs(t, s.Start(), private.ErrState)

			// Nobody answers while it is paused, on connections old and new. What was
			// asked meanwhile is answered afterwards.
			answer := make(chan error, 1)
			go func() { answer <- conn.PingContext(context.Background()) }()
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			require.Error(t, db.PingContext(ctx), "a new connection")
			require.Error(t, ctx.Err(), "it ended because nobody answered")
			require.Empty(t, answer, "an old connection")
			require.NoError(t, s.Continue())
			require.NoError(t, <-answer)
			require.NoError(t, db.PingContext(t.Context()))
			require.NoError(t, conn.Close())

			require.NoError(t, s.Kill())
			for _, do := range []func() error{s.Kill, s.Stop, s.Pause, s.Continue} {
				require.ErrorIs(t, do(), private.ErrState)
			}
			require.NoError(t, s.Start())
			require.NoError(t, db.PingContext(t.Context()))

			// A server on whose port somebody else is does not start, and does not
			// take his answers for its own.
			other := e.start(t, e.config)
			require.NotEqual(t, s.Addr(), other.Addr())
			require.NoError(t, other.Kill())
			private.MoveTo(other, s)
			require.Error(t, other.Start())
			require.False(t, other.Running())
			require.NoError(t, db.PingContext(t.Context()))
		})
	}
}

// What the caller sets comes after Fast.
func TestSettings(t *testing.T) {
	for _, test := range []struct {
		engine   int
		settings map[string]string
		query    string
		want     [2]string
	}{
		{
			1,
			map[string]string{"default_transaction_isolation": "serializable", "fsync": "on"},
			"SELECT current_setting('default_transaction_isolation'), current_setting('fsync')",
			[2]string{"serializable", "on"},
		},
		{
			3,
			map[string]string{"transaction-isolation": "SERIALIZABLE", "innodb-flush-log-at-trx-commit": "1"},
			"SELECT @@tx_isolation, @@innodb_flush_log_at_trx_commit",
			[2]string{"SERIALIZABLE", "1"},
		},
	} {
		e := engines[test.engine]
		t.Run(e.name, func(t *testing.T) {
			s := e.start(t, &private.Config{Fast: true, Settings: test.settings})
			var got [2]string
			require.NoError(t, open(t, e.driver, s).QueryRow(test.query).Scan(&got[0], &got[1]))
			require.Equal(t, test.want, got)
		})
	}
}

// What a server says when it does not start is in the error, and nothing is
// left.
func TestDoesNotStart(t *testing.T) {
	for _, e := range engines {
		if e.config != nil {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "") // not t.TempDir, which only we may enter
			require.NoError(t, err)
			defer os.Remove(dir)
			require.NoError(t, os.Chmod(dir, 0o755))
			t.Setenv("TMPDIR", dir)
			start := private.StartPostgres
			if e.driver == "mysql" {
				start = private.StartMariaDB
			}
			_, err = start(&private.Config{Settings: map[string]string{"no_such": "1"}})
			if errors.Is(err, private.ErrMissing) {
				e.start(t, nil) // says so
			}
			require.ErrorContains(t, err, e.bad)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
