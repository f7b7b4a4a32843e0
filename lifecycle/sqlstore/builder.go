package sqlstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// statement is the text of a statement and its arguments. An argument of type value,
// typedArg or fieldArg stands for that value of a change; any other argument is literal.
type statement struct {
	text string
	args []any
}

// builder writes a statement. All names in its text are valid identifiers; all
// data are arguments.
type builder struct {
	e    *engine
	l    *layout
	text strings.Builder
	args []any
}

func (b *builder) statement() *statement { return &statement{b.text.String(), b.args} }

func (b *builder) add(parts ...string) {
	for _, p := range parts {
		b.text.WriteString(p)
	}
}

func (b *builder) list(parts []string) { b.add(strings.Join(parts, ", ")) }

// value returns the placeholder of a value of a change.
func (b *builder) value(v value) string {
	b.args = append(b.args, v)
	return b.e.placeholder(len(b.args), v.kind())
}

// valueIn returns the placeholder of a value for a column of a table.
func (b *builder) valueIn(t *table, column, is value) string {
	typ := t.types[column]
	if typ == nil {
		return b.value(is)
	}
	return b.typed(typedArg{is, typ}, t.sqlTypes[column])
}

// literalIn returns the placeholder of a name for a column of a table.
func (b *builder) literalIn(t *table, column value, name string) string {
	typ := t.types[column]
	if typ == nil {
		return b.literal(name)
	}
	return b.typed(typ.typed(name), t.sqlTypes[column])
}

// typed returns the placeholder of an argument of a type that the engine reports.
func (b *builder) typed(arg any, sqlType string) string {
	b.args = append(b.args, arg)
	if b.e.numbered {
		return "$" + strconv.Itoa(len(b.args)) + "::" + sqlType
	}
	return "?"
}

// literal returns the placeholder of a string, an int64 or a []byte.
func (b *builder) literal(x any) string {
	k := ofText
	switch x.(type) {
	case int64:
		k = ofNumber
	case []byte:
		k = ofBytes
	}
	b.args = append(b.args, x)
	return b.e.placeholder(len(b.args), k)
}

// now returns the time of the commit in microseconds.
func (b *builder) now() string { return "COALESCE(" + b.value(vNow) + ", " + b.e.now + ")" }

// clock returns the present time in microseconds, for a query.
func (b *builder) clock() string {
	if b.e.ownClock {
		return b.e.now
	}
	return b.literal(time.Now().UnixMicro())
}

// reported has the statement return a time. MySQL has no RETURNING: the statement
// reports the time through LAST_INSERT_ID(). In an existing table an AUTO_INCREMENT
// column may use LAST_INSERT_ID() too: there the time is read before the commit.
func (b *builder) reported(micros string) string {
	if b.l.objects.existing {
		return micros
	}
	return fmt.Sprintf(b.e.report, micros)
}

// time returns a time in microseconds as a table keeps it.
func (b *builder) time(t *table, micros string) string {
	if t.nativeTimes {
		return fmt.Sprintf(b.e.fromMicros, micros)
	}
	return micros
}

// assigned returns the expression that a change writes into a column of the record.
func (b *builder) assigned(v value) string {
	switch v {
	case vChangedAt:
		return b.time(&b.l.objects, b.reported(b.now()))
	case vDeadline: // NULL if vWithin is NULL
		return b.time(&b.l.objects, b.reported(b.now())+" + "+b.value(vWithin))
	}
	return b.valueIn(&b.l.objects, v, v)
}

// fields returns the columns of fields of the payload, and their placeholders.
func (b *builder) fields() (names, assigned []string) {
	for i, f := range b.l.objects.fields {
		names, assigned = append(names, f.column), append(assigned, b.typed(fieldArg(i), f.sqlType))
	}
	return names, assigned
}

