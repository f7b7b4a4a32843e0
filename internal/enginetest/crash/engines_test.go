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

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/crashtest"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// engine is one that tests run on.
type engine struct {
	name    string
	driver  string
	dialect sqlstore.Dialect
	// database returns the DSN of one that is the test's own, in which commits
	// do not wait for the disk: no test here ends the engine.
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

// long says that nothing is left out.
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

// onEach runs a test on every engine that there is.
func onEach(t *testing.T, run func(t *testing.T, e engine)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			run(t, e)
		})
	}
}

func (e engine) pool(dsn string) (*sql.DB, error) { return sql.Open(e.driver, dsn) }

// aged is a store that can be made older. Its database is closed with it.
type aged struct {
	*sqlstore.Store
	db *sql.DB
}

// migrate makes the tables.
func (e engine) migrate(t testing.TB, dsn string) {
	t.Helper()
	db, err := e.pool(dsn)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
}

// open makes a store by connections of its own.
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

// age moves all that is stored into the past.
func (s *aged) age(t testing.TB, d time.Duration) {
	t.Helper()
	us := strconv.FormatInt(d.Microseconds(), 10)
	s.exec(t, "UPDATE interlock_objects SET changed_at = changed_at - "+us+", deadline = deadline - "+us,
		"UPDATE interlock_history SET at = at - "+us)
}

// harness returns a harness of crashtest: every point has the time of a bubble,
// and tables that were emptied before it, because they are faster so than new.
func (e engine) harness(t *testing.T) crashtest.Harness {
	dsn := e.database(t)
	e.migrate(t, dsn)
	h := crashtest.Harness{
		New: func(t testing.TB) lifecycle.Store {
			s := e.open(t, dsn)
			s.exec(t, "DELETE FROM interlock_objects", "DELETE FROM interlock_history", "DELETE FROM interlock_messages")
			return s
		},
		Synctest: true,
	}
	if e.dialect != sqlstore.SQLite { // SQLite lives by the clock of the process
		h.Age = func(t testing.TB, store lifecycle.Store, d time.Duration) { store.(*aged).age(t, d) }
	}
	return h
}
