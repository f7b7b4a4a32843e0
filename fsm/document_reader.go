package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reader decodes a document into the structs of the form. Unlike [json.Unmarshal]
// it compares the names of fields exactly, refuses null, repeated fields and bytes that are not
// UTF-8, limits everything, and gives every fault a path and an offset.
//
// After the first fault every method returns a zero value.
type reader struct {
	data  []byte
	dec   *json.Decoder
	path  []byte // of the present value
	at    int    // offset of the last token
	depth int
	err   *DocumentError
}

// checked is a part of the form with a check of its own. The argument of read is the
// offset of the part.
type checked interface {
	read(offset int) (key, fault string)
}

func newReader(data []byte) *reader {
	r := &reader{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	switch {
	case len(data) > MaxDocument:
		r.failAt(MaxDocument, "", "document of more than %d bytes", MaxDocument)
	case bytes.HasPrefix(data, []byte("\ufeff")):
		r.failAt(0, "", "a byte order mark: save the document as UTF-8 without one")
	case !utf8.Valid(data):
		valid := 0
		for c, n := utf8.DecodeRune(data); c != utf8.RuneError || n > 1; c, n = utf8.DecodeRune(data[valid:]) {
			valid += n
		}
		r.failAt(valid, "", "not UTF-8")
	}
	return r
}

// failAt records a fault of the present value, or of its field key.
func (r *reader) failAt(offset int, key, format string, args ...any) {
	if r.err != nil {
		return
	}
	path := string(r.path)
	if key != "" {
		path += "." + key
	}
	r.err = faultAt(r.data, offset, strings.TrimPrefix(path, "."), fmt.Sprintf(format, args...))
}

// fail records a fault of the last token.
func (r *reader) fail(format string, args ...any) { r.failAt(r.at, "", format, args...) }

// wrong records that the last token has the wrong type.
func (r *reader) wrong(want string) {
	if r.err == nil {
		r.fail("want %s, found %s", want, clip(string(r.data[r.at:r.dec.InputOffset()])))
	}
}

// next returns the offset of the next token.
func (r *reader) next() int {
	at := int(r.dec.InputOffset())
	for at < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[at]) >= 0 {
		at++
	}
	return at
}

// token returns the next token, or nil after a fault.
func (r *reader) token() json.Token {
	if r.err != nil {
		return nil
	}
	r.at = r.next()
	tok, err := r.dec.Token()
	switch {
	case err != nil && r.at == len(r.data):
		r.fail("the document ends too early")
		return nil
	case err != nil:
		r.fail("%s", clip(strings.TrimPrefix(err.Error(), "json: ")))
		return nil
	}
	switch tok {
	case json.Delim('}'), json.Delim(']'):
		r.depth--
	case json.Delim('{'), json.Delim('['):
		if r.depth++; r.depth > maxNesting {
			r.fail("nested more than %d deep", maxNesting)
		}
	}
	return tok
}

// value reads a value into what v points to. It skips the value if v is nil.
func (r *reader) value(v any) {
	switch v := v.(type) {
	case nil:
		r.skip()
	case *string:
		*v = r.text(MaxName)
	case *text:
		*v = text(r.text(maxText))
	case *bool:
		on, ok := r.token().(bool)
		if *v = on; !ok {
			r.wrong("true or false")
		}
	case *int:
		number, _ := r.token().(json.Number)
		n, err := strconv.Atoi(number.String())
		if *v = n; err != nil {
			r.wrong("a whole number")
		}
	default:
		r.compound(reflect.ValueOf(v).Elem())
	}
}

func (r *reader) compound(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(v.Interface())
	case reflect.Struct:
		if r.open('{', "an object") {
			r.fields(v)
		}
	default:
		if r.open('[', "an array") {
			r.slice(v)
		}
	}
}

