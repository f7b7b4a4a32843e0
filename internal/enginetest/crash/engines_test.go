package crash

import (
	"database/sql"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/crashtest"
	"github.com/interlock-go/interlock/internal/enginetest/scale"
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
	// existing: disks are in a table of the user's.
	existing bool
}

var engines = func() []engine {
	list := []engine{
		{name: "SQLite", driver: "sqlite", dialect: sqlstore.SQLite, database: servers.SQLiteFast},
		{name: "PostgreSQL", driver: "pgx", dialect: sqlstore.Postgres, database: fastPostgres},
	}
	if scale.Full {
		list = append(list, engine{name: "MariaDB", driver: "mysql", dialect: sqlstore.MySQL, database: servers.MySQL})
	}
	return list
}()

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

// disksTable is a table of the user's. The history and owners are in the library's own tables.
var disksTable = sqlstore.ExistingTable{
	Machine: "disk", Table: "disks", Micros: true,
	Columns: sqlstore.ColumnMap{
		ID: "id", State: "state", Origin: "origin", Target: "target", Revision: "rev", Sequence: "seq", Operation: "op",
		Admission: "admission", ChangeToken: "moved_by", Owner: "owner", Epoch: "epoch", Work: "work", Args: "args", WorkOptions: "options",
		Deadline: "due", ChangedAt: "changed", Actor: "actor", Event: "event", Reason: "reason", Payload: "size", Saved: "saved", Token: "token",
	},
}

// config returns the configuration of stores.
func (e engine) config() *sqlstore.Config {
	if !e.existing {
		return nil
	}
	return &sqlstore.Config{Tables: []sqlstore.ExistingTable{disksTable}}
}

func (e engine) pool(dsn string) (*sql.DB, error) { return sql.Open(e.driver, dsn) }

// aged is a store whose records can be made older. Close closes its database too.
type aged struct {
	*sqlstore.Store
	db *sql.DB
	e  engine
}

// migrate creates the tables.
func (e engine) migrate(t testing.TB, dsn string) {
	t.Helper()
	db, err := e.pool(dsn)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
	if !e.existing {
		return
	}
	blob := map[string]string{"SQLite": "blob", "PostgreSQL": "bytea", "MariaDB": "longblob"}[e.name]
	(&aged{nil, db, e}).exec(t, "CREATE TABLE disks (id varchar(100) NOT NULL PRIMARY KEY, state varchar(50) NOT NULL, origin varchar(50),"+
		" target varchar(50), rev bigint NOT NULL, seq bigint NOT NULL, op bigint, owner varchar(50), epoch bigint, admission "+blob+", moved_by "+blob+
		", work varchar(50), args "+blob+", options "+blob+", due bigint, changed bigint, actor varchar(50), event varchar(50), reason varchar(500), size "+blob+
		", saved "+blob+", token "+blob+")")
}

// open returns a store with connections of its own.
func (e engine) open(t testing.TB, dsn string) *aged {
	t.Helper()
	db, err := e.pool(dsn)
	require.NoError(t, err)
	store, err := sqlstore.Open(t.Context(), db, e.dialect, e.config())
	require.NoError(t, err)
	return &aged{store, db, e}
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
	if s.e.existing {
		s.exec(t, "UPDATE disks SET changed = changed - "+us+", due = due - "+us)
	}
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
			if e.existing {
				s.exec(t, "DELETE FROM disks")
			}
			return s
		},
	}
	if e.dialect != sqlstore.SQLite { // SQLite uses the clock of the process
		h.Age = func(t testing.TB, store lifecycle.Store, d time.Duration) { store.(*aged).age(t, d) }
	}
	return h
}
