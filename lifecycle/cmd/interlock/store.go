package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // driver sqlite

	"github.com/interlock-go/interlock/fsm"
	"github.com/interlock-go/interlock/lifecycle"
	"github.com/interlock-go/interlock/lifecycle/inspect"
	"github.com/interlock-go/interlock/lifecycle/sqlstore"
)

// openStore makes the client of a page in this process, over a store that is only read.
func (c *call) openStore(ctx context.Context) error {
	db, dialect, err := openDatabase(c.dsn)
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(ctx, c.http.Timeout, fmt.Errorf("the database has not answered within %v", c.http.Timeout))
	defer stop()
	store, err := sqlstore.Open(ctx, db, dialect, &sqlstore.Config{Prefix: c.prefix})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	c.close = func() { _ = errors.Join(store.Close(), db.Close()) } // there is nothing to write
	page, err := newPage(store, c.tables)
	if err != nil {
		return err
	}
	c.base, c.http.Transport = &url.URL{Scheme: "http", Host: "store"}, inProcess{page}
	return nil
}

// openDatabase opens a database for reading. PostgreSQL and SQLite refuse writes in its
// connections. MariaDB and MySQL would then also refuse to prepare the statements of the store
// that write, which the command does not execute. Errors contain no part of the DSN, because it may
// contain a password.
func openDatabase(dsn string) (*sql.DB, sqlstore.Dialect, error) {
	scheme, rest, _ := strings.Cut(dsn, "://")
	switch scheme {
	case "postgres", "postgresql":
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			return nil, sqlstore.Postgres, fmt.Errorf("%w: -dsn is not of the form postgres://user:password@host/database", errUsage)
		}
		config.RuntimeParams["default_transaction_read_only"] = "on"
		return stdlib.OpenDB(*config), sqlstore.Postgres, nil
	case "mysql":
		config, err := mysql.ParseDSN(rest)
		if err != nil {
			return nil, sqlstore.MySQL, fmt.Errorf("%w: -dsn is not of the form mysql://user:password@tcp(host)/database", errUsage)
		}
		connector, err := mysql.NewConnector(config)
		return sql.OpenDB(connector), sqlstore.MySQL, err
	}
	if _, err := os.Stat(dsn); err != nil {
		return nil, sqlstore.SQLite, fmt.Errorf("%w: -dsn is not a file of SQLite, and does not begin with postgres:// or mysql://", errUsage)
	}
	file := url.URL{Scheme: "file", Opaque: (&url.URL{Path: dsn}).EscapedPath(), RawQuery: "mode=ro&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", file.String())
	return db, sqlstore.SQLite, err
}

// newPage returns the page of the machines whose tables are in files. Each is FILE or
// VERSION=FILE.
func newPage(store lifecycle.Store, files []string) (*inspect.Page, error) {
	config := &inspect.Config{Title: "store"}
	for _, name := range files {
		version, file, ok := strings.Cut(name, "=")
		if !ok {
			version, file = "", name
		}
		machine, err := readMachine(file)
		if err != nil {
			return nil, fmt.Errorf("-table %s: %w", name, err)
		}
		manager, err := lifecycle.New(machine, store, &lifecycle.Config[string]{Version: version, Queue: noQueue{}})
		if err != nil {
			return nil, fmt.Errorf("-table %s: %w", name, err)
		}
		config.Machines = append(config.Machines, inspect.Of(manager, func(payload json.RawMessage) any { return payload }))
	}
	return inspect.New(config)
}

// readMachine reads a table. Its guards are in the programs of the service: here they refuse
// with the text that their result is unknown.
func readMachine(path string) (*fsm.Machine[string, string, json.RawMessage], error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	table, err := fsm.ReadTable(file)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{"": true}
	unknown := func(context.Context, *json.RawMessage, *json.RawMessage) error {
		return errors.New("unknown here, because guards run only in the service")
	}
	var guards []fsm.Guard[json.RawMessage]
	for _, row := range table.Rows {
		if !names[row.Guard] {
			names[row.Guard] = true
			guards = append(guards, fsm.When(row.Guard, unknown))
		}
	}
	return fsm.Bind[json.RawMessage, string, string](table, guards...)
}

// noQueue is the queue of managers that do no work: the page shows the queues that they have.
type noQueue struct{ lifecycle.Queue }

// inProcess answers requests by a handler.
type inProcess struct{ http.Handler }

// RoundTrip returns the answer of the handler.
func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}
