package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"strings"
)

// Version is the version of the tables that this package works with.
const Version = 1

//go:embed schema/*.sql
var schemas embed.FS

// Schema returns the SQL that brings the tables from the version before to a
// version, for use with a migration tool. The prefix is that of
// [Config]; empty is the default.
//
// Errors: [ErrIdentifier] for the prefix; [ErrSchema] for a version that does not
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

// Migrate brings the tables to [Version] from any version before. Several processes
// may migrate at once. Of the configuration only the prefix counts.
//
// Errors: [ErrSchema] if the tables are of a newer version; [ErrIdentifier]; the
// driver's errors. After an error PostgreSQL and SQLite have the tables as before.
// MySQL has no transactions for tables: it may have some of the new tables, and the
// next Migrate makes the rest.
func Migrate(ctx context.Context, db *sql.DB, d Dialect, config *Config) error {
	c, err := config.resolved()
	if err != nil {
		return err
	}
	if err := d.check(db); err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return failed(ctx, err)
	}
	defer conn.Close()
	in := d.session(conn)
	if err = in.beginMigrate(ctx); err == nil {
		err = in.migrate(ctx, c.Prefix)
	}
	if err == nil {
		if _, err = conn.ExecContext(ctx, d.endMigration); err == nil {
			return nil
		}
		err = failed(ctx, err)
	}
	// The connection goes back to its pool, also after the end of the context. If it
	// cannot be cleaned, the pool drops it.
	if _, undo := conn.ExecContext(context.WithoutCancel(ctx), d.undoMigration); undo != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}

// beginMigrate begins a migration, and waits for the end of others.
func (s *session) beginMigrate(ctx context.Context) error {
	if s.e.beginMigration != "" {
		if _, err := s.q.ExecContext(ctx, s.e.beginMigration); err != nil {
			return s.e.hinted(failed(ctx, err))
		}
	}
	if s.e.lockMigration == "" {
		return nil
	}
	var got sql.NullString
	err := s.query(ctx, &statement{text: s.e.lockMigration}, nil, func(rows *sql.Rows) error { return rows.Scan(&got) })
	if err == nil && got.String == "0" { // MySQL reports a timeout as a result
		err = errors.New("migrate: another migration holds the lock for a minute")
	}
	return s.e.hinted(failed(ctx, err))
}

// hinted adds the usual reason to an error of the first statement: the dialect is
// that of another engine.
func (e *engine) hinted(err error) error {
	if err == nil || classify(err) != refused {
		return err
	}
	return fmt.Errorf("%w; is it a database of %s, as the dialect requires?", err, e.name)
}

func (s *session) migrate(ctx context.Context, prefix string) error {
	at, err := s.version(ctx, prefix)
	switch {
	case err != nil && !errors.Is(err, ErrSchema):
		return err
	case at > Version:
		return fmt.Errorf("%w: the tables %s* are of version %d, newer than %d", ErrSchema, prefix, at, Version)
	}
	for v := at + 1; v <= Version; v++ {
		text, err := Dialect{s.e}.Schema(prefix, v)
		if err != nil {
			return err
		}
		for _, st := range strings.Split(text, ";\n") {
			if strings.TrimSpace(st) == "" {
				continue
			}
			if _, err := s.q.ExecContext(ctx, st); err != nil {
				return failed(ctx, err)
			}
		}
	}
	return nil
}

// version reads the version of the tables. Without tables it is 0, with ErrSchema.
func (s *session) version(ctx context.Context, prefix string) (v int, err error) {
	types, err := s.columnTypes(ctx, prefix+"schema")
	if err != nil {
		return 0, err
	}
	if len(types) == 0 {
		return 0, fmt.Errorf("%w: there is no table %sschema", ErrSchema, prefix)
	}
	n := 0
	st := &statement{text: "SELECT " + s.e.quoted("version") + " FROM " + s.e.quoted(prefix+"schema")}
	err = s.query(ctx, st, nil, func(rows *sql.Rows) error {
		n++
		return rows.Scan(&v)
	})
	if err == nil && n != 1 {
		return 0, fmt.Errorf("%w: table %sschema has %d rows, not one", ErrSchema, prefix, n)
	}
	return v, failed(ctx, err)
}

// verifyVersion refuses tables of another version.
func (s *session) verifyVersion(ctx context.Context, prefix string) error {
	v, err := s.version(ctx, prefix)
	if err == nil && v != Version {
		err = fmt.Errorf("%w: the tables %s* are of version %d, the store requires version %d", ErrSchema, prefix, v, Version)
	}
	return err
}
