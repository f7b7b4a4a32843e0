package sqltest

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// overheard is a driver that remembers the queries.
type overheard struct {
	driver.Driver
	heard
	all []heard
}

// heard is a query.
type heard struct {
	query string
	args  []any
}

func (o *overheard) Open(dsn string) (driver.Conn, error) {
	c, err := o.Driver.Open(dsn)
	if err != nil {
		return nil, err
	}
	return &overheardConn{c.(fullConn), o}, nil
}

// fullConn has the optional interfaces of the drivers' connections.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type overheardConn struct {
	fullConn
	o *overheard
}

func (c *overheardConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.o.query, c.o.args = query, nil
	for _, a := range args {
		c.o.args = append(c.o.args, a.Value)
	}
	c.o.all = append(c.o.all, c.o.heard)
	return c.fullConn.QueryContext(ctx, query, args)
}

// overhear opens a database whose last query can be read.
func overhear(t *testing.T, db *sql.DB, dsn string) (*overheard, *sql.DB) {
	o := &overheard{Driver: db.Driver()}
	heard := sql.OpenDB(dsnConnector{o, dsn})
	t.Cleanup(func() { require.NoError(t, heard.Close()) })
	return o, heard
}

type dsnConnector struct {
	driver *overheard
	dsn    string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

func (c dsnConnector) Driver() driver.Driver { return c.driver }

// plan returns the engine's plan of a query.
func plan(t *testing.T, e engine, db *sql.DB, query string, args []any) string {
	explain := map[string]string{"sqlite": "EXPLAIN QUERY PLAN ", "postgres": "EXPLAIN ", "mysql": "EXPLAIN "}[e.name]
	rows, err := db.QueryContext(t.Context(), explain+query, args...)
	require.NoError(t, err)
	defer rows.Close()
	names, err := rows.Columns()
	require.NoError(t, err)
	var b strings.Builder
	for rows.Next() {
		vals, at := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range vals {
			at[i] = &vals[i]
		}
		require.NoError(t, rows.Scan(at...))
		for i, v := range vals {
			if names[i] == "possible_keys" {
				continue
			}
			fmt.Fprintf(&b, "%s=%s ", names[i], v.String)
		}
		b.WriteString("\n")
	}
	require.NoError(t, rows.Err())
	return b.String()
}

// rowsRead returns how many rows of the table the engine reads for a query: as
// counted, or as estimated where the engine does not count them.
func rowsRead(t *testing.T, e engine, db *sql.DB, query string, args []any) (total int) {
	switch e.name {
	case "sqlite":
		return 0 // the plan names the ranges, but no number
	case "postgres":
		rows, err := db.QueryContext(t.Context(), "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) "+query, args...)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var line string
			require.NoError(t, rows.Scan(&line))
			if n := regexp.MustCompile(`(?:Scan.*actual rows=|Removed by Filter: )(\d+)`).FindStringSubmatch(line); n != nil {
				read, err := strconv.Atoi(n[1])
				require.NoError(t, err)
				total += read
			}
		}
		require.NoError(t, rows.Err())
		return total
	}
	for _, n := range regexp.MustCompile(` rows=(\d+)`).FindAllStringSubmatch(plan(t, e, db, query, args), -1) {
		read, err := strconv.Atoi(n[1])
		require.NoError(t, err)
		total += read
	}
	return total
}

