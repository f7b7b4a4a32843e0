package sqlstore

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/interlock-go/interlock/lifecycle"
)

// Type maps the values of a column of an existing table to text and back. The text is the
// name in a column of an id or a state, and JSON in a column of a payload or of one of its
// fields. [UUID], [Integer], [Codes], [Enum], [JSON], [Text] and [Bool] are such types. A
// Type of the caller's own has other functions: they are safe for concurrent use, and each
// reverses the other.
type Type struct {
	// Write returns the value for a text: an int64, a float64, a string or a bool. A commit
	// of a text for which it returns an error is refused with [lifecycle.ErrInvalid]. It
	// must accept one spelling of each value only.
	Write func(text string) (any, error)
	// Read returns the text for a value, which the engine has converted to text: MySQL leaves
	// bytes as they are, and PostgreSQL writes them in hexadecimal. If it returns an error, the
	// converted value is the text, as a JSON string in a field. The object is then foreign, or
	// commits of it are refused, until the value is corrected.
	Read func(value string) (string, error)
	// Postgres, MySQL and SQLite are the types of the column, for [ExistingTable.Schema].
	// Empty: that of names.
	Postgres, MySQL, SQLite string

	unfit []kind // Open refuses columns of these kinds, which do not keep the values
}

// The types of columns in which the text is the value, in one spelling.
var (
	// UUID is an id that is a uuid, in lower case with hyphens. Any other spelling is
	// [lifecycle.ErrInvalid]: a service that accepts others converts them first. Rows with
	// another spelling, in a column of text, are listed. Every verb refuses them, and
	// [Store.Trim] keeps their history.
	UUID = Type{Write: canonicalUUID, Read: identity, Postgres: "uuid", MySQL: "char(36)", unfit: []kind{ofNumber, ofBytes}}
	// Integer is an integer of 64 bits. The caller of a creation draws serial ids.
	Integer = Type{Write: canonicalInteger, Read: identity, Postgres: "bigint", MySQL: "bigint", SQLite: "INTEGER", unfit: []kind{ofText, ofBytes}}
	// JSON is a payload, or a field of one, as jsonb or json. The engine may write it in
	// another order: payloads are equal as JSON, not as bytes. The zero payload is null.
	// The type jsonb refuses strings with NUL.
	JSON = Type{Write: writeJSON, Read: readJSON, Postgres: "jsonb", MySQL: "json", unfit: []kind{ofNumber, ofBytes}}
	// Text is a field of the payload that is a JSON string without NUL. The column has the
	// string, and may be text, a uuid or an enum. A column of other values that no Type here
	// has, such as fractions and times, is a string too: a field that is a number in Go needs
	// a Type of the caller's own. So does a column of bytes that are not UTF-8: commits of the
	// object are refused.
	Text = Type{Write: writeText, Read: readText}
	// Bool is a field of the payload that is true or false.
	Bool = Type{Write: writeBool, Read: readBool, Postgres: "boolean", MySQL: "boolean", SQLite: "BOOLEAN", unfit: []kind{ofText, ofBytes}}
)

// Codes is the type of a small number for each state. It panics if two states have the same
// number.
func Codes(codes map[string]int64) Type {
	names := make(map[string]string, len(codes))
	for name, code := range codes {
		text := strconv.FormatInt(code, 10)
		if other, taken := names[text]; taken {
			panic(fmt.Sprintf("sqlstore: Codes: %q and %q have the code %s", min(name, other), max(name, other), text))
		}
		names[text] = name
	}
	return Type{
		Write: func(name string) (any, error) {
			code, ok := codes[name]
			if !ok {
				return nil, fmt.Errorf("%q has no code", name)
			}
			return code, nil
		},
		Read: func(code string) (string, error) {
			name, ok := names[code]
			if !ok {
				return "", fmt.Errorf("code %s has no name", code)
			}
			return name, nil
		},
		Postgres: "smallint", MySQL: "smallint", SQLite: "INTEGER", unfit: []kind{ofText, ofBytes},
	}
}

// Enum is the type of a column that takes these values only. In PostgreSQL its name is that
// of the enum type, as SQL has it: with quotes and a schema, if need be. MySQL has an enum, and
// SQLite text.
func Enum(name string, list ...string) Type {
	quoted := literals(list, func(value string) string { return "'" + strings.ReplaceAll(value, "'", "''") + "'" })
	return Type{
		Write: func(text string) (any, error) {
			if !slices.Contains(list, text) {
				return nil, fmt.Errorf("%q is not a value of %s", text, name)
			}
			return text, nil
		},
		Read: identity, Postgres: name, MySQL: "enum(" + quoted + ")",
		unfit: []kind{ofNumber, ofBytes},
	}
}

func identity(text string) (string, error) { return text, nil }

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func canonicalUUID(text string) (any, error) {
	if !uuidForm.MatchString(text) {
		return nil, fmt.Errorf("%.300q is not a uuid in lower case with hyphens", text)
	}
	return text, nil
}

func canonicalInteger(text string) (any, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return nil, fmt.Errorf("%.300q is not an integer of 64 bits without leading zeros", text)
	}
	return n, nil
}

