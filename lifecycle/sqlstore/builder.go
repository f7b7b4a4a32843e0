package sqlstore

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// statement is the text of a statement and its arguments. A param stands for a value of a
// change; any other argument is literal.
type statement struct {
	text string
	args []any
	err  error // a literal does not fit its column
}

// param is a value of a change, for a column; nil: for none.
type param struct {
	v  value
	in *column
}

// vector has the values of one change for every statement.
type vector []any

// ofKey returns the values of a key.
func ofKey(key lifecycle.Key) vector {
	vals := make(vector, values)
	vals[vMachine], vals[vID] = key.Machine, key.ID
	return vals
}

// bind returns the arguments of a statement. It matches [lifecycle.ErrInvalid] if the type
// of a column refuses a value.
func (st *statement) bind(vals vector) (args []any, err error) {
	err = st.err
	args = slices.Clone(st.args)
	for i, a := range st.args {
		p, ok := a.(param)
		if !ok {
			continue
		}
		args[i] = vals[p.v]
		if p.in != nil {
			var refused error
			args[i], refused = p.in.write(vals[p.v])
			err = cmp.Or(err, refused)
		}
	}
	return args, err
}

// builder writes a statement. All names in its text are valid identifiers; all
// data are arguments.
type builder struct {
	e    *engine
	l    *layout
	text strings.Builder
	args []any
	err  error
}

func (b *builder) statement() *statement { return &statement{b.text.String(), b.args, b.err} }

func (b *builder) add(parts ...string) {
	for _, p := range parts {
		b.text.WriteString(p)
	}
}

// place returns the placeholder of an argument. PostgreSQL takes an argument without a type
// for text if a SELECT lists it.
func (b *builder) place(arg any, sqlType string) string {
	b.args = append(b.args, arg)
	if !b.e.numbered {
		return "?"
	}
	return "$" + strconv.Itoa(len(b.args)) + "::" + sqlType
}

// value returns the placeholder of a value of a change.
func (b *builder) value(v value) string { return b.place(param{v: v}, b.e.newTypes[v.kind()]) }

// valueIn returns the placeholder of a value for a column of a table.
func (b *builder) valueIn(t *table, v, is value) string {
	c := &t.column[v]
	if c.typ == nil {
		return b.value(is)
	}
	return b.place(param{is, c}, c.sqlType)
}

// literalIn returns the placeholder of a name for a column of a table.
func (b *builder) literalIn(t *table, v value, name string) string {
	c := &t.column[v]
	if c.typ == nil {
		return b.literal(name)
	}
	written, err := c.write(name)
	b.err = cmp.Or(b.err, err)
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
	return b.place(x, b.e.newTypes[k])
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
func (b *builder) now() string { return "COALESCE(" + b.value(vNow) + ", " + b.e.now + ")" }

// clock returns the present time in microseconds, for a query.
func (b *builder) clock() string {
	if b.e.ownClock {
		return b.e.now
	}
	return b.literal(time.Now().UnixMicro())
}

// ago returns the time before a duration, as a table keeps it.
func (b *builder) ago(t *table, d time.Duration) string {
	return b.time(t, b.clock()+" - "+b.literal(micros(d)))
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
	o := &b.l.objects
	switch v {
	case vChangedAt:
		return b.time(o, b.reported(b.now()))
	case vDeadline: // NULL if the value is NULL
		return b.time(o, b.reported(b.now())+" + "+b.value(vDeadline))
	}
	return b.valueIn(o, v, v)
}

// same returns a condition that compares a column with a value byte by byte. In an
// existing table the first comparison is for the index, and the second one ignores
// the collation.
func (b *builder) same(t *table, column, is value) string {
	condition := t.col(column) + " = " + b.valueIn(t, column, is)
	if t.existing && t.column[column].typ == nil {
		condition += fmt.Sprintf(b.e.exact, t.col(column), b.value(is))
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
		return fmt.Sprintf(b.e.bytewise, text)
	}
	return text
}

// read returns the expressions that read columns of a table; see table.scan.
func (b *builder) read(t *table, list []value) string {
	names := make([]string, len(list))
	for i, v := range list {
		switch names[i] = t.col(v); {
		case t.column[v].typ != nil:
			// PostgreSQL would give the text the name of its column, and order rows by it.
			names[i] = fmt.Sprintf(b.e.asText, names[i]) + " AS as_text"
		case v.isTime() && t.nativeTimes:
			names[i] = fmt.Sprintf(b.e.toMicros, names[i])
		}
	}
	return strings.Join(names, ", ")
}

// cells are the values of a row, by column. NULL, and a column that the table lacks, is as
// if no commit had written it.
type cells struct {
	texts   []sql.NullString
	numbers []sql.NullInt64
	data    [][]byte
}

func (c *cells) text(v value) string { return c.texts[v].String }

func (c *cells) number(v value) int64 { return c.numbers[v].Int64 }

// token returns a token, zero if there is none.
func (c *cells) token(v value) (token lifecycle.Token) {
	copy(token[:], c.data[v])
	return token
}

// time returns a time, zero if there is none.
func (c *cells) time(v value) time.Time {
	if c.number(v) == 0 {
		return time.Time{}
	}
	return clock(c.number(v))
}

// scan reads the columns of a list from a row, and values that follow them. A value that its
// type cannot read stays as the engine has converted it.
func (t *table) scan(rows *sql.Rows, list []value, after ...any) (*cells, error) {
	n := len(t.column)
	c := &cells{make([]sql.NullString, n), make([]sql.NullInt64, n), make([][]byte, n)}
	var into []any
	for _, v := range list {
		switch {
		case v.kind() == ofText || t.column[v].typ != nil:
			into = append(into, &c.texts[v])
		case v.kind() == ofNumber:
			into = append(into, &c.numbers[v])
		default:
			into = append(into, &c.data[v])
		}
	}
	if err := rows.Scan(append(into, after...)...); err != nil {
		return nil, err
	}
	for _, v := range list {
		typ := t.column[v].typ
		if typ == nil || v >= values || c.text(v) == "" { // see table.join
			continue
		}
		if text, err := typ.Read(c.text(v)); err == nil {
			c.texts[v].String = text
		}
		if v.kind() == ofBytes {
			c.data[v] = []byte(c.text(v))
		}
	}
	return c, nil
}

// clock returns a time of the store.
func clock(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// micros returns a duration in microseconds, rounded up.
func micros(d time.Duration) int64 {
	if d%time.Microsecond > 0 {
		return d.Microseconds() + 1
	}
	return d.Microseconds()
}
