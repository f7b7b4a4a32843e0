package storetest

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lifecycle"
)

// differences says in which fields two values of one struct type differ: a
// record, a history row, a message. It is empty if they are the same to a caller:
// times are the same instant, and bytes the same bytes.
func differences[T any](got, want T) string {
	var found []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		name := g.Type().Field(i).Name
		a, b := g.Field(i).Interface(), w.Field(i).Interface()
		if !alike(name, a, b) {
			found = append(found, fmt.Sprintf("%s is %s, not %s", name, show(a), show(b)))
		}
	}
	return strings.Join(found, "; ")
}

func alike(field string, got, want any) bool {
	switch w := want.(type) {
	case time.Time:
		return got.(time.Time).Equal(w)
	case []byte:
		// Nil equals empty, but for Saved, where nil is none and empty the zero payload.
		return bytes.Equal(got.([]byte), w) && (field != "Saved" || (got.([]byte) == nil) == (w == nil))
	case lifecycle.Message:
		return differences(got.(lifecycle.Message), w) == ""
	}
	if a, b := reflect.ValueOf(got), reflect.ValueOf(want); a.Kind() == reflect.Slice && a.Len()+b.Len() == 0 {
		return true
	}
	return reflect.DeepEqual(got, want)
}

// show prints a value of a field, long ones shortened.
func show(v any) string {
	switch x := v.(type) {
	case nil:
		return "nil"
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case []byte:
		v = string(x)
	}
	if _, ok := v.(fmt.Stringer); ok {
		return fmt.Sprint(v)
	}
	text := fmt.Sprintf("%q", fmt.Sprint(v))
	if len(text) > 200 {
		return fmt.Sprintf("%s... (%d bytes)", text[:200], len(fmt.Sprint(v)))
	}
	return text
}

// in says what a record is, for messages.
func in(r *lifecycle.StoredRecord) string {
	if !r.Exists() {
		return fmt.Sprintf("%s %q absent at #%d", r.Machine, r.ID, r.Sequence)
	}
	return fmt.Sprintf("%s %q %s at #%d", r.Machine, r.ID, r.State, r.Sequence)
}
