package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// runStore runs the scripts with a store in a database. The DSN is the command's.
func runStore(t *testing.T, driver, own string, dialect sqlstore.Dialect, dsn string) {
	t.Helper()
	db, err := sql.Open(driver, own)
	require.NoError(t, err)
	defer db.Close()
	require.NoError(t, sqlstore.Migrate(t.Context(), db, dialect, nil))
	store, err := sqlstore.Open(t.Context(), db, dialect, nil)
	require.NoError(t, err)
	fill(t, store)
	require.NoError(t, store.Close())

	read, _, err := openDatabase(dsn)
	require.NoError(t, err)
	defer read.Close()
	writes := []string{"UPDATE interlock_objects SET state = 'lost'", "CREATE TABLE interlock_more (n INT)"}
	if dialect == sqlstore.MySQL {
		writes = nil // see openDatabase
	}
	for _, write := range writes {
		_, err := read.ExecContext(t.Context(), write)
		require.Error(t, err, write)
		require.Regexp(t, "(?i)read.?only", err.Error())
	}
	before := rowsOf(t, db)
	require.Contains(t, before, "vm-late")
	t.Run("scripts", func(t *testing.T) {
		runScripts(t, "testdata/store", map[string]string{"DSN": dsn}, func() error {
			_, err := db.Exec("UPDATE interlock_schema SET compatible = 99")
			return err
		})
	})
	require.Equal(t, before, rowsOf(t, db), "the command writes")
}

// rowsOf returns the content of the tables that a store writes.
func rowsOf(t *testing.T, db *sql.DB) string {
	t.Helper()
	var text strings.Builder
	for _, table := range []string{"objects", "history", "messages"} {
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM interlock_"+table)
		require.NoError(t, err)
		columns, err := rows.Columns()
		require.NoError(t, err)
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(sql.RawBytes)
		}
		for rows.Next() {
			require.NoError(t, rows.Scan(values...))
			for i, name := range columns {
				fmt.Fprintf(&text, "%s %s=%s\n", table, name, *values[i].(*sql.RawBytes))
			}
		}
		require.NoError(t, rows.Err())
	}
	return text.String()
}

func TestSQLite(t *testing.T) {
	for _, name := range []string{"vms.db", "a b?%#.db"} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name)
			dsn := "file:" + url.PathEscape(file) + "?_pragma=journal_mode(WAL)"
			runStore(t, "sqlite", dsn, sqlstore.SQLite, file)
		})
	}
}

// TestSilentServer: a database that does not answer ends the command with an error, without
// the password.
func TestSilentServer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	for _, dsn := range []string{"postgres://u:hunter2@%s/d", "mysql://u:hunter2@tcp(%s)/d"} {
		c := &call{dsn: fmt.Sprintf(dsn, silent.Addr())}
		c.http.Timeout = 10 * time.Millisecond
		err := c.openStore(t.Context())
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

// server returns the DSN of a server from the environment.
func server(t *testing.T, variable string) string {
	t.Helper()
	dsn := os.Getenv(variable)
	if dsn == "" {
		require.Empty(t, os.Getenv("REQUIRE_ENGINES"), variable+" names no server")
		t.Skip("set " + variable)
	}
	return dsn
}

// newDatabase makes a database for the test, and returns its name.
func newDatabase(t *testing.T, driver, dsn, dropping string) string {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	name := "interlock_" + strings.ToLower(rand.Text())
	_, err = db.ExecContext(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := db.Exec("DROP DATABASE " + name + dropping)
		require.NoError(t, err)
		require.NoError(t, db.Close())
	})
	return name
}

func TestPostgres(t *testing.T) {
	own, err := url.Parse(server(t, "INTERLOCK_POSTGRES_DSN"))
	require.NoError(t, err)
	own.Path = "/" + newDatabase(t, "pgx", own.String(), " WITH (FORCE)")
	runStore(t, "pgx", own.String(), sqlstore.Postgres, own.String())
}

func TestMySQL(t *testing.T) {
	own, err := mysql.ParseDSN(server(t, "INTERLOCK_MYSQL_DSN"))
	require.NoError(t, err)
	own.DBName = newDatabase(t, "mysql", own.FormatDSN(), "")
	runStore(t, "mysql", own.FormatDSN(), sqlstore.MySQL, "mysql://"+own.FormatDSN())
}

// TestSilentDatabase: the error of a database that does not answer names that.
func TestSilentDatabase(t *testing.T) {
	listener, err := net.Listen("tcp", "localhost:0") // it accepts nothing
	require.NoError(t, err)
	defer listener.Close()
	c := &call{dsn: "postgres://" + listener.Addr().String() + "/shop?sslmode=disable"}
	c.http.Timeout = 50 * time.Millisecond
	require.ErrorContains(t, c.openStore(t.Context()), "the database has not answered within 50ms")
}
