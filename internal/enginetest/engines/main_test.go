package main

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/private"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
)

// With this variable the test binary is the command: it writes its DSNs to the file and
// ends with status 7.
const commanded = "ENGINES_TEST_COMMANDED"

func TestMain(m *testing.M) {
	if file := os.Getenv(commanded); file != "" {
		os.Exit(commandedTo(file))
	}
	os.Exit(m.Run())
}

func commandedTo(file string) int {
	var given strings.Builder
	for _, e := range all {
		dsn := os.Getenv(e.variable)
		db, err := sql.Open(e.driver, dsn)
		if err == nil && dsn != "" {
			err = db.Ping()
		}
		fmt.Fprintln(&given, dsn, err)
	}
	if err := os.WriteFile(file, []byte(given.String()), 0o644); err != nil {
		return 1
	}
	return 7
}

const unused = "postgres://postgres@127.0.0.1:1/postgres" // where no server is

// An engine is found in each way, and the command gets its DSN.
func TestEnginesAreFound(t *testing.T) {
	theirs := servers.PrivatePostgres(t, &private.Config{Fast: true})
	empty := t.TempDir()
	for name, test := range map[string]struct {
		env, usual, binaries string
		log, given           string
	}{
		"named":         {theirs.DSN(), unused, empty, "the one of INTERLOCK_POSTGRES_DSN", theirs.DSN()},
		"runs":          {"", theirs.DSN(), empty, "the one of this machine", theirs.DSN()},
		"started":       {"", unused, "", "started for this command", ""},
		"not installed": {"", unused, empty, "missing: ", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := all[0]
			e.usual = test.usual
			file := filepath.Join(t.TempDir(), "given")
			t.Setenv(commanded, file)
			t.Setenv(e.variable, test.env)
			t.Setenv(all[1].variable, "")
			t.Setenv("INTERLOCK_POSTGRES_BIN", test.binaries)

			var log bytes.Buffer
			require.Equal(t, 7, run(t.Context(), []engine{e}, []string{os.Args[0]}, &log))
			require.Contains(t, log.String(), "engines: PostgreSQL: "+test.log)
			given, err := os.ReadFile(file)
			require.NoError(t, err)
			dsn, worked, _ := strings.Cut(strings.Split(string(given), "\n")[0], " ")
			require.Equal(t, "<nil>", worked)
			switch {
			case name == "started":
				require.NotEqual(t, theirs.DSN(), dsn)
				db, err := sql.Open(e.driver, dsn)
				require.NoError(t, err)
				defer db.Close()
				require.Error(t, db.Ping(), "it ended with the command")
			default:
				require.Equal(t, test.given, dsn)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	var log bytes.Buffer
	require.Equal(t, 0, run(t.Context(), nil, []string{"true"}, &log))
	require.Equal(t, 3, run(t.Context(), nil, []string{"sh", "-c", "exit 3"}, &log))
	require.Empty(t, log.String())
	require.Equal(t, 2, run(t.Context(), nil, []string{"sh", "-c", "kill -9 $$"}, &log))
	require.Equal(t, "engines: signal: killed\n", log.String())
	log.Reset()
	require.Equal(t, 2, run(t.Context(), nil, []string{filepath.Join(t.TempDir(), "none")}, &log))
	require.Contains(t, log.String(), "no such file")
	log.Reset()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 2, run(ctx, nil, []string{"true"}, &log))
	require.Contains(t, log.String(), "context canceled")

	// A server that does not start is not missing.
	log.Reset()
	broken := engine{
		name: "broken", variable: "ENGINES_TEST_DSN", driver: "pgx", usual: unused,
		start: func(*private.Config) (*private.Server, error) { return nil, os.ErrInvalid },
	}
	require.Equal(t, 2, run(t.Context(), []engine{broken}, []string{"true"}, &log))
	require.Equal(t, "engines: invalid argument\n", log.String())
}
