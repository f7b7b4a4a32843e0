package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// emitter writes JSON with or without lines and spaces. It goes on after a
// fault, and keeps the first.
type emitter struct {
	b        bytes.Buffer
	strings  *json.Encoder // into b
	readable bool
	lines    []bool // for each open object and array: its elements have a line each
	first    bool   // the innermost has no element yet
	part     string // the array of the document that is being written, empty: none
	index    int    // in part
	err      *DocumentError
}

func newEmitter(readable bool) *emitter {
	e := &emitter{readable: readable}
	e.strings = json.NewEncoder(&e.b)
	e.strings.SetEscapeHTML(false) // it is a file, and names are for people
	return e
}

func (e *emitter) fail(key, format string, args ...any) {
	if e.err != nil {
		return
	}
	path := key
	if e.part != "" {
		path = fmt.Sprintf("%s[%d]", e.part, e.index)
		if key != "" {
			path += "." + key
		}
	}
	e.err = &DocumentError{Path: path, Offset: -1, Text: fmt.Sprintf(format, args...)}
}

func (e *emitter) limit(key string, n, limit int) {
	if n > limit {
		e.fail(key, "%d, more than %d", n, limit)
	}
}

// open begins an object or array whose elements have a line each, or not.
func (e *emitter) open(bracket byte, lines bool) {
	e.b.WriteByte(bracket)
	e.lines = append(e.lines, lines)
	e.first = true
}

func (e *emitter) close(bracket byte) {
	last := len(e.lines) - 1
	lines := e.lines[last]
	e.lines = e.lines[:last]
	if lines && !e.first {
		e.newline()
	}
	e.b.WriteByte(bracket)
	e.first = false
}

func (e *emitter) newline() {
	if e.readable {
		e.b.WriteByte('\n')
		for range e.lines {
			e.b.WriteByte(' ')
		}
	}
}

// separate comes before every element.
func (e *emitter) separate() {
	if !e.first {
		e.b.WriteByte(',')
	}
	switch {
	case e.lines[len(e.lines)-1]:
		e.newline()
	case e.readable && !e.first:
		e.b.WriteByte(' ')
	}
	e.first = false
}

// item begins an element of a list that is on one line. A document that is too
// long already is not made longer.
func (e *emitter) item(bracket byte) {
	if e.b.Len() > MaxDocument {
		e.fail("", "the document has more than %d bytes", MaxDocument)
	}
	e.separate()
	e.open(bracket, false)
}

// finish ends the document.
func (e *emitter) finish() {
	e.newline()
	if e.part = ""; e.b.Len() > MaxDocument {
		e.fail("", "the document has more than %d bytes", MaxDocument)
	}
}

func (e *emitter) key(key string) {
	e.separate()
	e.b.WriteByte('"')
	e.b.WriteString(key)
	e.b.WriteString(`":`)
	if e.readable {
		e.b.WriteByte(' ')
	}
}

// element writes a string; key is for the error only.
func (e *emitter) element(key, s string, limit int) {
	e.separate()
	e.quote(key, s, limit)
}

// must writes a name, text a text for people unless it is empty.
func (e *emitter) must(key, s string) {
	e.key(key)
	e.quote(key, s, MaxName)
}

func (e *emitter) text(key, s string) {
	if s != "" {
		e.key(key)
		e.quote(key, s, MaxText)
	}
}

func (e *emitter) flag(key string, on bool) {
	if on {
		e.key(key)
		e.b.WriteString("true")
	}
}

func (e *emitter) number(key string, n int) {
	e.key(key)
	e.b.WriteString(strconv.Itoa(n))
}

// object writes an object that is JSON already.
func (e *emitter) object(key string, raw json.RawMessage) {
	e.key(key)
	w := newWalker(raw)
	compact := w.raw(MaxText)
	w.end()
	if w.err != nil {
		e.fail(key, "%s", w.err.Text)
		return
	}
	e.b.Write(compact)
}

func (e *emitter) quote(key, s string, limit int) {
	switch {
	case len(s) > limit:
		e.fail(key, "a string of %d bytes, more than %d", len(s), limit)
	case !utf8.ValidString(s):
		e.fail(key, "not UTF-8")
	default:
		_ = e.strings.Encode(s)     // into a buffer, and a string: cannot fail
		e.b.Truncate(e.b.Len() - 1) // the newline that Encode adds
	}
}