// Every query uses an index and does not read the whole table.
func TestListUsesIndexes(t *testing.T) {
	onEach(t, func(t *testing.T, e engine) {
		way := e.open(t)
		db := pool(t, way)
		require.NoError(t, sqlstore.Migrate(t.Context(), db, e.dialect, nil))
		fill(t, e, db)
		o, heard := overhear(t, db, way.dsn)
		store, err := sqlstore.Open(t.Context(), heard, e.dialect, nil)
		require.NoError(t, err)
		defer store.Close()
		var many []lifecycle.OwnerRef
		for i := range 100 {
			many = append(many, lifecycle.OwnerRef{Name: fmt.Sprint("process ", i), Epoch: 9})
		}
		for _, c := range []struct {
			name  string
			q     lifecycle.Query
			index []string // any of them
			found int      // 0: any number
		}{
			{"by key", lifecycle.Query{After: "id 02000"}, []string{"objects_pkey", "key=PRIMARY", "sqlite_autoindex_interlock_objects"}, 0},
			{"by state", lifecycle.Query{States: []string{"paying"}}, []string{"objects_state", "objects_age"}, 0},
			// Most ships are docked, and the few that sail have the last ids.
			{"pages by state", lifecycle.Query{Machine: "ship", States: []string{"sailing"}}, []string{"objects_state"}, 50},
			{"pages by states", lifecycle.Query{Machine: "ship", States: []string{"sunk", "sailing"}, After: "id 09500"}, []string{"objects_state"}, 50},
			{"by age", lifecycle.Query{States: []string{"open"}, UnchangedFor: 60 * time.Hour}, []string{"objects_age"}, 0},
			{"overdue", lifecycle.Query{Overdue: true}, []string{"objects_deadline"}, 0},
			// Of 1,666 orders that living owners pack, a sweep reads none.
			{"not owned by", lifecycle.Query{NotOwnedBy: []lifecycle.OwnerRef{{Name: "packer", Epoch: 4}, {Name: "process 1", Epoch: 9}, {Name: "packer", Epoch: 5}}}, []string{"objects_owner"}, 50},
			{"not owned by many", lifecycle.Query{NotOwnedBy: many}, []string{"objects_owner"}, 0},
			{"transitional of no owner", lifecycle.Query{States: []string{"packing", "lost"}, NoDeadline: true, Unowned: true}, []string{"objects_owner"}, 7},
		} {
			t.Run(c.name, func(t *testing.T) {
				q := c.q
				q.Machine, q.Limit = cmp.Or(q.Machine, "order"), 50
				list, err := store.List(t.Context(), q)
				require.NoError(t, err)
				require.NotEmpty(t, list)
				text := plan(t, e, db, o.query, o.args)
				t.Log(text)
				if c.found > 0 {
					require.Len(t, list, c.found)
					if e.name == "postgres" || c.q.Machine == "" { // MariaDB estimates what it would read without the limit
						require.Less(t, rowsRead(t, e, db, o.query, o.args), 200) // PostgreSQL counts a row in the index and in the table
					}
				}
				found := false
				for _, index := range c.index {
					found = found || strings.Contains(text, index)
				}
				require.True(t, found, "not by %q", c.index)
				require.NotContains(t, text, "Seq Scan")
				require.NotContains(t, text, "type=ALL")
				require.NotContains(t, text, "detail=SCAN interlock_")
			})
		}
	})
}

// fill creates 20,000 objects, of which queries select a few.
func fill(t *testing.T, e engine, db *sql.DB) {
	now := time.Now()
	var rows []string
	add := func(machine string, i int, state, owner string, epoch int, deadline string, changed time.Time) {
		rows = append(rows, fmt.Sprintf("('%s', 'id %05d', '%s', '', '', 1, 1, 0, '%s', %d, '', %s, %d, '', '', '', 'sixteen bytes ok')",
			machine, i, state, owner, epoch, deadline, changed.UnixMicro()))
	}
	for i := range 10_000 {
		state, deadline, owner, epoch, changed := "open", "NULL", "", 0, now
		if i%100 == 0 {
			state = "paying"
			deadline = fmt.Sprint(now.Add(time.Duration(i-8000) * time.Minute).UnixMicro())
			owner, epoch = fmt.Sprint("process ", i%7), 9
		}
		if i%250 == 1 {
			changed = now.Add(-100 * time.Hour)
		}
		switch {
		case i%1000 == 3:
			state = "lost"
		case i%4 == 2 && i%100 != 0:
			state, owner, epoch = "packing", "packer", 4+i%8/4
		}
		add([]string{"order", "order", "truck"}[i%3], i, state, owner, epoch, deadline, changed)
	}
	for i := range 10_000 {
		state := "docked"
		if i >= 9000 {
			state = []string{"sailing", "sunk"}[i%2]
		}
		add("ship", i, state, "", 0, "NULL", now)
	}
	insert(t, e, db, "interlock_objects", "machine, id, state, origin, target, revision, sequence, operation, owner, epoch, work, deadline, changed_at, actor, event, reason, token", rows)
}

// insert adds rows to a table, whose plans know them then. A row is its values in parentheses.
func insert(t *testing.T, e engine, db *sql.DB, table, columns string, rows []string) {
	t.Helper()
	for some := range slices.Chunk(rows, 500) {
		exec(t, db, "INSERT INTO "+table+" ("+columns+") VALUES "+strings.Join(some, ", "))
	}
	exec(t, db, map[string]string{"mysql": "ANALYZE TABLE ", "postgres": "ANALYZE ", "sqlite": "ANALYZE "}[e.name]+table)
}