// same returns a condition that compares a column with a value byte by byte. In an
// existing table the first comparison is for the index, and the second one ignores
// the collation.
func (b *builder) same(t *table, column, is value) string {
	condition := t.column[column] + " = " + b.valueIn(t, column, is)
	if t.existing && t.types[column] == nil {
		condition += fmt.Sprintf(b.e.exact, t.column[column], b.value(is))
	}
	return condition
}

// key returns the condition on the rows of an object.
func (b *builder) key(t *table) string {
	machine := ""
	if t.column[vMachine] != "" {
		machine = b.same(t, vMachine, vMachine) + " AND "
	}
	return machine + b.same(t, vID, vID)
}

// ordered returns the text of a column for comparisons of order: byte by byte, or as the
// column's type orders its values.
func (b *builder) ordered(t *table, v value, text string) string {
	if t.existing && t.types[v] == nil {
		return fmt.Sprintf(b.e.bytewise, text)
	}
	return text
}

// read returns the expression that reads a column. The columns of an existing table,
// and those of a request, may be NULL. A column that the table lacks is read as if no commit had written it.
func (b *builder) read(t *table, v value) string {
	name := t.column[v]
	nullable := v == vDeadline || v == vChangedAt
	switch {
	case t.types[v] != nil && v.kind() == ofBytes:
		return fmt.Sprintf(b.e.asText, name)
	case t.types[v] != nil:
		return "COALESCE(" + fmt.Sprintf(b.e.asText, name) + ", '')"
	case name != "" && v == vNow && t.nativeTimes:
		return "COALESCE(" + fmt.Sprintf(b.e.toMicros, name) + ", 0)"
	case name != "" && v.isTime() && t.nativeTimes:
		return fmt.Sprintf(b.e.toMicros, name)
	case name != "" && v.kind() == ofText && (t.existing || v == vRequest || v == vFingerprint):
		return "COALESCE(" + name + ", '')"
	case name != "" && t.existing && v.kind() == ofNumber && !nullable:
		return "COALESCE(" + name + ", 0)"
	case name != "":
		return name
	case v == vMachine:
		return b.literal(b.l.machine)
	case v == vOrigin:
		return b.read(t, vState)
	case v == vSequence:
		return b.read(t, vRevision)
	case v == vFromOrigin:
		return b.read(t, vFromState)
	case v == vToOrigin:
		return b.read(t, vTo)
	case v.kind() == ofText:
		return "''"
	case v.kind() == ofNumber && !nullable:
		return "0"
	}
	return "NULL"
}

// record writes the select list that session.scan reads: the columns of a record
// from one on, whether Saved is kept, and the fields of the payload. Some drivers return an
// empty blob as nil.
func (b *builder) record(first value, withoutPayload bool) {
	list := make([]string, 0, columns+1)
	for v := first; v < columns; v++ {
		if withoutPayload && (v == vPayload || v == vSaved || v == vArgs) {
			list = append(list, "NULL")
		} else {
			list = append(list, b.read(&b.l.objects, v))
		}
	}
	saved := "0"
	if column := b.l.objects.column[vSaved]; column != "" && !withoutPayload {
		saved = "CASE WHEN " + column + " IS NULL THEN 0 ELSE 1 END"
	}
	list = append(list, saved)
	for _, f := range b.l.objects.fields {
		if withoutPayload {
			list = append(list, "NULL")
		} else {
			list = append(list, fmt.Sprintf(b.e.asText, f.column))
		}
	}
	b.list(list)
}

// selectHistory writes a query of the history rows of an object. The columns have names of
// their own: MySQL refuses a subquery with two columns of one name.
func (b *builder) selectHistory(list ...value) {
	b.fromHistory(list...)
	b.add(" WHERE ", b.key(&b.l.history))
}

// fromHistory writes the beginning of a query of history rows.
func (b *builder) fromHistory(list ...value) {
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = fmt.Sprintf("%s AS c%d", b.read(&b.l.history, v), i)
	}
	b.add("SELECT ")
	b.list(names)
	b.add(" FROM ", b.l.history.name)
}
