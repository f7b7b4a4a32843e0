package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Version is the version of the tables that [Migrate] makes. [Open] also accepts:
//
//   - Tables of version 1. [Store.Commit] refuses a Fence then, for which they have no column.
//   - Tables of a newer version, if the column compatible of the table interlock_schema is
//     not above Version. A migration that only adds keeps it.
//
// Processes of adjacent versions can therefore run side by side, before, during and after
// a migration. A migration that older processes cannot live with raises compatible. It
// also renames a column that every statement of theirs names, so that the engine refuses
// what running ones send, and they report [ErrSchema].
const Version = 2

//go:embed schema/*.sql
var schemas embed.FS

// Schema returns the SQL that brings the tables from the version before to a version,
// for use with a migration tool of the caller: run version 1, then version 2 and so on,
// each once and with nothing else. The last statement of each writes the version. It is
// the text of a file in the directory schema of this package, such as postgres_1.sql,
// with the tables named by the prefix, which is that of [Config]; empty is the default.
// Statements end with a semicolon at the end of a line.
//
// Errors: [lifecycle.ErrInvalid] for the prefix; [ErrSchema] for a version that does not
// exist.
func (d Dialect) Schema(prefix string, version int) (string, error) {
	c, err := (&Config{Prefix: prefix}).resolved()
	if err != nil {
		return "", err
	}
	text, err := schemas.ReadFile(fmt.Sprintf("schema/%s_%d.sql", d, version))
	if err != nil {
		return "", fmt.Errorf("%w: there is no version %d for %s", ErrSchema, version, d)
	}
	return strings.ReplaceAll(string(text), defaultPrefix, c.Prefix), nil
}

// Migrate brings the tables to [Version] from any version before. It does nothing if the
// tables are of a newer version that is compatible. Several processes may migrate at once,
// while others use the tables. Of the configuration only Prefix, RetryFor and Progress count.
//
// Errors: [ErrSchema] if the tables are of a newer version that is not compatible, or on
// PostgreSQL if search_path finds them in another schema than the one where new tables
// are made; [lifecycle.ErrInvalid] for the prefix; the driver's errors. After an error
// PostgreSQL and SQLite have the tables as before. MySQL has no transactions for tables: it
// may have some of the new tables, and the next Migrate makes the rest.
func Migrate(ctx context.Context, db *sql.DB, d Dialect, config *Config) error {
	s, err := newStore(db, d, config)
	if err != nil {
		return err
	}
	return s.call(ctx, func() error { return s.migrate(ctx) })
}

// migrate executes a migration on a connection of its own.
func (s *Store) migrate(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return failed(ctx, err)
	}
	defer conn.Close()
	ended := false
	defer func() {
		if ended {
			return
		}
		// The connection goes back to its pool, also after the end of the context or a panic
		// of Progress. If it cannot be cleaned in time, the pool drops it.
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), undoFor)
		defer stop()
		// SQLite undoes some migrations itself, and ROLLBACK is then a fault of the statement. A
		// database in memory would end with its connection.
		if _, undo := conn.ExecContext(ctx, s.e.undoMigration); undo != nil && classify(undo) != unknownName {
			_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		}
	}()
	in := &Store{shared: s.shared, q: conn}
	if err := in.beginMigrate(ctx); err != nil {
		return err
	}
	if err := in.upgrade(ctx); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, s.e.endMigration); err != nil {
		return failed(ctx, err)
	}
	ended = true
	return nil
}

// undoFor bounds how long the engine may take to undo a migration. The end of the caller's
// context does not shorten it.
const undoFor = 5 * time.Second

// beginMigrate begins a migration, and waits for the end of others.
func (s *Store) beginMigrate(ctx context.Context) error {
	for _, text := range s.e.beginMigration {
		var got sql.NullString
		err := s.query(ctx, &statement{text: text}, nil, into(&got))
		if err == nil && got.String == "0" { // MySQL reports the end of the wait as a result
			err = errLocked
		}
		if err != nil {
			return failed(ctx, err)
		}
	}
	return nil
}

// upgrade executes the statements of the versions that the tables lack.
func (s *Store) upgrade(ctx context.Context) error {
	at, err := s.schema(ctx)
	if !errors.Is(err, errNoTable) {
		// Tables must not be in another schema than the one where new tables are made.
		if s.e.elsewhere != "" {
			var there, here string
			if err := s.about(ctx, s.e.elsewhere, s.table("schema"), into(&there, &here)); err != nil {
				return err
			} else if there != here {
				return fmt.Errorf("%w: the tables %s* are in schema %q, and search_path makes new tables in schema %q",
					ErrSchema, s.config.Prefix, there, here)
			}
		}
		if err != nil && !errors.Is(err, errNoVersion) {
			return err
		}
	}
	for v := at.version + 1; v <= Version; v++ {
		s.config.Progress("migrate tables "+s.config.Prefix+"*", v-1, Version)
		text, err := Dialect{s.e}.Schema(s.config.Prefix, v)
		if err != nil {
			return err
		}
		for st := range strings.SplitSeq(text, ";\n") {
			if strings.TrimSpace(st) == "" {
				continue
			}
			// An earlier run, which ended half-way, may have executed the statement.
			if _, err := s.q.ExecContext(ctx, st); err != nil && classify(err) != executed {
				return failed(ctx, err)
			}
		}
	}
	return nil
}

// schema is the row about the store's own tables. Zero: there are none.
type schema struct {
	version    int
	compatible int    // the oldest version of a store that can use the tables
	floor      uint64 // see layout.floor
}

// errNoVersion: a migration of MySQL has ended before it wrote the version.
var errNoVersion = errors.New("the version is missing")

// schema reads the row about the tables. It refuses tables that this version cannot use.
func (s *Store) schema(ctx context.Context) (at schema, err error) {
	prefix := s.config.Prefix
	err = s.verifyColumns(ctx, s.table("schema"), "version, compatible, floor, trimmed_at, trimmed_to, trimmed_keep")
	if errors.Is(err, errNoTable) {
		err = fmt.Errorf("%w: call Migrate first", err)
	}
	if err != nil {
		return at, err
	}
	n := 0
	st := &statement{text: "SELECT version, compatible, " + s.e.quoted("floor") + " FROM " + s.table("schema")}
	err = s.query(ctx, st, nil, func(rows *sql.Rows) error {
		n++
		return rows.Scan(&at.version, &at.compatible, &at.floor)
	})
	switch {
	case err != nil:
		return at, failed(ctx, err)
	case n == 0:
		return at, fmt.Errorf("%w: table %sschema has no row: %w", ErrSchema, prefix, errNoVersion)
	case n > 1:
		return at, fmt.Errorf("%w: table %sschema has %d rows, not one", ErrSchema, prefix, n)
	case at.compatible > Version:
		return at, fmt.Errorf("%w: the tables %s* are of version %d, for stores of version %d and later; this one is of version %d",
			ErrSchema, prefix, at.version, at.compatible, Version)
	}
	return at, nil
}
