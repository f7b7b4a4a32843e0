package servers

import (
	"net/url"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // driver sqlite
)

// SQLite returns the DSN, for the driver sqlite, of a file that is this test's own and
// durable: a write-ahead log that is synchronized at every commit. A transaction takes the
// write lock when it begins and waits up to ten seconds for it, because SQLite refuses a
// later request at once if another connection has written meanwhile.
func SQLite(t testing.TB) (dsn string) {
	t.Helper()
	return sqliteDSN(t, "FULL")
}

// SQLiteFast is [SQLite] without synchronization: an acknowledged commit survives the end
// of the process, and not a loss of power.
func SQLiteFast(t testing.TB) (dsn string) {
	t.Helper()
	return sqliteDSN(t, "OFF")
}

func sqliteDSN(t testing.TB, synchronous string) string {
	t.Helper()
	// Opaque, because a path below a scheme would have to begin with a slash.
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: filepath.ToSlash(filepath.Join(t.TempDir(), "test.db"))}).EscapedPath()}
	file.RawQuery = url.Values{
		"_txlock": {"immediate"},
		// In this order, because the change of the journal may have to wait.
		"_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(" + synchronous + ")", "foreign_keys(ON)"},
	}.Encode()
	return file.String()
}
