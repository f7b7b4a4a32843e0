package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a database with the replies of a test, for faults that real engines show
// seldom.
type fake struct {
	mu     sync.Mutex
	log    []string // the first words of every statement
	answer func(query string, args []driver.NamedValue) reply
}

type reply struct {
	rows     [][]driver.Value
	affected int64
	last     int64
	err      error
}

func (f *fake) reply(query string, args []driver.NamedValue) reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	words := strings.Fields(query)
	f.log = append(f.log, strings.Join(words[:min(len(words), 3)], " "))
	return f.answer(query, args)
}

// statements returns the statements since the last call of statements.
func (f *fake) statements() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	log := f.log
	f.log = nil
	return log
}

func (f *fake) Connect(context.Context) (driver.Conn, error) { return fakeConn{f}, nil }

func (f *fake) Driver() driver.Driver { return nil }

type fakeConn struct{ f *fake }

func (c fakeConn) Close() error { return nil }

func (c fakeConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c fakeConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return c, c.f.reply("BEGIN", nil).err
}

func (c fakeConn) Commit() error { return c.f.reply("COMMIT", nil).err }

func (c fakeConn) Rollback() error { return c.f.reply("ROLLBACK", nil).err }

func (c fakeConn) Prepare(query string) (driver.Stmt, error) { return fakeStmt{c, query}, nil }

func (c fakeConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	r := c.f.reply(query, args)
	return fakeResult(r), r.err
}

func (c fakeConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	r := c.f.reply(query, args)
	if r.err != nil {
		return nil, r.err
	}
	columns := 0
	if len(r.rows) > 0 {
		columns = len(r.rows[0])
	}
	return &fakeRows{r.rows, columns}, nil
}

type fakeStmt struct {
	c     fakeConn
	query string
}

func (s fakeStmt) Close() error { return nil }

func (s fakeStmt) NumInput() int { return -1 }

func (s fakeStmt) Exec([]driver.Value) (driver.Result, error) { return nil, io.ErrUnexpectedEOF }

func (s fakeStmt) Query([]driver.Value) (driver.Rows, error) { return nil, io.ErrUnexpectedEOF }

func (s fakeStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.c.ExecContext(ctx, s.query, args)
}

func (s fakeStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.c.QueryContext(ctx, s.query, args)
}

type fakeResult reply

func (r fakeResult) LastInsertId() (int64, error) { return r.last, nil }

func (r fakeResult) RowsAffected() (int64, error) { return r.affected, nil }

type fakeRows struct {
	rows    [][]driver.Value
	columns int
}

func (r *fakeRows) Columns() []string { return make([]string, r.columns) }

func (r *fakeRows) Close() error { return nil }

func (r *fakeRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

// Errors in the form of the drivers' errors.
type (
	stateError string // PostgreSQL
	codeError  int    // SQLite
)

// routineError is an error of PostgreSQL with the routine that reports it.
type routineError struct {
	stateError
	Routine string
}

// severeError is an error of PostgreSQL with its severity.
type severeError struct {
	stateError
	Severity, SeverityUnlocalized string
}

func (e stateError) Error() string { return "SQLSTATE " + string(e) }

func (e stateError) SQLState() string { return string(e) }

func (e codeError) Error() string { return fmt.Sprint("code ", int(e)) }

func (e codeError) Code() int { return int(e) }

type numberError struct { // MySQL
	Number  uint16
	Message string
}

func (e *numberError) Error() string { return fmt.Sprint("Error ", e.Number, e.Message) }

type extendedError struct{ Code, ExtendedCode int } // mattn/go-sqlite3

func (e extendedError) Error() string { return fmt.Sprint("result ", e.Code) }

// opened returns a store in a fake database with the right tables. After that, answer
// has the replies.
func opened(t *testing.T, d Dialect, config *Config, answer func(query string, args []driver.NamedValue) reply) (*Store, *fake, *sql.DB) {
	t.Helper()
	var all [][]driver.Value // columns of any table
	names := []string{"version", "compatible", "floor", "trimmed_at", "trimmed_to", "trimmed_keep", "number", "topic", "subject"}
	for _, c := range columns {
		names = append(names, c.objects, c.history)
	}
	for _, name := range names {
		all = append(all, []driver.Value{name, "text", int64(0), int64(0)})
	}
	f := &fake{answer: func(query string, args []driver.NamedValue) reply {
		switch {
		case len(args) > 1 && query == fmt.Sprintf(d.columns, d.placeholder(1, "text"), d.placeholder(2, "text")):
			return reply{rows: all}
		case len(args) > 1 && query == fmt.Sprintf(d.storage, d.placeholder(1, "text"), d.placeholder(2, "text")):
			return reply{rows: [][]driver.Value{{""}}}
		case len(args) > 1 && query == fmt.Sprintf(d.indexes, d.placeholder(1, "text"), d.placeholder(2, "text")):
			return reply{rows: indexRows(d, args[0].Value.(string))}
		case query == d.sessionProbe:
			return reply{rows: [][]driver.Value{{"STRICT_ALL_TABLES", int64(1), "F09F9880"}}}
		case strings.HasPrefix(query, "SELECT version"):
			return reply{rows: [][]driver.Value{{int64(Version), int64(1), int64(0)}}}
		}
		return reply{}
	}}
	db := sql.OpenDB(f)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	store, err := Open(t.Context(), db, d, config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	f.statements()
	f.answer = answer
	return store, f, db
}

// indexRows returns the columns of the indexes of one of the store's own tables.
func indexRows(d Dialect, name string) (rows [][]driver.Value) {
	l := d.own(defaultPrefix, Version)
	for _, t := range []*table{&l.objects, &l.history} {
		if d.unquoted(t.name) != name {
			continue
		}
		for _, v := range t.key {
			rows = append(rows, []driver.Value{"the key", int64(1), d.unquoted(t.col(v))})
		}
		for index, columns := range t.indexes {
			for _, v := range columns {
				rows = append(rows, []driver.Value{index, int64(0), d.unquoted(t.col(v))})
			}
		}
	}
	return rows
}
