package main

import (
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // driver sqlite

	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

//go:embed schema.sql
var schema string

// table maps the columns of schema.sql. The history, the owners and what else the library
// keeps are in tables of the library in the same database.
var table = sqlstore.ExistingTable{
	Machine: "vm", Table: "vms",
	Columns: sqlstore.ColumnMap{
		ID: "name", State: "state", Version: "version", Origin: "origin", Revision: "revision", Token: "token",
		Sequence: "sequence", ChangeToken: "change_token", Operation: "operation", Admission: "admission",
		Owner: "owner", Epoch: "epoch", Work: "work", Args: "args", WorkOptions: "work_options",
		Deadline: "deadline", ChangedAt: "changed_at", Event: "event", Actor: "actor", Reason: "reason",
	},
	Fields: map[string]string{"image": "image", "cpus": "cpus", "memory": "memory", "address": "address"},
	Types:  map[string]sqlstore.Type{"cpus": sqlstore.Integer, "memory": sqlstore.Integer},
	Micros: true,
}

// openStore opens the store, and creates its tables first if -migrate is set.
func openStore(ctx context.Context, db *sql.DB, dialect sqlstore.Dialect) (*sqlstore.Store, error) {
	if *migrate {
		if err := createTables(ctx, db, dialect); err != nil {
			return nil, err
		}
	}
	// Open refuses a table that does not fit, with the SQL that changes it.
	store, err := sqlstore.Open(ctx, db, dialect, &sqlstore.Config{Tables: []sqlstore.ExistingTable{table}})
	if errors.Is(err, sqlstore.ErrSchema) && !*migrate {
		return nil, fmt.Errorf("%w (-migrate creates missing tables)", err)
	}
	return store, err
}

// createTables creates the tables that are missing, and updates those of the library.
func createTables(ctx context.Context, db *sql.DB, dialect sqlstore.Dialect) error {
	show, clear := progress()
	defer clear()
	if err := sqlstore.Migrate(ctx, db, dialect, &sqlstore.Config{Progress: show}); err != nil {
		return err
	}
	_, err := db.ExecContext(ctx, schema)
	return err
}

// connect opens a SQLite file, or the PostgreSQL of a URL.
func connect(name string) (*sql.DB, sqlstore.Dialect, error) {
	if strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://") {
		config, err := postgres(name)
		if err != nil {
			return nil, sqlstore.Postgres, err
		}
		return stdlib.OpenDB(*config), sqlstore.Postgres, nil
	}
	if name == "" { // SQLite would keep the VMs until the process ends
		return nil, sqlstore.SQLite, errors.New("-db names no file and no database")
	}
	if strings.Contains(name, "://") {
		return nil, sqlstore.SQLite, errors.New("-db is the name of a SQLite file, or a URL that begins with postgres://")
	}
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: name}).EscapedPath()}
	file.RawQuery = "_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"
	db, err := sql.Open("sqlite", file.String())
	return db, sqlstore.SQLite, err
}

const idleTimeout = "idle_in_transaction_session_timeout" // in milliseconds

// postgres adds a setting to a URL, unless it has one: the server ends a transaction whose
// replica sends nothing for the TTL. The bad schedule without it: a replica is paused, or cut
// off, between two statements, and its row locks stop the sweeps of all other replicas. A
// pooler in front of the server has to permit the setting.
func postgres(url string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	settings := config.RuntimeParams
	settings[idleTimeout] = cmp.Or(settings[idleTimeout], strconv.FormatInt(ttl.Milliseconds(), 10))
	return config, nil
}

// progress shows on a terminal how far a migration is, as one line that clear removes. It
// is nil elsewhere.
func progress() (show func(what string, done, total int), clear func()) {
	info, err := os.Stderr.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil, func() {}
	}
	line := func(text string) { fmt.Fprint(os.Stderr, "\r\x1b[K", text) }
	return func(what string, done, total int) { line(fmt.Sprintf("%s: %d of %d", what, done, total)) }, func() { line("") }
}

// trim deletes history that is older than 90 days, once an hour until ctx ends. A request
// id is remembered as long as its row in the history.
func trim(ctx context.Context, store *sqlstore.Store) {
	every := time.Tick(time.Hour)
	for {
		if _, err := store.Trim(ctx, 90*24*time.Hour, 0); err != nil {
			slog.Warn("the history was not trimmed", "error", err)
		}
		select {
		case <-every:
		case <-ctx.Done():
			return
		}
	}
}
