package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// TableError is why an existing table does not fit its [ExistingTable]. It matches
// [ErrSchema].
type TableError struct {
	Table  string
	Faults []string // each names a column and the reason
	// Fix are SQL statements, each ended by a semicolon and a new line, that correct the
	// faults. Empty: there are none. Read them before you execute them: they change types and
	// defaults. To change a time, PostgreSQL takes one without a time zone for one in that of
	// the session, and MySQL converts a timestamp to that of the session, which has to be UTC.
	// A fault has no statement if the caller has a choice, or if SQLite, which cannot change a
	// column, has none.
	Fix string

	rebuild string // how to correct the faults for which SQLite has no statement
}

// Error implements error.
func (e *TableError) Error() string {
	text := fmt.Sprintf("%v: %s%s", ErrSchema, strings.Join(e.Faults, "; "), e.rebuild)
	if e.Fix == "" {
		return text
	}
	return text + "; this corrects what a statement can: " + strings.ReplaceAll(strings.TrimSpace(e.Fix), "\n", " ")
}

// Unwrap returns [ErrSchema].
func (e *TableError) Unwrap() error { return ErrSchema }

// rebuild is how to correct a column in SQLite.
const rebuild = "; SQLite cannot change a column: name a new column of the right type, or make the table anew" +
	" with the columns of ExistingTable.Schema (https://sqlite.org/lang_altertable.html#otheralter)"

// add notes a fault and the statement that corrects it. Empty: there is none.
func (e *TableError) add(fix, text string, args ...any) {
	e.Faults = append(e.Faults, fmt.Sprintf(text, args...))
	if fix != "" {
		e.Fix += fix + ";\n"
	}
}

// reported is what an engine reports about a column.
type reported struct {
	name     string
	typ      string
	nullable bool
	fills    bool // a row that does not name the column gets a value
}

// fit notes the faults of the columns of an existing table. Of a view the engine does not report
// what may be NULL.
func (s *Store) fit(ctx context.Context, faults *TableError, t *table, objects, view bool) error {
	columns, err := s.columnsOf(ctx, t.name)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		faults.add(strings.TrimSuffix(s.e.create(t, objects), ";\n"), "the user of the connection finds no table %s", faults.Table)
		return faults
	}
	for _, v := range t.all() {
		name := s.e.bare(t.col(v))
		c, found := columns[name]
		delete(columns, name)
		t.column[v].sqlType = c.typ
		want, typ := s.e.typeOf(t, v), t.column[v].typ
		switch {
		case !found:
			s.missing(faults, t, v)
			continue
		case typ == nil && !s.e.takes(t, v, c.typ):
			faults.add(faults.alter(s.e.alterType, t.name, t.col(v), want), "column %s of table %s is %s, not %s", c.name, faults.Table, c.typ, want)
		case typ != nil && slices.ContainsFunc(typ.unfit, func(k kind) bool { return s.e.isOf(k, c.typ) }):
			// No statement, because the Type may be what is wrong.
			faults.add("", "column %s of table %s is %s, not %s or similar: change it, or its type in Types", c.name, faults.Table, c.typ, want)
		}
		if !view {
			s.checkNull(faults, t, v, &c, objects)
		}
	}
	if !view {
		s.checkOthers(faults, columns)
	}
	return nil
}

// missing notes a column that the table lacks.
func (s *Store) missing(faults *TableError, t *table, v value) {
	fix, rows := fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", t.name, t.col(v), s.e.typeOf(t, v)), ""
	if v == vSequence && slices.Contains(t.key, v) { // of a history: the unique index needs other numbers
		rows = ": number the rows that each object has, 0 and -1 and so on from the newest"
	}
	switch {
	case v == vID || v == vState:
		fix = "" // no value fits all rows
	case slices.Contains(required, v):
		fix += " NOT NULL DEFAULT 0"
	}
	faults.add(fix, "table %s lacks %s%s", faults.Table, s.e.unquoted(t.col(v)), rows)
}

// checkNull notes a column that must not be NULL and may, and the other way round.
func (s *Store) checkNull(faults *TableError, t *table, v value, c *reported, objects bool) {
	switch {
	case objects && c.nullable && slices.Contains(required, v) && v != vID:
		fix, rows := faults.alter(s.e.alterNull, t.name, t.col(v), c.typ, "SET", "NOT NULL"), ""
		if fix != "" && v.kind() == ofNumber {
			fix = fmt.Sprintf("UPDATE %[1]s SET %[2]s = 0 WHERE %[2]s IS NULL;\n", t.name, t.col(v)) + fix
		}
		if v == vState {
			rows = ": write a state into all rows first"
		}
		faults.add(fix, "column %s of table %s may be NULL, which equals no value that a commit expects%s", c.name, faults.Table, rows)
	case !c.nullable && (v < values && v.emptied() || t.column[v].typ != nil && slices.Contains(unnamed, v)):
		fix := faults.alter(s.e.alterNull, t.name, t.col(v), c.typ, "DROP", "NULL")
		faults.add(fix, "column %s of table %s is NOT NULL, and the store writes NULL where a record has no value", c.name, faults.Table)
	}
}

