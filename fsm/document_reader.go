package fsm

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reader decodes a document into the structs of the form. Unlike
// [json.Unmarshal] it compares the names of fields exactly, refuses null,
// repeated fields and what encoding/json would replace by U+FFFD, bounds
// everything, and gives every fault a path and an offset.
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

// checked is a struct of the form. Its method read gets the offset of the struct
// after all fields are read. It returns a fault, and the field that has it.
type checked interface {
	read(offset int) (key, fault string)
}

func newReader(data []byte) *reader {
	r := &reader{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	switch {
	case len(data) > MaxDocument:
		r.failAt(MaxDocument, "document of more than %d bytes", MaxDocument)
	case !utf8.Valid(data):
		valid := 0
		for c, n := utf8.DecodeRune(data); c != utf8.RuneError || n > 1; c, n = utf8.DecodeRune(data[valid:]) {
			valid += n
		}
		r.failAt(valid, "not UTF-8")
	}
	return r
}

func (r *reader) failAt(offset int, format string, args ...any) {
	if r.err == nil {
		r.err = faultAt(r.data, offset, strings.TrimPrefix(string(r.path), "."), fmt.Sprintf(format, args...))
	}
}

// fail reports a fault of the last token.
func (r *reader) fail(format string, args ...any) { r.failAt(r.at, format, args...) }

// wrong reports that the last token has the wrong type.
func (r *reader) wrong(want string, tok json.Token) {
	found := "null"
	switch tok := tok.(type) {
	case json.Delim:
		found = "an object"
		if tok == '[' {
			found = "an array"
		}
	case string:
		found = "a string"
	case json.Number:
		found = "the number " + clip(tok.String())
	case bool:
		found = strconv.FormatBool(tok)
	}
	r.fail("want %s, found %s", want, found)
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
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '}' || tok == ']' {
			r.depth--
		} else if r.depth++; r.depth > maxNesting {
			r.fail("nested more than %d deep", maxNesting)
		}
	case string:
		if strings.ContainsRune(tok, utf8.RuneError) && loneSurrogate(r.data[r.at:r.dec.InputOffset()]) {
			r.fail("an escaped surrogate without its other half")
		}
	}
	return tok
}

var (
	surrogatePair = regexp.MustCompile(`(?i)\\ud[89ab]..\\ud[c-f]..`)
	surrogate     = regexp.MustCompile(`(?i)\\ud[89a-f]`)
)

// loneSurrogate reports whether a string, as written, has an escape that stands
// for no character.
func loneSurrogate(written []byte) bool {
	written = bytes.ReplaceAll(written, []byte(`\\`), []byte(" "))
	return surrogate.Match(surrogatePair.ReplaceAll(written, []byte(" ")))
}

