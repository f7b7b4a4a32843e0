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

// openTables finds the layouts of the tables. It refuses tables that lack what the layouts need.
func (s *Store) openTables(ctx context.Context) error {
	at, err := s.schema(ctx)
	if err != nil {
		return err
	}
	if err := s.verifySession(ctx); err != nil {
		return err
	}
	s.own = s.e.own(s.config.Prefix, at.version)
	s.own.floor = at.floor
	s.layouts = []*layout{s.own}
	for i := range s.config.Tables {
		l, err := s.config.Tables[i].layout(s.e, s.own)
		if err != nil {
			return err
		}
		for _, other := range s.layouts[1:] {
			if err := s.e.apart(l, other); err != nil {
				return err
			}
		}
		s.layouts = append(s.layouts, l)
	}
	for _, l := range s.layouts {
		for _, t := range []*table{&l.objects, &l.history} {
			if err := s.verify(ctx, t, t == &l.objects); err != nil {
				return err
			}
		}
		l.st = s.e.compile(l)
	}
	return s.verifyColumns(ctx, s.table("messages"), "number, topic, subject, payload")
}

// apart refuses two existing tables of one machine, or that share rows.
func (e *engine) apart(a, b *layout) error {
	switch {
	case a.machine == b.machine:
		return fmt.Errorf("%w: two existing tables for machine %q", lifecycle.ErrInvalid, a.machine)
	case mayBeOne(a.objects.name, b.objects.name):
		return fmt.Errorf("%w: two machines in the table %s", lifecycle.ErrInvalid, e.unquoted(a.objects.name))
	case a.history.existing && mayBeOne(a.history.name, b.history.name) &&
		(a.history.col(vMachine) == "" || b.history.col(vMachine) == ""):
		return fmt.Errorf("%w: two machines in the history %s without a column for Machine", lifecycle.ErrInvalid, e.unquoted(a.history.name))
	}
	return nil
}

// mayBeOne reports whether two names may be those of one table: without a schema, a name is that
// of a table in any schema.
func mayBeOne(a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}

// verify refuses a table that lacks what the store needs, and a table without transactions. The
// error of an existing table has every fault.
func (s *Store) verify(ctx context.Context, t *table, objects bool) error {
	faults := &TableError{Table: s.e.unquoted(t.name)}
	var storage string
	err := s.about(ctx, s.e.storage, t.name, into(&storage))
	view := storage == "view"
	switch {
	case err != nil:
		return err
	case storage != "" && !view:
		return fmt.Errorf("%w: table %s is kept by %s, which has no transactions", ErrSchema, faults.Table, storage)
	case t.existing:
		err = s.fit(ctx, faults, t, objects, view)
	default:
		err = s.verifyColumns(ctx, t.name, t.list(t.all()))
	}
	if err == nil && !view { // the engine reports no index of a view
		err = s.verifyIndexes(ctx, faults, t)
	}
	if err == nil && len(faults.Faults) > 0 {
		return faults
	}
	return err
}

// errNoTable: an engine also hides tables from a user without rights on them.
var errNoTable = fmt.Errorf("%w: the user of the connection finds no table", ErrSchema)

// verifyColumns refuses a table that does not exist or lacks columns of a list. The names may
// be in quotes.
func (s *Store) verifyColumns(ctx context.Context, table, list string) error {
	columns, err := s.columnsOf(ctx, table)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		return fmt.Errorf("%w %s", errNoTable, s.e.unquoted(table))
	}
	missing := slices.DeleteFunc(strings.Split(s.e.unquoted(list), ", "), func(name string) bool {
		_, found := columns[s.e.bare(name)]
		return found
	})
	if len(missing) > 0 {
		return fmt.Errorf("%w: table %s lacks %s", ErrSchema, s.e.unquoted(table), strings.Join(missing, ", "))
	}
	return nil
}

// verifyIndexes refuses a table without the indexes that queries need. It notes the missing
// unique index on exactly the columns of the key: a fault of an existing table.
func (s *Store) verifyIndexes(ctx context.Context, faults *TableError, t *table) error {
	unique, indexes := make(map[string]bool), make(map[string][]string)
	err := s.about(ctx, s.e.indexes, t.name, func(rows *sql.Rows) error {
		var index string
		var isUnique bool
		var name sql.NullString // NULL: a part of a column, or an expression
		err := rows.Scan(&index, &isUnique, &name)
		indexes[index], unique[index] = append(indexes[index], s.e.bare(name.String)), isUnique
		return err
	})
	if err != nil {
		return err
	}
	columns := func(list []value) []string { return strings.Split(s.e.bare(t.list(list)), ", ") }
	for _, index := range slices.Sorted(maps.Keys(t.indexes)) {
		if want := columns(t.indexes[index]); !slices.Equal(indexes[index], want) {
			return fmt.Errorf("%w: table %s has no index %s on (%s)", ErrSchema, faults.Table, index, strings.Join(want, ", "))
		}
	}
	key := columns(t.key)
	slices.Sort(key)
	for index, names := range indexes {
		if slices.Sort(names); unique[index] && slices.Equal(names, key) {
			return nil
		}
	}
	const missing = "table %s has no unique index on (%s)"
	if !t.existing {
		return fmt.Errorf("%w: "+missing, ErrSchema, faults.Table, strings.Join(key, ", "))
	}
	name := s.e.quoted(strings.ReplaceAll(faults.Table, ".", "_") + "_key")
	faults.add("CREATE UNIQUE INDEX "+name+" ON "+t.name+" ("+t.list(t.key)+")", missing, faults.Table, strings.Join(key, ", "))
	return nil
}