// checkOthers notes the other columns that a new row leaves empty, and must not.
func (s *Store) checkOthers(faults *TableError, others map[string]reported) {
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if c := others[name]; !c.nullable && !c.fills {
			faults.add("", "column %s of table %s is NOT NULL without a default, and the store writes no value into it:"+
				" name it in Fields, give it a default, or allow NULL", c.name, faults.Table)
		}
	}
}

// alter returns a statement that changes a column, or an empty string if the engine has none.
func (e *TableError) alter(format string, args ...any) string {
	if format == "" {
		e.rebuild = rebuild
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// typeOf returns the type of a column in a new table.
func (e *engine) typeOf(t *table, v value) string {
	switch {
	case t.column[v].typ != nil:
		return t.column[v].typ.sql(e)
	case v.isTime() && t.nativeTimes:
		return e.timeType
	case v == vToken && e.tokenType != "":
		return e.tokenType
	}
	return e.newTypes[v.kind()]
}

// keepsText finds the types of columns of SQLite whose affinity is TEXT or none, but for those
// with "int" in their names.
var keepsText = regexp.MustCompile("char|clob|text|blob")

// takes reports whether a column of a type keeps the values unchanged.
func (e *engine) takes(t *table, v value, typ string) bool {
	typ = strings.ToLower(typ)
	switch {
	case v.isTime() && t.nativeTimes:
		return typ == e.timeType
	case e.oneWriter && v.kind() == ofText:
		return typ == "" || keepsText.MatchString(typ) && !strings.Contains(typ, "int")
	case e.oneWriter: // it stores bytes as bytes in a column of any type
		return v.kind() == ofBytes || typ == "" || strings.Contains(typ, "int")
	}
	return e.isOf(v.kind(), typ)
}

// isOf reports whether the type of a column is one for values of a kind.
func (e *engine) isOf(k kind, typ string) bool { return beginsAs(typ, e.oldTypes[k]) }

// beginsAs reports whether the type of a column begins as one of a list.
func beginsAs(typ string, list []string) bool {
	return slices.ContainsFunc(list, func(prefix string) bool { return strings.HasPrefix(strings.ToLower(typ), prefix) })
}

// isDefinite reports whether the type of a column begins with the words of one of definite. They
// are whole words: a type that is declared in the database may begin as one.
func (e *engine) isDefinite(typ string) bool {
	return slices.ContainsFunc(e.definite, func(words string) bool {
		rest, found := strings.CutPrefix(strings.ToLower(typ), words)
		return found && (rest == "" || rest[0] == ' ' || rest[0] == '(')
	})
}

// create returns the statement that makes a table.
func (e *engine) create(t *table, objects bool) string {
	var lines []string
	for _, v := range t.all() {
		line := "\t" + t.col(v) + " " + e.typeOf(t, v)
		switch {
		case objects && slices.Contains(required, v) && v.kind() == ofNumber:
			line += " NOT NULL DEFAULT 0"
		case objects && slices.Contains(required, v), !objects && (v == vMachine || v == vID || v == vSequence || v == vToken):
			line += " NOT NULL"
		}
		lines = append(lines, line)
	}
	lines = append(lines, "\tPRIMARY KEY ("+t.list(t.key)+")")
	return "CREATE TABLE " + t.name + " (\n" + strings.Join(lines, ",\n") + "\n)" + e.tableOptions + ";\n"
}

// Schema returns the SQL that makes the table, and that of its ExistingHistory if there is
// one, as new tables: one statement for each, ended by a semicolon and a new line. Add
// columns of your own, with a default or without NOT NULL. For a table that exists already
// [Open] returns a [TableError] with the statements that change it.
//
// Errors: [lifecycle.ErrInvalid] for names, and for an ExistingTable that contradicts itself.
func (t ExistingTable) Schema(d Dialect) (string, error) {
	if d.engine == nil {
		return "", fmt.Errorf("%w: a dialect is required", ErrSchema)
	}
	l, err := t.layout(d.engine, d.own(defaultPrefix, Version))
	if err != nil {
		return "", err
	}
	text := d.create(&l.objects, true)
	if l.history.existing {
		text += d.create(&l.history, false)
	}
	return text, nil
}