// check calls the check of a part of the form, which starts at start. The argument at
// has the offsets of its fields.
func (r *reader) check(v reflect.Value, start int, at map[string]int) {
	f, ok := v.Addr().Interface().(checked)
	if !ok || r.err != nil {
		return
	}
	if key, fault := f.read(start); fault != "" {
		if offset, ok := at[key]; ok {
			start = offset
		}
		r.failAt(start, key, "%s", fault)
	}
}

func (r *reader) open(bracket json.Delim, want string) bool {
	if r.token() != bracket {
		r.wrong(want)
	}
	return r.err == nil
}

// fields reads an object whose opening brace is read. v is the struct for it; if v is
// the zero Value, the fields are skipped.
func (r *reader) fields(v reflect.Value) {
	start, at := r.at, make(map[string]int) // the offsets of the values
	for r.err == nil && r.dec.More() {
		key, _ := r.token().(string)
		n := len(r.path)
		r.path = append(append(r.path, '.'), step(key)...)
		if _, twice := at[key]; twice {
			r.fail("the object has the field twice")
		} else if len(at) == maxFields {
			r.fail("an object of more than %d fields", maxFields)
		}
		at[key] = r.next()
		r.value(fieldOf(v, key))
		r.path = r.path[:n]
	}
	r.token() // the closing brace
	if !v.IsValid() {
		return
	}
	for field := range v.Type().Fields() {
		key := keyOf(field)
		if _, ok := at[key]; !ok && strings.HasPrefix(field.Tag.Get("form"), "required") {
			r.failAt(start, key, "missing")
		}
	}
	r.check(v, start, at)
}

func keyOf(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return key
}

// fieldOf returns a pointer to the field of a struct, or nil if it has none.
func fieldOf(v reflect.Value, key string) any {
	if v.IsValid() && key != "" {
		for i := range v.NumField() {
			if keyOf(v.Type().Field(i)) == key {
				return v.Field(i).Addr().Interface()
			}
		}
	}
	return nil
}

// step is a key as part of a path.
func step(key string) string {
	special := func(c rune) bool { return c != '_' && !unicode.IsLetter(c) && !unicode.IsDigit(c) }
	if key == "" || strings.ContainsFunc(key, special) {
		return strconv.Quote(clip(key))
	}
	return clip(key)
}

// slice reads an array whose opening bracket is read. A list of strings has a limit;
// the others are limited by the size of the document.
func (r *reader) slice(v reflect.Value) {
	start := r.at
	v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty list is not a missing one
	elem := v.Type().Elem()
	r.elements(func(i int) {
		if elem.Kind() == reflect.String && i == maxList {
			r.failAt(r.next(), "", "more than %d elements", maxList)
			return
		}
		v.Set(reflect.Append(v, reflect.Zero(elem)))
		r.value(v.Index(i).Addr().Interface())
	})
	r.check(v, start, nil)
}

// elements calls element for every element of an array whose opening bracket is read.
func (r *reader) elements(element func(i int)) {
	n := len(r.path)
	for i := 0; r.err == nil && r.dec.More(); i++ {
		r.path = append(strconv.AppendInt(append(r.path, '['), int64(i), 10), ']')
		element(i)
		r.path = r.path[:n]
	}
	r.token() // the closing bracket
}

// skip reads a value that the form does not have. It checks the value all the same.
func (r *reader) skip() {
	switch r.token() {
	case json.Delim('{'):
		r.fields(reflect.Value{})
	case json.Delim('['):
		r.elements(func(int) { r.skip() })
	}
}

func (r *reader) text(limit int) string {
	s, ok := r.token().(string)
	switch {
	case !ok:
		r.wrong("a string")
	case len(s) > limit:
		r.fail("a string of %d bytes, more than %d", len(s), limit)
	}
	return s
}

// end checks that nothing follows the document.
func (r *reader) end() {
	if rest := bytes.TrimLeft(r.data[r.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		r.failAt(len(r.data)-len(rest), "", "another value after the document")
	}
}
