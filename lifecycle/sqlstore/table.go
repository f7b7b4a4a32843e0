package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// complete refuses tables that are not as the layout has them.
func (e *engine) complete(ctx context.Context, q querier, l *layout) error {
	if err := e.find(ctx, q, l.table, l.columns()); err != nil {
		return err
	}
	if l.history != "" {
		if err := e.find(ctx, q, l.history, l.historyColumns()); err != nil {
			return err
		}
	}
	if l.messages == "" {
		return nil
	}
	return e.find(ctx, q, l.messages, []column{{name: "number"}, {name: "topic"}, {name: "subject"}, {name: "payload"}})
}

// column is one that a table is to have.
type column struct {
	name   string
	text   bool // names that are to come back as they were written, in a user's table
	moment bool // a time of the engine's own type
	key    bool // of the unique key
}

func (l *layout) columns() []column {
	list := make([]column, columns)
	for v := range columns {
		list[v] = column{
			l.column[v], l.foreign && v.kind() == ofText, l.native && (v == vChangedAt || v == vDeadline), l.foreign && v == vID,
		}
	}
	return list
}

func (l *layout) historyColumns() []column {
	list := make([]column, historyColumns)
	for p := range historyColumns {
		list[p] = column{
			l.historyColumn[p], l.foreignHistory && historyValues[p].kind() == ofText, l.foreignHistory && l.native && p == hAt,
			l.foreignHistory && (p == hMachine || p == hID || p == hSequence),
		}
	}
	return list
}

// find refuses a table that is not there, or lacks a column, or, where it is a
// user's, is not fit for what it is to keep. The names may be quoted, and columns
// without a name are not there.
func (e *engine) find(ctx context.Context, q querier, table string, list []column) error {
	plain := func(name string) string { return strings.ReplaceAll(name, e.quote, "") }
	table = plain(table)
	types, err := e.columnsOf(ctx, q, table)
	if err != nil {
		return err
	}
	if len(types) == 0 {
		return fmt.Errorf("%w: there is no table %s", ErrSchema, table)
	}
	var missing, key []string
	for _, c := range list {
		if c.name == "" {
			continue
		}
		name := strings.ToLower(plain(c.name))
		is, there := types[name]
		switch {
		case !there:
			missing = append(missing, plain(c.name))
		case c.moment && e.moment != "" && !strings.EqualFold(is, e.moment):
			return fmt.Errorf("%w: column %s of table %s is %s, times are %s", ErrSchema, plain(c.name), table, is, e.moment)
		case c.text && e.oneWriter && !keepsText(is):
			return fmt.Errorf("%w: column %s of table %s is %s, which takes what looks like a number for one; names are TEXT", ErrSchema, plain(c.name), table, is)
		}
		if c.key {
			key = append(key, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: table %s lacks %s", ErrSchema, table, strings.Join(missing, ", "))
	}
	if len(key) == 0 {
		return nil
	}
	return e.keyed(ctx, q, table, key)
}

// keepsText reports whether SQLite leaves text as it is in a column of a type:
// its affinity is TEXT, or none.
func keepsText(is string) bool {
	is = strings.ToUpper(is)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(is, word) })
	}
	return is == "" || !has("INT") && has("CHAR", "CLOB", "TEXT", "BLOB")
}

// keyed refuses a table that has no unique index on just these columns, or is
// kept where transactions are none. What is behind a view is the user's to know.
func (e *engine) keyed(ctx context.Context, q querier, table string, key []string) error {
	var storage string
	rows, err := e.about(ctx, q, e.made, table)
	err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&storage) })
	switch {
	case err != nil:
		return failed(ctx, err)
	case storage == "view":
		return nil
	case storage != "" && storage != e.stores:
		return fmt.Errorf("%w: table %s is of %s, which has no transactions", ErrSchema, table, storage)
	}
	unique := make(map[string][]string)
	rows, err = e.about(ctx, q, e.unique, table)
	err = each(rows, err, func(rows *sql.Rows) error {
		var index string
		var name sql.NullString // none: a part of one, or an expression
		err := rows.Scan(&index, &name)
		unique[index] = append(unique[index], strings.ToLower(name.String))
		return err
	})
	if err != nil {
		return failed(ctx, err)
	}
	slices.Sort(key)
	for names := range maps.Values(unique) {
		if slices.Sort(names); slices.Equal(names, key) {
			return nil
		}
	}
	return fmt.Errorf("%w: table %s has no unique index on (%s)", ErrSchema, table, strings.Join(key, ", "))
}

// columnsOf returns the types of a table's columns by their names in lower case;
// none if there is no such table. The name may be qualified by a schema.
func (e *engine) columnsOf(ctx context.Context, q querier, table string) (map[string]string, error) {
	types := make(map[string]string)
	rows, err := e.about(ctx, q, e.columns, table)
	err = each(rows, err, func(rows *sql.Rows) error {
		var name, is string
		err := rows.Scan(&name, &is)
		types[strings.ToLower(name)] = is
		return err
	})
	return types, e.alien(failed(ctx, err))
}

// about asks for what the engine knows of a table.
func (e *engine) about(ctx context.Context, q querier, query, table string) (*sql.Rows, error) {
	var schema any
	if before, after, ok := strings.Cut(table, "."); ok {
		schema, table = before, after
	}
	return q.QueryContext(ctx, fmt.Sprintf(query, e.placeholder(1, ofText), e.placeholder(2, ofText)), table, schema)
}

// honest refuses connections by which a user's table would get other names than
// were given: MySQL cuts what is too long where its mode is not strict, and takes
// one character set for another.
func (e *engine) honest(ctx context.Context, q querier) error {
	if e.probe == "" {
		return nil
	}
	var mode, got string
	rows, err := q.QueryContext(ctx, e.probe, "\U0001F600")
	err = each(rows, err, func(rows *sql.Rows) error { return rows.Scan(&mode, &got) })
	switch {
	case err != nil:
		return failed(ctx, err)
	case !strings.Contains(mode, "STRICT_"):
		return fmt.Errorf("%w: the connection's sql_mode %q is not strict: what is too long for a user's table would be cut", lifecycle.ErrInvalid, mode)
	case got != "F09F9880":
		return fmt.Errorf("%w: the connection's character set is not utf8mb4", lifecycle.ErrInvalid)
	}
	return nil
}
