package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// verified returns the layout of the store's own tables, and those of the existing tables. It
// refuses tables that lack what their layouts need.
func (e *engine) verified(ctx context.Context, db *sql.DB, c *Config) ([]*layout, error) {
	probe := e.session(db)
	about, err := probe.schema(ctx, c.Prefix)
	if err != nil {
		return nil, err
	}
	own := e.own(c.Prefix, about.version)
	own.floor = about.floor
	if err := probe.verifySession(ctx, len(c.Tables) > 0); err != nil {
		return nil, err
	}
	all := []*layout{own}
	for i := range c.Tables {
		l, err := c.Tables[i].layout(e, own)
		if err != nil {
			return nil, err
		}
		for _, other := range all[1:] {
			if err := e.apart(l, other); err != nil {
				return nil, err
			}
		}
		all = append(all, l)
	}
	for _, l := range all {
		for _, t := range []*table{&l.objects, &l.history} {
			if err := probe.verify(ctx, t, t == &l.objects); err != nil {
				return nil, err
			}
		}
	}
	return all, probe.verifyColumns(ctx, c.Prefix+"messages", []string{"number", "topic", "subject", "payload"})
}

// apart refuses two existing tables of one machine, or that share rows.
func (e *engine) apart(a, b *layout) error {
	switch {
	case a.machine == b.machine:
		return fmt.Errorf("%w: two existing tables for machine %q", lifecycle.ErrInvalid, a.machine)
	case strings.EqualFold(a.objects.name, b.objects.name):
		return fmt.Errorf("%w: two machines in the table %s", lifecycle.ErrInvalid, e.unquoted(a.objects.name))
	case a.history.existing && strings.EqualFold(a.history.name, b.history.name) &&
		(a.history.col(vMachine) == "" || b.history.col(vMachine) == ""):
		return fmt.Errorf("%w: two machines in the history %s without a column for Machine", lifecycle.ErrInvalid, e.unquoted(a.history.name))
	}
	return nil
}

// verify refuses a table that lacks what the store needs.
func (s *session) verify(ctx context.Context, t *table, objects bool) error {
	if t.existing {
		return s.verifyExisting(ctx, t, objects)
	}
	if err := s.verifyColumns(ctx, t.name, t.names(t.all())); err != nil {
		return err
	}
	return s.verifyIndexes(ctx, t, nil)
}

var errNoTable = fmt.Errorf("%w: there is no table", ErrSchema)

// verifyColumns refuses a table that does not exist or lacks columns. Names may be quoted
// or empty.
func (s *session) verifyColumns(ctx context.Context, table string, names []string) error {
	table = s.e.unquoted(table)
	columns, err := s.columnsOf(ctx, table)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		return fmt.Errorf("%w %s", errNoTable, table)
	}
	var missing []string
	for _, name := range names {
		name = s.e.unquoted(name)
		if _, found := columns[strings.ToLower(name)]; !found && name != "" {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: table %s lacks %s", ErrSchema, table, strings.Join(missing, ", "))
	}
	return nil
}

// keepsText reports whether SQLite stores text unchanged in a column of a type: its
// affinity is TEXT or none.
func keepsText(typ string) bool {
	typ = strings.ToUpper(typ)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(typ, word) })
	}
	return typ == "" || !has("INT") && has("CHAR", "CLOB", "TEXT", "BLOB")
}

// verifyIndexes refuses a table without a unique index on exactly the columns of its key,
// a table without the other indexes that it needs, and a table without transactions. Of a
// view none of this is known. In an existing table, a missing unique index is noted in e.
func (s *session) verifyIndexes(ctx context.Context, t *table, e *TableError) error {
	table := s.e.unquoted(t.name)
	columns := func(list []value) []string {
		return strings.Split(strings.ToLower(s.e.unquoted(strings.Join(t.names(list), ","))), ",")
	}
	var storage string
	err := s.about(ctx, s.e.storage, table, func(rows *sql.Rows) error { return rows.Scan(&storage) })
	switch {
	case err != nil || storage == "view":
		return err
	case storage != "" && storage != s.e.transactional:
		return fmt.Errorf("%w: table %s is kept by %s, which has no transactions", ErrSchema, table, storage)
	}
	unique, indexes := make(map[string]bool), make(map[string][]string)
	err = s.about(ctx, s.e.indexes, table, func(rows *sql.Rows) error {
		var index string
		var isUnique bool
		var name sql.NullString // NULL: a part of a column, or an expression
		err := rows.Scan(&index, &isUnique, &name)
		indexes[index], unique[index] = append(indexes[index], strings.ToLower(name.String)), isUnique
		return err
	})
	if err != nil {
		return err
	}
	for _, index := range slices.Sorted(maps.Keys(t.indexes)) {
		if want := columns(t.indexes[index]); !slices.Equal(indexes[index], want) {
			return fmt.Errorf("%w: table %s has no index %s on (%s)", ErrSchema, table, index, strings.Join(want, ", "))
		}
	}
	key := columns(t.key)
	slices.Sort(key)
	for index, names := range indexes {
		if slices.Sort(names); unique[index] && slices.Equal(names, key) {
			return nil
		}
	}
	if e == nil {
		return fmt.Errorf("%w: table %s has no unique index on (%s)", ErrSchema, table, strings.Join(key, ", "))
	}
	e.fault("CREATE UNIQUE INDEX "+s.e.quoted(strings.ReplaceAll(table, ".", "_")+"_key")+" ON "+t.name+" ("+t.list(t.key)+")",
		"table %s has no unique index on (%s)", table, strings.Join(key, ", "))
	return nil
}