func writeJSON(text string) (any, error) {
	switch {
	case text == "":
		return "null", nil
	case !json.Valid([]byte(text)):
		return nil, fmt.Errorf("%.300q is not JSON", text)
	}
	return text, nil
}

func readJSON(text string) (string, error) {
	if text == "null" {
		return "", nil
	}
	return text, nil
}

func writeText(text string) (any, error) {
	var s string
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, err
	}
	if strings.ContainsRune(s, 0) { // PostgreSQL has no such text
		return nil, fmt.Errorf("NUL in %.300q", s)
	}
	return s, nil
}

func readText(value string) (string, error) {
	if !utf8.ValidString(value) { // a list is no JSON string: writeText refuses it, and keeps the bytes
		return fmt.Sprintf(`["%x"]`, value), nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}

func writeBool(text string) (any, error) {
	return text == "true", json.Unmarshal([]byte(text), new(bool))
}

func readBool(value string) (string, error) {
	b, err := strconv.ParseBool(value)
	return strconv.FormatBool(b), err
}

// sql returns the type of the column in a new table.
func (t *Type) sql(e *engine) string {
	name := map[*engine]string{postgres: t.Postgres, mysql: t.MySQL, sqlite: t.SQLite}[e]
	return cmp.Or(name, e.newTypes[ofText])
}

// on returns the type for an engine. PostgreSQL gets texts: a driver with the type of
// the column would refuse a number outside of its range before it sends the statement, and
// nothing shows that such an error is not an outage.
func (t Type) on(e *engine) *Type {
	write := t.Write
	if e != postgres || write == nil {
		return &t
	}
	t.Write = func(text string) (any, error) {
		written, err := write(text)
		switch x := written.(type) {
		case int64, bool:
			return fmt.Sprint(x), err
		case float64:
			return strconv.FormatFloat(x, 'f', -1, 64), err
		}
		return written, err
	}
	return &t
}

// write returns the value of the column for a name or JSON. An empty name, JSON that is nil,
// and a field of a payload that is missing are NULL.
func (c *column) write(x any) (written any, err error) {
	text, _ := x.(string)
	null := text == ""
	if data, ok := x.([]byte); ok {
		text, null = string(data), data == nil
	}
	switch {
	case c.typ == nil:
		return x, nil
	case null:
		return nil, nil
	}
	if written, err = c.typ.Write(text); err != nil {
		what := "column " + c.name
		if c.field != "" {
			what = fmt.Sprintf("field %q of the payload", c.field)
		}
		err = fmt.Errorf("%w: %s: %w", lifecycle.ErrInvalid, what, err)
	}
	return written, err
}

// convert replaces the values that a query has read from columns with a type, but for fields of
// the payload: see table.join. A value that its type cannot read stays as the engine has
// converted it. A function of the caller may panic: within [sql.Rows.Scan] it would leave the
// rows locked.
func (st *statement) convert(cells []any) {
	for _, v := range st.reads {
		typ := st.from.column[v].typ
		if typ == nil {
			continue
		}
		switch in := cells[v].(type) {
		case *string:
			*in = typ.read(*in)
		case *[]byte:
			value := string(*in)
			if *in = nil; value != "" {
				*in = []byte(typ.read(value))
			}
		}
	}
}

func (t *Type) read(value string) string {
	if value == "" {
		return ""
	}
	text, err := t.Read(value)
	if err != nil {
		return value
	}
	return text
}

// split moves fields of the payload, which are JSON, to those of the row. A field that is
// missing or null is NULL.
func (t *table) split(r *row) error {
	if len(r.Payload) == 0 {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(r.Payload, &object); err != nil {
		return fmt.Errorf("%w: payload with columns of its own is not a JSON object: %w", lifecycle.ErrInvalid, err)
	}
	for i, c := range t.column[values:] {
		raw := string(object[c.field])
		r.fields[i] = sql.NullString{String: raw, Valid: raw != "" && raw != "null"}
		delete(object, c.field)
	}
	r.Payload = nil
	if len(object) == 0 {
		return nil
	}
	if t.col(vPayload) == "" {
		return fmt.Errorf("%w: field %q of the payload: the table has no column for it and none for the payload",
			errors.ErrUnsupported, slices.Sorted(maps.Keys(object))[0])
	}
	var err error
	r.Payload, err = json.Marshal(object)
	return err
}

// join is the inverse of split. A value that its type cannot read becomes a JSON string, so
// that the payload does not decode, or a commit refuses it: it is never lost. If the rest is
// no object, the payload is the rest, which does not decode either.
func (t *table) join(r *row) {
	object := make(map[string]json.RawMessage)
	if len(r.Payload) > 0 && json.Unmarshal(r.Payload, &object) != nil {
		return
	}
	if object == nil { // another program has written null
		object = make(map[string]json.RawMessage)
	}
	for i, c := range t.column[values:] {
		field := r.fields[i]
		if !field.Valid {
			continue
		}
		text, err := c.typ.Read(field.String)
		if err != nil || !json.Valid([]byte(text)) {
			text, _ = readText(field.String)
		}
		object[c.field] = json.RawMessage(text)
	}
	r.Payload = nil
	if len(object) > 0 {
		r.Payload, _ = json.Marshal(object) // all its values are JSON
	}
}