// value reads a value into what v points to. It skips the value if v is nil.
func (r *reader) value(v any) {
	switch v := v.(type) {
	case nil:
		r.skip()
	case encoding.TextUnmarshaler:
		if err := v.UnmarshalText([]byte(r.text(maxText))); err != nil && r.err == nil {
			r.fail("%s", err)
		}
	case *string:
		*v = r.text(MaxName)
	case *text:
		*v = text(r.text(maxText))
	case *json.RawMessage:
		*v = r.raw()
	case *bool:
		tok := r.token()
		on, ok := tok.(bool)
		if *v = on; !ok {
			r.wrong("true or false", tok)
		}
	case *int:
		tok := r.token()
		number, _ := tok.(json.Number)
		n, err := strconv.Atoi(number.String())
		if *v = n; err != nil {
			r.wrong("a whole number", tok)
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
	case reflect.Slice:
		r.slice(v)
	case reflect.Array:
		r.array(v)
	default:
		panic("fsm: no document has a field of type " + v.Type().String())
	}
}

func (r *reader) open(bracket json.Delim, want string) bool {
	tok := r.token()
	if tok != bracket {
		r.wrong(want, tok)
	}
	return r.err == nil
}

// fields reads an object whose opening brace is read. v is the struct for it; if
// v is the zero Value, the fields are skipped.
func (r *reader) fields(v reflect.Value) {
	start := r.at
	var seen []string
	for r.err == nil && r.dec.More() {
		key, _ := r.token().(string)
		n := len(r.path)
		r.path = append(append(r.path, '.'), step(key)...)
		switch {
		case slices.Contains(seen, key):
			r.fail("the field is there twice")
		case len(seen) == maxFields:
			r.fail("an object of more than %d fields", maxFields)
		}
		seen = append(seen, key)
		r.value(fieldOf(v, key))
		r.path = r.path[:n]
	}
	r.token() // the closing brace
	if !v.IsValid() || r.err != nil {
		return
	}
	for field := range v.Type().Fields() {
		if key := keyOf(field); field.Tag.Get("form") == "required" && !slices.Contains(seen, key) {
			r.failField(start, key, "missing")
		}
	}
	if f, ok := v.Addr().Interface().(checked); ok && r.err == nil {
		if key, fault := f.read(start); fault != "" {
			r.failField(start, key, fault)
		}
	}
}

func (r *reader) failField(offset int, key, fault string) {
	n := len(r.path)
	if key != "" {
		r.path = append(append(r.path, '.'), key...)
	}
	r.failAt(offset, "%s", fault)
	r.path = r.path[:n]
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

// slice reads an array. A list of strings has a limit; the others are bounded by
// the size of the document and by what the table may have.
func (r *reader) slice(v reflect.Value) {
	if !r.open('[', "an array") {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // an empty list is not a missing one
	elem := v.Type().Elem()
	r.elements(func(i int) {
		if elem.Kind() == reflect.String && i == maxList {
			r.failAt(r.next(), "more than %d elements", maxList)
			return
		}
		v.Set(reflect.Append(v, reflect.Zero(elem)))
		r.value(v.Index(i).Addr().Interface())
	})
}

// array reads an array of as many elements as v has.
func (r *reader) array(v reflect.Value) {
	if !r.open('[', "an array") {
		return
	}
	start, n := r.at, 0
	r.elements(func(i int) {
		if n++; i < v.Len() {
			r.value(v.Index(i).Addr().Interface())
		} else {
			r.skip()
		}
	})
	if n != v.Len() {
		r.failAt(start, "want %d elements, found %d", v.Len(), n)
	}
}

// elements calls element for every element of an array whose opening bracket is
// read.
func (r *reader) elements(element func(i int)) {
	n := len(r.path)
	for i := 0; r.err == nil && r.dec.More(); i++ {
		r.path = append(strconv.AppendInt(append(r.path, '['), int64(i), 10), ']')
		element(i)
		r.path = r.path[:n]
	}
	r.token() // the closing bracket
}

// skip reads a value that the form does not have. It is checked all the same.
func (r *reader) skip() {
	switch r.token() {
	case json.Delim('{'):
		r.fields(reflect.Value{})
	case json.Delim('['):
		r.elements(func(int) { r.skip() })
	}
}

func (r *reader) text(limit int) string {
	tok := r.token()
	s, ok := tok.(string)
	switch {
	case !ok:
		r.wrong("a string", tok)
	case len(s) > limit:
		r.fail("a string of %d bytes, more than %d", len(s), limit)
	}
	return s
}

// raw returns an object as it is written, without spaces.
func (r *reader) raw() json.RawMessage {
	if !r.open('{', "an object") {
		return nil
	}
	start := r.at
	r.fields(reflect.Value{})
	if r.err != nil {
		return nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, r.data[start:r.dec.InputOffset()]); err != nil {
		r.failAt(start, "%s", err)
	}
	if b.Len() > maxText {
		r.failAt(start, "an object of %d bytes, more than %d", b.Len(), maxText)
	}
	return b.Bytes()
}

// end checks that nothing follows the document.
func (r *reader) end() {
	if rest := bytes.TrimLeft(r.data[r.dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		r.failAt(len(r.data)-len(rest), "something follows the document")
	}
}
