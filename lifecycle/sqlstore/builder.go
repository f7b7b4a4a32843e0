package sqlstore

import (
	"fmt"
	"strings"
)

// statement is the text of a statement and its arguments. An argument of type value
// stands for that value of a change; any other argument is literal.
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

// reported has the statement return a time. MySQL has no RETURNING: the statement
// reports the time through LAST_INSERT_ID(). In an existing table an AUTO_INCREMENT
// column may use LAST_INSERT_ID() too: there the time is read before the commit.
func (b *builder) reported(micros string) string {
	if b.l.existing {
		return micros
	}
	return fmt.Sprintf(b.e.report, micros)
}

// time returns a time in microseconds as the tables keep it.
func (b *builder) time(native bool, micros string) string {
	if native {
		return fmt.Sprintf(b.e.fromMicros, micros)
	}
	return micros
}

// assigned returns the expression that a change writes into a column.
func (b *builder) assigned(v value) string {
	switch v {
	case vChangedAt:
		return b.time(b.l.nativeTimes, b.reported(b.now()))
	case vDeadline: // NULL if vWithin is NULL
		return b.time(b.l.nativeTimes, b.reported(b.now())+" + "+b.value(vWithin))
	}
	return b.value(v)
}

// same returns a condition that compares a column with a value byte by byte. In an
// existing table the first comparison is for the index, and the second one ignores
// the collation.
func (b *builder) same(column string, existing bool, v value) string {
	condition := column + " = " + b.value(v)
	if existing {
		condition += fmt.Sprintf(b.e.exact, column, b.value(v))
	}
	return condition
}

// key returns the condition on the row of an object.
func (b *builder) key() string {
	machine := ""
	if b.l.column[vMachine] != "" {
		machine = b.same(b.l.column[vMachine], false, vMachine) + " AND "
	}
	return machine + b.same(b.l.column[vID], b.l.existing, vID)
}

// id returns the id of a row for comparisons of order.
func (b *builder) id() string {
	if b.l.existing {
		return fmt.Sprintf(b.e.bytewise, b.l.column[vID])
	}
	return b.l.column[vID]
}

// read returns the expression that reads a column. A column that the table lacks is
// read as if no commit had written it.
func (b *builder) read(v value) string {
	timed := v == vChangedAt || v == vDeadline
	switch name := b.l.column[v]; {
	case name != "":
		return b.column(name, v.kind(), timed, b.l.existing)
	case v == vMachine:
		return b.literal(b.l.machine)
	case v == vOrigin:
		return b.l.column[vState]
	case v == vSequence:
		return b.read(vRevision)
	case v.kind() == ofText:
		return "''"
	case v.kind() == ofNumber && !timed:
		return "0"
	}
	return "NULL"
}

// column returns the expression that reads a column. The columns of an existing table
// may be NULL.
func (b *builder) column(name string, k kind, timed, existing bool) string {
	switch {
	case timed && existing && b.l.nativeTimes:
		return fmt.Sprintf(b.e.toMicros, name)
	case timed || !existing:
		return name
	case k == ofText:
		return "COALESCE(" + name + ", '')"
	case k == ofNumber:
		return "COALESCE(" + name + ", 0)"
	}
	return name
}

// record writes the select list that session.scan reads: the columns of a record
// from one on, and whether Saved is kept. Some drivers return an empty blob as nil.
func (b *builder) record(first value, withoutPayload bool) {
	list := make([]string, 0, columns+1)
	for v := first; v < columns; v++ {
		if withoutPayload && (v == vPayload || v == vSaved || v == vArgs) {
			list = append(list, "NULL")
		} else {
			list = append(list, b.read(v))
		}
	}
	saved := "0"
	if b.l.column[vSaved] != "" && !withoutPayload {
		saved = "CASE WHEN " + b.l.column[vSaved] + " IS NULL THEN 0 ELSE 1 END"
	}
	b.list(append(list, saved))
}

// historyOf returns the condition on the history rows of an object.
func (b *builder) historyOf() string {
	machine := ""
	if b.l.historyColumn[hMachine] != "" {
		machine = b.same(b.l.historyColumn[hMachine], b.l.existingHistory, vMachine) + " AND "
	}
	return machine + b.same(b.l.historyColumn[hID], b.l.existingHistory, vID)
}

// readHistory returns the expression that reads a column of the history.
func (b *builder) readHistory(h historyColumn) string {
	k := historyValues[h].kind()
	switch name := b.l.historyColumn[h]; {
	case name != "":
		return b.column(name, k, h == hAt, b.l.existingHistory)
	case h == hFromOrigin:
		return b.readHistory(hFrom)
	case h == hOrigin:
		return b.readHistory(hTo)
	case k == ofNumber:
		return "0"
	}
	return "''"
}

// selectHistory writes a query of the history rows of an object.
func (b *builder) selectHistory(list ...historyColumn) {
	names := make([]string, len(list))
	for i, h := range list {
		names[i] = b.readHistory(h)
	}
	b.add("SELECT ")
	b.list(names)
	b.add(" FROM ", b.l.history, " WHERE ", b.historyOf())
}
