package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// walker reads a JSON document token by token. What it keeps is bounded by what
// its caller asks for, and every fault has a path and an offset. After the first
// fault it reads nothing more: every method then returns a zero value.
type walker struct {
	data  []byte
	dec   *json.Decoder
	path  []byte // of the value that is being read
	at    int    // where the token that was read last begins
	depth int
	err   *DocumentError
}

// newWalker begins with a document. What no token can be blamed for is checked
// here: encoding/json would replace what is not UTF-8 by U+FFFD and go on.
func newWalker(data []byte) *walker {
	w := &walker{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	w.dec.UseNumber()
	switch {
	case len(data) > MaxDocument:
		w.failAt(MaxDocument, "document of more than %d bytes", MaxDocument)
	case !utf8.Valid(data):
		w.failAt(invalidAt(data), "not UTF-8")
	}
	return w
}

// invalidAt returns the offset of the first byte that is not UTF-8.
func invalidAt(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return at
}

func (w *walker) failAt(offset int, format string, args ...any) {
	if w.err == nil {
		w.err = faultAt(w.data, offset, strings.TrimPrefix(string(w.path), "."), fmt.Sprintf(format, args...))
	}
}

// fail blames the token that was read last.
func (w *walker) fail(format string, args ...any) { w.failAt(w.at, format, args...) }

// next returns where the next token begins.
func (w *walker) next() int {
	at := int(w.dec.InputOffset())
	for at < len(w.data) && strings.IndexByte(" \t\r\n,:", w.data[at]) >= 0 {
		at++
	}
	return at
}

// token returns the next token, nil after a fault.
func (w *walker) token() json.Token {
	if w.err != nil {
		return nil
	}
	w.at = w.next()
	tok, err := w.dec.Token()
	if err != nil {
		if w.at == len(w.data) {
			w.fail("the document ends too early")
		} else {
			w.fail("%s", clip(strings.TrimPrefix(err.Error(), "json: ")))
		}
		return nil
	}
	switch tok := tok.(type) {
	case json.Delim:
		switch tok {
		case '{', '[':
			if w.depth++; w.depth > MaxNesting {
				w.fail("nested more than %d deep", MaxNesting)
				return nil
			}
		default:
			w.depth--
		}
	case string:
		if strings.ContainsRune(tok, utf8.RuneError) && loneSurrogate(w.data[w.at:w.dec.InputOffset()]) {
			w.fail("an escaped surrogate without its other half")
			return nil
		}
	}
	return tok
}

// loneSurrogate reports whether a string, as written, has an escape that stands
// for no character. encoding/json would replace it by U+FFFD.
func loneSurrogate(raw []byte) bool {
	unit := func(i int) rune {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return -1
		}
		u, err := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(u)
	}
	for i := 0; i < len(raw); {
		switch u := unit(i); {
		case raw[i] != '\\':
			i++
		case utf16.IsSurrogate(u):
			if utf16.DecodeRune(u, unit(i+6)) == utf8.RuneError {
				return true
			}
			i += 12
		default:
			i += 2 // the rest of a longer escape is ordinary characters
		}
	}
	return false
}

// wrong blames the last token for its type.
func (w *walker) wrong(want string, tok json.Token) {
	if w.err != nil {
		return
	}
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
	w.fail("want %s, found %s", want, found)
}

// object reads an object. For each key it calls field, which reads the value,
// or returns false if it knows no such key; what is unknown is passed over. The
// keys that must be there are named by the caller.
func (w *walker) object(field func(key string) bool, required ...string) {
	if tok := w.token(); tok != json.Delim('{') {
		w.wrong("an object", tok)
		return
	}
	w.fields(field, required...)
}

func (w *walker) fields(field func(key string) bool, required ...string) {
	start := w.at
	var seen []string
	for w.err == nil && w.dec.More() {
		key, _ := w.token().(string)
		n := len(w.path)
		w.path = append(append(w.path, '.'), step(key)...)
		switch {
		case w.err != nil:
		case slices.Contains(seen, key):
			w.fail("the field is there twice")
		case len(seen) == maxFields:
			w.fail("an object of more than %d fields", maxFields)
		default:
			seen = append(seen, key)
			if !field(key) {
				w.skip()
			}
		}
		w.path = w.path[:n]
	}
	w.token() // the closing brace
	for _, key := range required {
		if w.err == nil && !slices.Contains(seen, key) {
			w.path = append(append(w.path, '.'), key...)
			w.failAt(start, "missing")
		}
	}
}

// step is a key as part of a path.
func step(key string) string {
	plain := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return !plain(r) }) {
		return strconv.Quote(clip(key))
	}
	return clip(key)
}

// array reads an array and calls item for each element, which must read it.
func (w *walker) array(item func(i int)) {
	if tok := w.token(); tok != json.Delim('[') {
		w.wrong("an array", tok)
		return
	}
	w.items(item)
}

// list reads an array of at most limit elements.
func (w *walker) list(limit int, item func(i int)) {
	w.array(func(i int) {
		if i == limit {
			w.failAt(w.next(), "more than %d elements", limit)
			return
		}
		item(i)
	})
}

func (w *walker) items(item func(i int)) {
	n := len(w.path)
	for i := 0; w.err == nil && w.dec.More(); i++ {
		w.path = append(strconv.AppendInt(append(w.path, '['), int64(i), 10), ']')
		item(i)
		w.path = w.path[:n]
	}
	w.token() // the closing bracket
}

// skip reads a value and forgets it. Its form is checked all the same.
func (w *walker) skip() {
	switch w.token() {
	case json.Delim('{'):
		w.fields(func(string) bool { return false })
	case json.Delim('['):
		w.items(func(int) { w.skip() })
	}
}

// text reads a string of at most limit bytes.
func (w *walker) text(limit int) string {
	tok := w.token()
	s, ok := tok.(string)
	switch {
	case !ok:
		w.wrong("a string", tok)
		return ""
	case len(s) > limit:
		w.fail("a string of %d bytes, more than %d", len(s), limit)
		return ""
	}
	return s
}

func (w *walker) boolean() bool {
	tok := w.token()
	b, ok := tok.(bool)
	if !ok {
		w.wrong("true or false", tok)
	}
	return b
}

// integer reads a whole number that an int holds.
func (w *walker) integer() int {
	tok := w.token()
	n, _ := tok.(json.Number)
	i, err := strconv.Atoi(n.String())
	if err != nil {
		w.wrong("a whole number", tok)
	}
	return i
}

// raw reads an object and returns it as it is written, without the spaces.
func (w *walker) raw(limit int) json.RawMessage {
	if tok := w.token(); tok != json.Delim('{') {
		w.wrong("an object", tok)
		return nil
	}
	start := w.at
	w.fields(func(string) bool { return false })
	var b bytes.Buffer
	if w.err == nil && json.Compact(&b, w.data[start:w.dec.InputOffset()]) != nil {
		w.failAt(start, "not JSON") // cannot be: the walk went through
	}
	if b.Len() > limit {
		w.failAt(start, "an object of %d bytes, more than %d", b.Len(), limit)
	}
	return b.Bytes()
}

// end checks that nothing follows the document.
func (w *walker) end() {
	if w.err != nil {
		return
	}
	rest := w.data[w.dec.InputOffset():]
	if i := len(rest) - len(bytes.TrimLeft(rest, " \t\r\n")); i < len(rest) {
		w.failAt(len(w.data)-len(rest)+i, "something follows the document")
	}
}
