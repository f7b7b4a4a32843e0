package sqlstore

import (
	"fmt"
	"strings"
	"time"
)

// builder collects the arguments of a statement, while its text is written from the first word
// to the last. All names in the text are valid identifiers; all data are arguments.
type builder struct {
	*engine
	*layout
	args  []any
	from  *table  // see statement
	reads []value // see statement
}

// build returns the statement whose text write returns.
func (e *engine) build(l *layout, write func(*builder) string) *statement {
	b := &builder{engine: e, layout: l}
	return b.statement(write(b))
}

func (b *builder) statement(text ...string) *statement {
	return &statement{text: strings.Join(text, ""), args: b.args, layout: b.layout, from: b.from, reads: b.reads}
}

// place returns the placeholder of an argument.
func (b *builder) place(arg any, sqlType string) string {
	b.args = append(b.args, arg)
	return b.placeholder(len(b.args), sqlType)
}

// value returns the placeholder of a value of a change.
func (b *builder) value(v value) string { return b.place(param{v: v}, b.newTypes[v.kind()]) }

// placeIn returns the placeholder of an argument for a column of a table: a param, or a name
// that the type of the column takes.
func (b *builder) placeIn(t *table, v value, arg any) string {
	c := &t.column[v]
	if c.typ == nil {
		return b.place(arg, b.newTypes[v.kind()])
	}
	if p, ok := arg.(param); ok {
		return b.place(param{p.v, c}, c.sqlType)
	}
	written, err := c.write(arg)
	if err != nil { // see checkCursor; the caller has checked all others
		written = arg
	}
	return b.place(written, c.sqlType)
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
	return b.place(x, b.newTypes[k])
}

// literals returns the placeholders of a list, separated by commas.
func literals[T any](list []T, literal func(T) string) string {
	places := make([]string, len(list))
	for i, x := range list {
		places[i] = literal(x)
	}
	return strings.Join(places, ", ")
}

// now returns the time of the commit in microseconds.
func (b *builder) now() string { return "COALESCE(" + b.value(vNow) + ", " + b.engine.now + ")" }

// clock returns the present time in microseconds, for a query.
func (b *builder) clock() string {
	if b.ownClock {
		return b.engine.now
	}
	return b.literal(time.Now().UnixMicro())
}

// ago returns the time before a duration, as a table keeps it.
func (b *builder) ago(t *table, d time.Duration) string {
	return b.time(t, b.clock()+" - "+b.literal(d.Microseconds()))
}

// reported has the statement return a time. MySQL has no RETURNING: the statement
// reports the time through LAST_INSERT_ID(). In an existing table an AUTO_INCREMENT
// column may use LAST_INSERT_ID() too: there the time is read before the commit.
func (b *builder) reported(micros string) string {
	if b.objects.existing {
		return micros
	}
	return fmt.Sprintf(b.report, micros)
}

// time returns a time in microseconds as a table keeps it.
func (b *builder) time(t *table, micros string) string {
	if t.nativeTimes {
		return fmt.Sprintf(b.fromMicros, micros)
	}
	return micros
}

// assigned returns the expression that a change writes into a column of the record.
func (b *builder) assigned(v value) string {
	switch v {
	case vChangedAt:
		return b.time(&b.objects, b.reported(b.now()))
	case vDeadline: // NULL if there is no timeout
		return b.time(&b.objects, b.reported(b.now())+" + "+b.value(vTimeout))
	}
	return b.placeIn(&b.objects, v, param{v: v})
}

// same returns a condition that compares a column with a value byte by byte. In an
// existing table the first comparison is for the index, and the second one ignores
// the collation.
func (b *builder) same(t *table, column, is value) string {
	condition := t.col(column) + " = " + b.placeIn(t, column, param{v: is})
	if c := &t.column[column]; t.existing && (c.typ == nil || !b.isDefinite(c.sqlType)) {
		condition += fmt.Sprintf(b.exact, t.col(column), b.placeIn(t, column, param{v: is}))
	}
	return condition
}

// key returns the condition on the rows of an object.
func (b *builder) key(t *table) string {
	machine := ""
	if t.col(vMachine) != "" {
		machine = b.same(t, vMachine, vMachine) + " AND "
	}
	return machine + b.same(t, vID, vID)
}

// ordered returns the text of a column for comparisons of order: byte by byte, or as the
// column's type orders its values.
func (b *builder) ordered(t *table, v value, text string) string {
	if t.existing && t.column[v].typ == nil {
		return fmt.Sprintf(b.bytewise, text)
	}
	return text
}

// useIndex makes the engine use an index of one of the store's own tables, by the end of its name.
func (b *builder) useIndex(t *table, end string) string {
	if b.hint == "" || end == "" || t.existing {
		return ""
	}
	return fmt.Sprintf(b.hint, b.quoted(b.unquoted(t.name)+end))
}

// text returns the text of a value of a column with a type.
func (b *builder) text(c *column, name string) string {
	switch {
	case beginsAs(c.sqlType, b.misread):
		return fmt.Sprintf(b.numberText, name)
	case beginsAs(c.sqlType, b.asTheyAre):
		return name
	}
	return fmt.Sprintf(b.asText, name)
}

// read returns the expressions that read columns of a table; see statement.scan.
func (b *builder) read(t *table, list []value) string {
	b.from, b.reads = t, list
	return literals(list, func(v value) string {
		name, c := t.col(v), &t.column[v]
		switch {
		case c.typ != nil:
			// PostgreSQL would give the text the name of its column, and order rows by it.
			return b.text(c, name) + " AS as_text"
		case v.isTime() && t.nativeTimes:
			return fmt.Sprintf(b.toMicros, name)
		default:
			return name
		}
	})
}