// columnsOf returns the columns of a table by their bare names. Without such a
// table it returns none.
func (s *Store) columnsOf(ctx context.Context, table string) (map[string]reported, error) {
	columns := make(map[string]reported)
	err := s.about(ctx, s.e.columns, table, func(rows *sql.Rows) error {
		var c reported
		err := rows.Scan(&c.name, &c.typ, &c.nullable, &c.fills)
		columns[s.e.bare(c.name)] = c
		return err
	})
	return columns, err
}

// about executes a query about a table; see engine.columns. The name of the table
// may be in quotes and have a schema.
func (s *Store) about(ctx context.Context, query, table string, scan func(*sql.Rows) error) error {
	var schema any
	table = s.e.unquoted(table)
	if before, after, ok := strings.Cut(table, "."); ok {
		schema, table = before, after
	}
	st := &statement{text: fmt.Sprintf(query, s.e.placeholder(1, "text"), s.e.placeholder(2, "text")), args: []any{table, schema}}
	return failed(ctx, s.query(ctx, st, nil, scan))
}

// verifySession refuses connections that change names of existing tables, because MySQL
// truncates text where its mode is not strict, and converts it between character sets;
// connections without autocommit or with completion_type=CHAIN, where a read or a COMMIT begins
// a transaction that nothing ends; and connections that read uncommitted rows. The bad
// schedule: the connection breaks before COMMIT reaches the server; another connection finds
// the history row of the commit, and Commit returns nil; the server then rolls the transaction
// back.
func (s *Store) verifySession(ctx context.Context) error {
	if s.e.sessionProbe == "" {
		return nil
	}
	var mode, got, name, level string
	var alone bool // every statement outside a transaction commits alone
	st := &statement{text: s.e.sessionProbe, args: []any{"\U0001F600"}}
	if err := s.query(ctx, st, nil, into(&mode, &alone, &got)); err != nil {
		return failed(ctx, err)
	}
	if err := s.query(ctx, &statement{text: s.e.isolationProbe}, nil, into(&name, &level)); err != nil {
		return failed(ctx, err)
	}
	existing := len(s.config.Tables) > 0
	switch {
	case level == "READ-UNCOMMITTED":
		return fmt.Errorf("%w: the isolation level of the connection is READ UNCOMMITTED: it reads changes that are rolled back later", lifecycle.ErrInvalid)
	case !alone:
		return fmt.Errorf("%w: the connection has no autocommit, or completion_type is CHAIN: it would read old records", lifecycle.ErrInvalid)
	case existing && !strings.Contains(mode, "STRICT_"):
		return fmt.Errorf("%w: sql_mode %q of the connection is not strict: it would truncate text", lifecycle.ErrInvalid, mode)
	case existing && got != "F09F9880":
		return fmt.Errorf("%w: the character set of the connection is not utf8mb4", lifecycle.ErrInvalid)
	}
	return nil
}

// identifiers are at most as long as in PostgreSQL, the shortest of the three.
var identifiers = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// identifier refuses a name that would need other quotes, or that an engine shortens.
func identifier(name string) error {
	if !identifiers.MatchString(name) {
		return fmt.Errorf("%w: name %q: use up to 63 ASCII letters, digits and _, with no digit first", lifecycle.ErrInvalid, name)
	}
	return nil
}

// quotedTable returns the quoted name of an existing table.
func (e *engine) quotedTable(name string) (string, error) {
	if e == sqlite && strings.Contains(name, ".") {
		return "", fmt.Errorf("%w: table %q: SQLite commits to one file: name a table of the main database, without a schema",
			lifecycle.ErrInvalid, name)
	}
	parts := strings.SplitN(name, ".", 2)
	for i, part := range parts {
		if err := identifier(part); err != nil {
			return "", err
		}
		parts[i] = e.quoted(part)
	}
	return strings.Join(parts, "."), nil
}
