package servers

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/internal/enginetest/private"
)

// PrivatePostgres starts a PostgreSQL server that is this test's own, and closes it at the
// end of the test. If the test has failed, the end of the server's log is logged. nil: a
// durable server. See [private.StartPostgres] for the binaries.
func PrivatePostgres(t testing.TB, config *private.Config) *private.Server {
	t.Helper()
	return own(t, "a private PostgreSQL", "install the package postgresql", private.StartPostgres, config)
}

// PrivateMariaDB starts a MariaDB server as [PrivatePostgres] does.
func PrivateMariaDB(t testing.TB, config *private.Config) *private.Server {
	t.Helper()
	return own(t, "a private MariaDB", "install the package mariadb-server", private.StartMariaDB, config)
}

func own(t testing.TB, engine, how string, start func(*private.Config) (*private.Server, error), config *private.Config) *private.Server {
	t.Helper()
	s, err := start(config)
	if errors.Is(err, private.ErrMissing) {
		missing(t, engine, how+" ("+err.Error()+")")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s ends:\n%s", engine, s.Log())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