// columnsOf returns the columns of a table by their names in lower case. Without such a
// table it returns none.
func (s *session) columnsOf(ctx context.Context, table string) (map[string]reported, error) {
	columns := make(map[string]reported)
	err := s.about(ctx, s.e.columns, table, func(rows *sql.Rows) error {
		var c reported
		err := rows.Scan(&c.name, &c.typ, &c.nullable, &c.fills)
		columns[strings.ToLower(c.name)] = c
		return err
	})
	return columns, s.e.hinted(err)
}

// about executes a query about a table; see engine.columns. The name of the table
// may have a schema.
func (s *session) about(ctx context.Context, query, table string, scan func(*sql.Rows) error) error {
	var schema any
	if before, after, ok := strings.Cut(table, "."); ok {
		schema, table = before, after
	}
	st := &statement{text: fmt.Sprintf(query, s.e.placeholder(1, ofText), s.e.placeholder(2, ofText)), args: []any{table, schema}}
	return failed(ctx, s.query(ctx, st, nil, scan))
}

// verifySession refuses connections that change names of existing tables, because MySQL
// truncates text where its mode is not strict, and converts it between character sets; and
// connections that read uncommitted rows. The bad schedule: the connection breaks before COMMIT
// reaches the server; another connection finds the history row of the commit, and Commit
// returns nil; the server then rolls the transaction back.
func (s *session) verifySession(ctx context.Context, existing bool) error {
	if s.e.sessionProbe == "" {
		return nil
	}
	var mode, got, name, level string
	st := &statement{text: s.e.sessionProbe, args: []any{"\U0001F600"}}
	if err := s.query(ctx, st, nil, func(rows *sql.Rows) error { return rows.Scan(&mode, &got) }); err != nil {
		return failed(ctx, err)
	}
	st, uncommitted := &statement{text: s.e.isolationProbe}, false
	err := s.query(ctx, st, nil, func(rows *sql.Rows) error {
		err := rows.Scan(&name, &level)
		uncommitted = uncommitted || level == "READ-UNCOMMITTED"
		return err
	})
	switch {
	case err != nil:
		return failed(ctx, err)
	case uncommitted:
		return fmt.Errorf("%w: the isolation level of the connection is READ UNCOMMITTED: it reads changes that are rolled back later", lifecycle.ErrInvalid)
	case existing && !strings.Contains(mode, "STRICT_"):
		return fmt.Errorf("%w: sql_mode %q of the connection is not strict: it would truncate text", lifecycle.ErrInvalid, mode)
	case existing && got != "F09F9880":
		return fmt.Errorf("%w: the character set of the connection is not utf8mb4", lifecycle.ErrInvalid)
	}
	return nil
}

// identifiers are at most as long as in PostgreSQL, the shortest of the three.
var identifiers = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// identifier refuses a name that is not a letter or _, followed by letters, digits
// and _.
func identifier(name string) error {
	if !identifiers.MatchString(name) {
		return fmt.Errorf("%w: %q is not a valid identifier", lifecycle.ErrInvalid, name)
	}
	return nil
}

// quotedTable returns the quoted name of an existing table.
func (e *engine) quotedTable(name string) (string, error) {
	parts := strings.Split(name, ".")
	if len(parts) > 2 {
		return "", fmt.Errorf("%w: %q is not a valid identifier", lifecycle.ErrInvalid, name)
	}
	for i, part := range parts {
		if err := identifier(part); err != nil {
			return "", err
		}
		parts[i] = e.quoted(part)
	}
	return strings.Join(parts, "."), nil
}
