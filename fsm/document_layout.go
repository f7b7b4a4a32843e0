package fsm

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// writer writes a table in the form of a document. It keeps its first fault.
type writer struct {
	t     *Table
	out   bytes.Buffer
	line  bytes.Buffer
	json  *json.Encoder // to line
	list  string        // the field of the document that is a list and is being written
	index int           // in list
	first bool          // list has no element yet
	err   *DocumentError
}

func (w *writer) fail(key, format string, args ...any) {
	if w.err != nil {
		return
	}
	path := key
	if w.list != "" {
		path = fmt.Sprintf("%s[%d]", w.list, w.index)
		if key != "" {
			path += "." + key
		}
	}
	w.err = &DocumentError{Path: path, Offset: -1, Text: fmt.Sprintf(format, args...)}
}

func (w *writer) key(key string) {
	start := ",\n "
	if w.out.Len() == 0 {
		start = "{\n "
	}
	fmt.Fprintf(&w.out, "%s%q: ", start, key)
}

func (w *writer) field(key string, value any) {
	w.key(key)
	w.value(value)
}

func (w *writer) optional(key string, value text) {
	if value != "" {
		w.field(key, value)
	}
}

// lines writes a list. item writes one element or several with [writer.element].
// Paths are of the element; those of transitions have the index of the row.
func (w *writer) lines(key string, n int, item func(i int)) {
	w.key(key)
	w.out.WriteByte('[')
	w.first = true
	for w.index = 0; w.index < n && w.err == nil; w.index++ {
		w.list = key
		item(w.index)
	}
	w.list = ""
	if n > 0 {
		w.out.WriteString("\n ")
	}
	w.out.WriteByte(']')
}

// element writes one line of a list.
func (w *writer) element(value any) {
	if !w.first {
		w.out.WriteByte(',')
	}
	w.first = false
	w.out.WriteString("\n  ")
	w.value(value)
	w.size()
}

// value writes a value with a space after every comma and colon.
func (w *writer) value(value any) {
	if w.err != nil {
		return
	}
	w.line.Reset()
	if err := w.json.Encode(value); err != nil {
		w.fail("", "%s", err)
	}
	quoted, escaped := false, false
	for _, c := range bytes.TrimSuffix(w.line.Bytes(), []byte{'\n'}) {
		w.out.WriteByte(c)
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			w.out.WriteByte(' ')
		}
	}
}

func (w *writer) size() {
	if w.out.Len() > MaxDocument {
		w.fail("", "the document has more than %d bytes", MaxDocument)
	}
}
