package crash

import (
	"database/sql"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// engine is an engine that the tests run on.
type engine struct {
	name    string
	driver  string
	dialect sqlstore.Dialect
	// database returns the DSN of a database of the test's own. Its commits do not
	// wait for the disk, because no test of this package ends the engine.
	database func(testing.TB) (dsn string)
}

var engines = func() []engine {
	list := []engine{
		{"SQLite", "sqlite", sqlstore.SQLite, servers.SQLiteFast},
		{"PostgreSQL", "pgx", sqlstore.Postgres, fastPostgres},
	}
	if long {
		list = append(list, engine{"MariaDB", "mysql", sqlstore.MySQL, servers.MySQL})
	}
	return list
}()

// long reports whether tests may take minutes each.
var long = os.Getenv("INTERLOCK_LONG") != ""

func fastPostgres(t testing.TB) string {
	t.Helper()
	dsn := servers.Postgres(t)
	if !strings.Contains(dsn, "://") { // words
		return dsn + " synchronous_commit=off"
	}
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	q := u.Query()
	q.Set("synchronous_commit", "off")
	u.RawQuery = q.Encode()
	return u.String()
}

// onEach runs a test on every engine.
func onEach(t *testing.T, run func(t *testing.T, e engine)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			run(t, e)
		})
	}
}

func (e engine) pool(dsn string) (*sql.DB, error) { return sql.Open(e.driver, dsn) }

// aged is a store whose records can be made older. Close closes its database too.
type aged struct {
	*sqlstore.Store
	db *sql.DB
}

// migrate creates the tables.
func (e engine) migrate(t testing.TB, dsn string) {
	t.Helper()
	db, err := e.pool(dsn)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
}

// open returns a store with connections of its own.
func (e engine) open(t testing.TB, dsn string) *aged {
	t.Helper()
	db, err := e.pool(dsn)
	require.NoError(t, err)
	store, err := sqlstore.Open(t.Context(), db, e.dialect, nil)
	require.NoError(t, err)
	return &aged{store, db}
}

// Close closes the database too.
func (s *aged) Close() error {
	if err := s.Store.Close(); err != nil {
		return err
	}
	return s.db.Close()
}

// exec performs statements one after the other.
func (s *aged) exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, text := range statements {
		_, err := s.db.ExecContext(t.Context(), text)
		require.NoError(t, err, text)
	}
}

// age moves all stored times into the past.
func (s *aged) age(t testing.TB, d time.Duration) {
	t.Helper()
	us := strconv.FormatInt(d.Microseconds(), 10)
	s.exec(t, "UPDATE interlock_objects SET changed_at = changed_at - "+us+", deadline = deadline - "+us,
		"UPDATE interlock_history SET at = at - "+us,
		"UPDATE interlock_schema SET trimmed_at = trimmed_at - "+us+", trimmed_to = trimmed_to - "+us+" WHERE trimmed_at > 0")
}

// harness returns a harness of crashtest. Every point runs in a synctest bubble. The
// tables are emptied before it, because that is faster than creating them.
func (e engine) harness(t *testing.T) crashtest.Harness {
	dsn := e.database(t)
	e.migrate(t, dsn)
	h := crashtest.Harness{
		New: func(t testing.TB) lifecycle.Store {
			s := e.open(t, dsn)
			s.exec(t, "DELETE FROM interlock_objects", "DELETE FROM interlock_history", "DELETE FROM interlock_messages")
			return s
		},
	}
	if e.dialect != sqlstore.SQLite { // SQLite uses the clock of the process
		h.Age = func(t testing.TB, store lifecycle.Store, d time.Duration) { store.(*aged).age(t, d) }
	}
	return h
}
