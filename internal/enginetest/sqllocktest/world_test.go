package sqllocktest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/internal/enginetest/servers"
	"github.com/interlock-go/interlock/lock"
	"github.com/interlock-go/interlock/lock/sqllock"
)

func at(m lock.Mode, path string) lock.Request {
	return lock.Request{Path: lock.MustParse(path), Mode: m}
}

// pool opens a pool of connections until the test ends.
func pool(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", dsn)
	require.NoError(t, err)
	db.SetMaxOpenConns(16)
	db.SetMaxIdleConns(16)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// database is one with the tables of lockers.
type database struct {
	dsn string
	db  *sql.DB
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	return migrated(t, servers.Postgres(t))
}

func migrated(t testing.TB, dsn string) *database {
	t.Helper()
	d := &database{dsn, pool(t, dsn)}
	require.NoError(t, sqllock.Migrate(t.Context(), d.db))
	return d
}

func configOf(t testing.TB, dsn string) *pgx.ConnConfig {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	return c
}

// open opens a locker that the test closes at its end.
func (d *database) open(t testing.TB, tree string, c *sqllock.Config) *sqllock.Locker {
	t.Helper()
	l, err := openLocker(t.Context(), d.db, configOf(t, d.dsn), tree, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l
}

// openLocker opens a locker. On a busy machine a session may begin too late for its TTL; then it is
// tried again.
func openLocker(ctx context.Context, db *sql.DB, listen *pgx.ConnConfig, tree string, c *sqllock.Config) (l *sqllock.Locker, err error) {
	err = context.DeadlineExceeded
	for attempt := 0; attempt < 10 && errors.Is(err, context.DeadlineExceeded); attempt++ {
		l, err = sqllock.Open(ctx, db, listen, tree, c)
	}
	return l, err
}

// expire moves the end of the session that has a grant to the past, as a clock that steps does.
func (d *database) expire(ctx context.Context, t lock.Token) error {
	_, err := d.db.ExecContext(ctx, "UPDATE interlock_lock_sessions SET expires = now() - interval '1 hour'"+
		" WHERE id IN (SELECT session FROM interlock_lock_requests WHERE token = $1)", int64(t))
	return err
}

var trees atomic.Int64

func newTree() string { return fmt.Sprint("tree ", trees.Add(1)) }

// eventually waits until a condition is true that follows from what has happened.
func eventually(t testing.TB, is func() bool, format string, args ...any) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			require.Fail(t, fmt.Sprintf(format, args...))
		}
	}
}
