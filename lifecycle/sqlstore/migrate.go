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

// Version is that of the tables which this package works with.
const Version = 1

// ErrSchema: the tables of the store are not there, or not those of [Version], or
// lack columns.
var ErrSchema = errors.New("sqlstore: not the tables that are needed")

//go:embed schema/*.sql
var schemas embed.FS

// Schema is the SQL that brings the tables from the version before to a version,
// for users who run it with a tool of their own. The prefix is that of [Config];
// empty is [DefaultPrefix].
//
// Errors: [ErrIdentifier], and [ErrSchema] for a version that there is not.
func (d Dialect) Schema(prefix string, version int) (string, error) {
	c, err := (&Config{Prefix: prefix}).resolved()
	if err != nil {
		return "", err
	}
	text, err := schemas.ReadFile(fmt.Sprintf("schema/%s_%d.sql", d, version))
	if err != nil {
		return "", fmt.Errorf("%w: there is no version %d for %s", ErrSchema, version, d)
	}
	return strings.ReplaceAll(string(text), DefaultPrefix, c.Prefix), nil
}

// Migrate brings the tables to [Version], from whatever they are; several
// processes may do it at once. Of the configuration it needs the prefix.
//
// Errors: [ErrSchema] if the tables are of a newer version, [ErrIdentifier], and
// those of the driver. PostgreSQL and SQLite then have the tables as they were;
// MySQL, which has no transactions for tables, may have some of them, and the
// next Migrate makes the others.
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
	err = d.alone(ctx, conn)
	if err == nil {
		err = d.migrate(ctx, conn, c.Prefix)
	}
	if err == nil {
		if _, err = conn.ExecContext(ctx, d.end); err == nil {
			return nil
		}
		err = failed(ctx, err)
	}
	// Also after the context has ended: the connection goes back to its pool, or,
	// if it cannot be made what it was, to nobody.
	if _, undo := conn.ExecContext(context.WithoutCancel(ctx), d.undo); undo != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return err
}

// alone begins a migration, while which no other goes on.
func (e *engine) alone(ctx context.Context, conn *sql.Conn) error {
	if e.begin != "" {
		if _, err := conn.ExecContext(ctx, e.begin); err != nil {
			return e.alien(failed(ctx, err))
		}
	}
	if e.lock == "" {
		return nil
	}
	var got sql.NullString
	rows, err := conn.QueryContext(ctx, e.lock)
	err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&got) })
	if err == nil && got.String == "0" { // MySQL's answer, which is no error
		err = errors.New("sqlstore: another migration goes on for a minute")
	}
	return e.alien(failed(ctx, err))
}

// alien says, where an engine refuses the first that it is asked, what that is
// most often for.
func (e *engine) alien(err error) error {
	if err == nil || judge(err) != refused {
		return err
	}
	return fmt.Errorf("%w; is it a database of %s, as the dialect says?", err, e.name)
}

func (e *engine) migrate(ctx context.Context, q querier, prefix string) error {
	at, err := version(ctx, q, e, prefix)
	switch {
	case err != nil && !errors.Is(err, ErrSchema):
		return err
	case at > Version:
		return fmt.Errorf("%w: the tables %s* are of version %d, newer than %d", ErrSchema, prefix, at, Version)
	}
	for v := at + 1; v <= Version; v++ {
		text, err := Dialect{e}.Schema(prefix, v)
		if err != nil {
			return err
		}
		for _, st := range strings.Split(text, ";\n") {
			if strings.TrimSpace(st) == "" {
				continue
			}
			if _, err := q.ExecContext(ctx, st); err != nil {
				return failed(ctx, err)
			}
		}
	}
	return nil
}

// version reads the version of the tables: 0 and ErrSchema if there are none.
func version(ctx context.Context, q querier, e *engine, prefix string) (v int, err error) {
	types, err := e.columnsOf(ctx, q, prefix+"schema")
	if err != nil {
		return 0, err
	}
	if len(types) == 0 {
		return 0, fmt.Errorf("%w: there is no table %sschema", ErrSchema, prefix)
	}
	n := 0
	rows, err := q.QueryContext(ctx, "SELECT "+e.quoted("version")+" FROM "+e.quoted(prefix+"schema"))
	err = each(rows, err, func(rows *sql.Rows) error {
		n++
		return rows.Scan(&v)
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("%w: table %sschema has %d rows, not one", ErrSchema, prefix, n)
	}
	return v, failed(ctx, err)
}
