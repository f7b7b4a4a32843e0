package sqlstore

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/lifecycle"
)

// field is a column of an existing table that keeps a field of the payload.
type field struct {
	name    string // of the field in the JSON object
	column  string // in quotes
	typ     *Type
	sqlType string // that the engine reports
}

// fieldArg is an argument of a statement: a field of the payload, by its index.
type fieldArg int

// split returns the payload without the fields that have columns, and the values of these
// columns. A field that is missing or null is NULL.
func (t *table) split(payload []byte) (rest []byte, columns []any, err error) {
	if len(t.fields) == 0 {
		return payload, nil, nil
	}
	columns = make([]any, len(t.fields))
	if len(payload) == 0 {
		return payload, columns, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(payload, &object); err != nil {
		return nil, nil, fmt.Errorf("%w: payload with columns of its own is not a JSON object: %w", lifecycle.ErrInvalid, err)
	}
	for i, f := range t.fields {
		raw, ok := object[f.name]
		delete(object, f.name)
		if !ok || string(raw) == "null" {
			continue
		}
		if columns[i], err = f.typ.Write(string(raw)); err != nil {
			return nil, nil, fmt.Errorf("%w: field %q of the payload: %w", lifecycle.ErrInvalid, f.name, err)
		}
	}
	if len(object) == 0 {
		return nil, columns, nil
	}
	if t.column[vPayload] == "" {
		for name := range object {
			return nil, nil, fmt.Errorf("%w: field %q of the payload: the table has no column for it and none for the payload",
				errors.ErrUnsupported, name)
		}
	}
	rest, err = json.Marshal(object)
	return rest, columns, err
}

// join is the inverse of split. A value that its type cannot read becomes a JSON string, so
// that the payload does not decode, or a commit refuses it: it is never lost. If rest is no
// object, the payload is rest, which does not decode either.
func (t *table) join(rest []byte, columns []sql.NullString) []byte {
	object := make(map[string]json.RawMessage)
	if len(rest) > 0 && json.Unmarshal(rest, &object) != nil {
		return rest
	}
	for i, f := range t.fields {
		if !columns[i].Valid {
			continue
		}
		text, err := f.typ.Read(columns[i].String)
		if err != nil || !json.Valid([]byte(text)) {
			text, _ = readText(columns[i].String)
		}
		object[f.name] = json.RawMessage(text)
	}
	if len(object) == 0 {
		return nil
	}
	payload, _ := json.Marshal(object) // all its values are JSON
	return payload
}
